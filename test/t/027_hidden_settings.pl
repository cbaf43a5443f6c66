# Settings made before the library is loaded, at the moment when it is: what a role had
# the right to set, a copy of the library, a cancel request, and memory that runs out.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Attempts;

start_node();
# What a superuser has set counts, also when he is none any more.
$node->safe_psql('postgres', 'CREATE ROLE demoted LOGIN SUPERUSER');
my $session = session('demoted', {});
$session->query("SET fast_uuid.allowed_sources = 'urandom'");
$node->safe_psql('postgres', 'ALTER ROLE demoted NOSUPERUSER');
is($session->outcome("SELECT uuidv7_fast('getrandom')"), '42501', 'set by a superuser who is none any more: what was set is in force');
like($session->outcome("SELECT uuidv7_fast('urandom')"), qr/value/, 'set by a superuser who is none any more: and is no mistake');
$session->quit;
$node->safe_psql('postgres', 'DROP ROLE demoted');

# A set takes over another source from the next row on.
$session = session('attacker', {});
$session->query($_) foreach "SET fast_uuid.source = 'getrandom'", 'BEGIN', 'DECLARE c CURSOR FOR SELECT uuidv7_fast_set(100)', 'FETCH c';
$session->query("SET LOCAL fast_uuid.source = 'urandom'; FETCH c");
is(used($session), 'getrandom urandom', 'a cursor over a set follows the setting');
$session->quit;
$node->safe_psql('postgres', 'ALTER ROLE attacker NOINHERIT; GRANT trusted TO attacker');
$session = session('attacker', { options => '-c fast_uuid.allowed_sources=xorshift128+' });
$session->query($_) foreach 'SET ROLE trusted', "SET fast_uuid.allowed_sources = 'getrandom'", 'RESET ROLE';
is($session->outcome("SELECT uuidv7_fast('getrandom')"), '42501', 'hidden: a list by option below one by who may set it');
$session->quit;
$node->safe_psql('postgres', 'REVOKE trusted FROM attacker; ALTER ROLE attacker INHERIT');

# After RESET and SET LOCAL in one transaction the server takes what RESET led to for a
# SET.  What the DBA sets later would not count: nor where that is below another value.
my %tightened = (
	'fast_uuid.allowed_sources'   => [ 'openssl, xorshift128+', 'openssl', "uuidv7_fast_at(now(), 'xorshift128+')" ],
	'fast_uuid.required_ordering' => [ 'session', 'durable', 'uuidv7_fast()' ]);
foreach my $name (sort keys %tightened)
{
	my ($before, $after, $call) = @{ $tightened{$name} };
	foreach my $set ('', "$name = '$before'\n")
	{
		file_settings($set);
		my $outside = session('attacker', {});
		my $inside  = session('attacker', {});
		foreach ($outside, $inside)
		{
			$_->query("BEGIN; RESET $name; SET LOCAL $name = '$before'; COMMIT");
		}
		append_to_file($node->data_dir . '/dba.conf', "$name = '$after'\n");
		reload_in($_) foreach $outside, $inside;
		my $what = "RESET and SET LOCAL of $name" . ($set eq '' ? '' : ', which was in the file');
		is($outside->outcome("SELECT $call"), '42501', "$what: refused");
		$inside->query("BEGIN; RESET $name");
		is($inside->outcome('SELECT uuidv7_fast_at(now())'), '42501', "$what: also below a RESET that can be rolled back");
		$inside->query('ROLLBACK');
		foreach ($outside, $inside)
		{
			$_->query("RESET $name");
			like($_->outcome("SELECT uuidv7_fast_at(now())"), qr/value/, "$what: the hint's RESET helps");
			is($_->query("SHOW $name"), $after, "$what: then what the DBA has set is in force");
			$_->quit;
		}
	}
}
file_settings('');

