# Settings made before the library is loaded of which more than the current value
# counts: one that is hidden by another, a RESET in the transaction of the first
# call, one made around the code of others; and a load that is interrupted.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Attempts;

start_node();
my @states = states(0);

# A value that is hidden by another comes back: it counts as well.

sub hidden
{
	my ($what, $expected, $packet, @statements) = @_;
	my $session = session('attacker', $packet);
	$session->query($_) foreach @statements;
	is($session->outcome('SELECT wrapped()'), $expected, "hidden: $what");
	$session->quit;
	return;
}
my $size   = 'fast_uuid.buffer_size';
my $option = { options => "-c $size=typo" };
hidden('a wrong option below a right SET', '22023', $option, "SET $size = 0");
hidden('a negative option below a right SET', '22023', { options => "-c $size=-1" }, "SET $size = 0");
hidden('a wrong SET below a right SET LOCAL', '22023', {}, 'BEGIN', "SET $size = 'typo'", "SET LOCAL $size = 0");
hidden('a wrong SET below a savepoint', '22023', {}, 'BEGIN', "SET $size = 'typo'", 'SAVEPOINT a', "SET $size = 0");
my $session = session('attacker', {});
$session->query($_) foreach "SET fast_uuid.source = 'urandom'", 'BEGIN', "SET LOCAL fast_uuid.source = 'xorshift128+'", $where{leader};
like($session->outcome('SELECT wrapped() FROM input WHERE n = 500'), qr/value/, 'hidden: a SET below a SET LOCAL, loaded in the leader');
is(used($session), 'xorshift128+', 'hidden: the source in force is that of SET LOCAL');
$session->query('COMMIT; SELECT uuidv7_fast()');
is(used($session), 'urandom xorshift128+', 'hidden: then that of SET');
$session->quit;

# What a superuser has set counts, also when he is none any more.
$node->safe_psql('postgres', 'CREATE ROLE demoted LOGIN SUPERUSER');
$session = session('demoted', {});
$session->query("SET fast_uuid.allowed_sources = 'urandom'");
$node->safe_psql('postgres', 'ALTER ROLE demoted NOSUPERUSER');
is($session->outcome("SELECT uuidv7_fast('getrandom')"), '42501', 'set by a superuser who is none any more: what was set is in force');
like($session->outcome("SELECT uuidv7_fast('urandom')"), qr/value/, 'set by a superuser who is none any more: and is no mistake');
$session->quit;
$node->safe_psql('postgres', 'DROP ROLE demoted');

# A RESET or DEFAULT in the transaction of the first call: the server would drop it.
foreach my $reset ('RESET %s', 'SET LOCAL %s TO DEFAULT', 'RESET ALL')
{
	foreach my $inner (0, 1)
	{
		foreach my $state (@states[ 0, 2 ])
		{
			my $what = "hidden: $reset" . ($inner ? ' in a subtransaction' : '') . ", $state->{name}";
			my $name = 'fast_uuid.source';
			$session = session('attacker', {});
			$session->query($_) foreach "SET $name = 'xorshift128+'", $state->{before}, 'BEGIN', ($inner ? 'SAVEPOINT a' : ()), sprintf($reset, $name);
			is($session->outcome($state->{query}->(wrapped(''))), '55000', "$what: the call is refused");
			like($session->{error}, qr/Roll back, and use RESET fast_uuid\.source in a transaction of its own/, "$what: the hint says what to do");
			$session->query('ROLLBACK TO a; SELECT 1') if $inner;
			$session->query('COMMIT');
			like($session->outcome('SELECT uuidv7_fast()'), qr/value/, "$what: after the transaction there is a value");
			is(used($session), 'xorshift128+', "$what: from what was set, as the transaction failed");
			$session->query("RESET $name; SELECT uuidv7_fast()");
			like(used($session), qr/openssl|getrandom/, "$what: and from the default after another RESET");
			$session->quit;
		}
	}
}

# Who runs inside a function or transaction that restricts the sources takes that
# back, while it is a placeholder: nothing is generated then.
$node->safe_psql(
	'postgres', q{
CREATE TABLE trap (id uuid);
CREATE FUNCTION spring() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN RESET fast_uuid.allowed_sources; NEW.id := uuidv7_fast('xorshift128+'); RETURN NEW; END $$;
CREATE TRIGGER spring BEFORE INSERT ON trap FOR EACH ROW EXECUTE FUNCTION spring();
CREATE FUNCTION walk_into_trap() RETURNS text LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom' AS $$ BEGIN INSERT INTO trap VALUES (NULL); RETURN 'sprung'; END $$;
});
$session = session('attacker', {});
unlike($session->outcome('SELECT walk_into_trap()'), qr/value/, 'a trigger that resets the list of the function around it');
$session->quit;
$session = session($superuser, {});
$session->query("BEGIN; SET LOCAL fast_uuid.allowed_sources = 'getrandom'");
unlike($session->outcome('INSERT INTO trap VALUES (NULL)'), qr/value/, 'a trigger that resets the list of the transaction around it');
$session->quit;

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

# Settings taken over in a parallel operation can still not be changed in one.
$node->safe_psql('postgres', q{CREATE FUNCTION changed() RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
	$$ BEGIN RETURN set_config('fast_uuid.source', 'urandom', false); END $$});
$session = session('attacker', {});
$session->query($_) foreach "SET fast_uuid.source = 'getrandom'", $where{leader}, 'SELECT wrapped() FROM input WHERE n = 500';
is($session->outcome('SELECT changed() FROM input WHERE n = 500'), '25000', 'no setting is changed in a parallel operation');
$session->quit;

# A wrong source does not keep a parallel query from starting workers that is
# about something else.
$session = session('attacker', {});
$session->query($_) foreach "SET fast_uuid.source = 'typo'", "SET fast_uuid.ordering = 'typo'", $loading, $where{worker};
is($session->outcome('SELECT n FROM input WHERE n = 500'), 'value 500', 'a parallel query in a session with a wrong source');
$session->quit;

# A worker that starts has its leader's settings, not a wrong one made meanwhile.
$session = session('attacker', {});
$session->query($_) foreach 'SELECT uuidv7_fast()', $where{worker};
$node->safe_psql('postgres', "ALTER ROLE attacker SET $size = 'typo'");
like($session->outcome('SELECT wrapped() FROM input WHERE n = 500'), qr/value/, 'a new worker of a loaded session generates');
$session->quit;
$node->safe_psql('postgres', "ALTER ROLE attacker RESET $size");

# A second copy of the library, as an upgrade leaves it for sessions that are open.
my ($path) = split /:/, $node->safe_psql('postgres', 'SHOW dynamic_library_path');
$path =~ s/\$libdir/$node->config_data('--pkglibdir')/e;
my $copy = $node->basedir . '/fast_uuid_copy.so';
append_to_file($copy, slurp_file("$path/fast_uuid.so"));
$session = session($superuser, {});
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'a session with the library');
isnt($session->outcome("LOAD '$copy'"), 'value ', 'a second copy of it is an error');
like($session->{error}, qr/attempt to redefine parameter/, 'of the server');
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

$node->stop;
done_testing();