# A worker that starts has its leader's settings, not a wrong one made meanwhile.
$session = session('attacker', {});
$session->query($_) foreach 'SELECT uuidv7_fast()', $where{worker};
$node->safe_psql('postgres', "ALTER ROLE attacker SET fast_uuid.required_ordering = 'typo'");
like($session->outcome('SELECT wrapped() FROM input WHERE n = 500'), qr/value/, 'a new worker of a loaded session generates');
$session->quit;
$node->safe_psql('postgres', "ALTER ROLE attacker RESET fast_uuid.required_ordering");

# A second copy of the library, as an upgrade leaves it for sessions that are open.
my ($path) = split /:/, $node->safe_psql('postgres', 'SHOW dynamic_library_path');
$path =~ s/\$libdir/$node->config_data('--pkglibdir')/e;
my $copy = $node->basedir . '/fast_uuid_copy.so';
append_to_file($copy, slurp_file("$path/fast_uuid.so"));
$session = session($superuser, {});
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'a session with the library');
isnt($session->outcome("LOAD '$copy'"), 'value ', 'a second copy of it is an error');
like($session->{error}, qr/another copy of fast_uuid is loaded/, 'that says so');
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'and the session goes on');
$session->quit;

# A query that is cancelled while the library loads does not leave half of it.
my $module = getcwd() . '/test/modules/faults';
$node->safe_psql('postgres', "CREATE FUNCTION load_cancelled(file text) RETURNS bool AS '$module' LANGUAGE c");
$session = session($superuser, {});
$session->query("SET fast_uuid.sauce = 'a misspelt setting, of which the server warns'");
is($session->outcome("SELECT load_cancelled('fast_uuid')"), '57014', 'a cancel during the load cancels the query');
is(join('', grep { /sauce/ } @{ $session->{notices} }),
	'invalid configuration parameter name "fast_uuid.sauce", removing it', 'after the warning');
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'and the next call works');
$session->quit;

# Memory that runs out while the library is loaded, at each place in turn, does not
# take away what the DBA has set.
$node->safe_psql('postgres', "CREATE FUNCTION load_starved(file text, call int) RETURNS bool AS '$module' LANGUAGE c");
$node->stop;
append_to_file($node->data_dir . '/dba.conf', "fast_uuid.allowed_sources = 'getrandom'\nfast_uuid.required_ordering = 'instance'\n");
{
	local $ENV{LD_PRELOAD} = getcwd() . '/test/modules/preload_no_memory.so';
	$node->start;
}
my ($ended, @taken_away, @stuck) = (0);
foreach my $case ([ 'attacker', '' ], [ 'trusted', "SET fast_uuid.allowed_sources = 'urandom'" ])
{
	my ($user, $before) = @$case;
	my ($call, $reached) = (0, 1);
	while ($reached)
	{
		$session = session($user, {});
		$session->query($before);
		$call++;
		my $loaded = $session->outcome("SELECT load_starved('fast_uuid', $call)");
		$ended++ if $session->{error} =~ /could not take over the value of parameter "fast_uuid/;
		$reached = $loaded ne 'value f';

		my $below = $before eq '' ? '' : $session->outcome("SELECT uuidv7_fast_at(now(), 'getrandom')");
		$session->query('RESET fast_uuid.allowed_sources');
		my $other = $session->outcome("SELECT uuidv7_fast_at(now(), 'xorshift128+')");
		my $order = $session->outcome('SHOW fast_uuid.required_ordering');
		push @taken_away, "$user, call $call: $other, $below, $order" if $other =~ /value/ || $below =~ /value/ || $order =~ /value/ && $order ne 'value instance';
		my $works = $session->outcome("SELECT uuidv7_fast_at(now(), 'getrandom')") =~ /value/;
		push @stuck, "$user, call $call: $loaded" if !$works && !$session->{closed};
		$session->quit;
	}
}
is(join("\n", @taken_away), '', 'the allowlist and the order required hold, wherever memory runs out');
is(join("\n", @stuck),      '', 'and a session that goes on can load the library again');
cmp_ok($ended, '>', 0, 'one that has lost a value of them ends');

$node->stop;
done_testing();
