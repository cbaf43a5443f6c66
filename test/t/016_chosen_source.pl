# What was asked for, or an error: every way to make a setting, before and after
# the library is loaded, preloaded, and with its first load inside a parallel
# operation, against the allowlist, the source, the seed and the order.

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

# That the two parallel states are what they say.
my $honest = session('attacker', {});
$honest->query($where{worker});
isnt($honest->query('SELECT wrapped_pid() FROM input WHERE n = 500'),
	$honest->query('SELECT pg_backend_pid()'), 'the worker is another process');
$honest->query($where{leader});
is($honest->query('SELECT wrapped_pid() FROM input WHERE n = 500'),
	$honest->query('SELECT pg_backend_pid()'), 'without workers the leader does it');
like($honest->query('EXPLAIN SELECT wrapped_pid() FROM input WHERE n = 500'), qr/Gather/, 'in a parallel plan');
$honest->quit;

# --- Restricted sources: nobody gets a value from another one.

sub attack_allowlist
{
	my ($where, @states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my $what = "allowlist from $where, $way, $state->{name}";
			my ($session, $outcome) = attempt(
				'attacker', $way, $state, wrapped(''),
				'fast_uuid.allowed_sources' => 'xorshift128+', 'fast_uuid.source' => 'xorshift128+');
			unlike($outcome, qr/value/, "$what: no value ($outcome)");
			foreach my $later ('RESET fast_uuid.allowed_sources', 'RESET ALL', 'DISCARD ALL', 'reload')
			{
				$later eq 'reload' ? reload_in($session) : $session->query($later);
				unlike($session->outcome("SELECT uuidv7_fast('xorshift128+')"), qr/value/, "$what: none after $later");
				unlike($session->outcome('SET fast_uuid.source = "xorshift128+"; INSERT INTO item DEFAULT VALUES'),
					qr/value/, "$what: none by the column's default after $later");
				$session->query('RESET fast_uuid.source');
			}
			like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "$what: what is allowed works in the end")
			  unless $way eq 'option' || $way eq 'startup packet';
			$session->quit;
		}
	}
	return;
}

sub attack_function
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (grep { !$_->{parallel} } @states)
		{
			foreach my $function ('restricted', 'restricted_for_caller')
			{
				my ($session, $outcome) = attempt(
					'attacker', $way, $state, "$function('xorshift128+')",
					'fast_uuid.allowed_sources' => 'xorshift128+');
				unlike($outcome, qr/value/, "allowlist from $function(), $way, $state->{name}: no value ($outcome)");
				$session->quit;
			}
		}
	}
	my ($session, $outcome) = attempt('attacker', 'SET', $states[0], "restricted_for_caller('xorshift128+')");
	unlike($outcome, qr/value/, "restricted_for_caller() without the privilege: no value ($outcome)");
	$session->quit;
	$session = session('attacker', {});
	is($session->outcome("SELECT restricted('xorshift128+')"), '42501', 'restricted() refuses in a fresh session');
	like($session->outcome("SELECT restricted('getrandom')"), qr/value/, 'and gives a value from what it allows');
	$session->quit;
	return;
}

foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom');
	attack_allowlist($where, @states);
	$undo->();
}
attack_function(@states);

# The other side: who was given the privilege restricts, and opens, by option.
foreach my $way (@ways)
{
	my ($session, $outcome) =
	  attempt('trusted', $way, $states[0], "uuidv7_fast('getrandom')", 'fast_uuid.allowed_sources' => 'getrandom');
	like($outcome, qr/value/, "GRANT SET ON PARAMETER, $way: the list is taken");
	is($session->outcome("SELECT uuidv7_fast('xorshift128+')"), '42501', "GRANT SET ON PARAMETER, $way: and holds")
	  unless $way eq 'SET LOCAL';
	is(join('', @{ $session->{notices} }), '', "GRANT SET ON PARAMETER, $way: without a warning");
	$session->quit;
}

# --- A wrong list allows nothing, wherever it stands.

$node->safe_psql(
	'postgres', q{
CREATE FUNCTION misspelt(source text) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom, opnssl' AS
	'BEGIN RETURN uuidv7_fast(source); END'});
my $session = session('attacker', {});
is($session->outcome("SELECT misspelt('openssl')"), '42501', 'a wrong list in a function does not allow openssl');
like(
	$session->{error},
	qr/Unrecognized entropy source: "opnssl".*set by SET, in this session or for a function/,
	'and the error names the mistake, and its place');
unlike($session->outcome("SELECT misspelt('getrandom')"), qr/value/, 'nor, now that the library is loaded, getrandom');
$session->quit;
$session = session('attacker', {});
is($session->outcome("SELECT misspelt('getrandom')"), '42501', 'nor in a fresh session');
$session->quit;
foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom, opnssl');
	foreach my $state (@states)
	{
		$session = session('attacker', {});
		$session->query($state->{before});
		unlike($session->outcome($state->{query}->(wrapped($_))), qr/value/, "a wrong list from $where, $state->{name}: no $_")
		  foreach 'getrandom', 'openssl';
		$session->quit;
	}
	$undo->();
}

# --- The chosen source and order, or an error.

# What a value in a session came from: the sources that were asked.
sub used
{
	my ($session) = @_;
	return $session->query("SELECT string_agg(name, ' ') FROM fast_uuid_stats() WHERE refills > 0");
}

# $how: "way" of a session or place of the DBA; $again: what a fresh session finds.
sub check_choice
{
	my ($how, $state, $session, $outcome, $setting, $value) = @_;
	my $what = "$setting = '$value', $how, $state->{name}";

	if ($value eq 'typo')
	{
		is($outcome, '22023', "$what: the call is refused");
		return;
	}
	like($outcome, qr/value/, "$what: the call is answered");
	return;
}

sub choose_in_session
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my ($session, $outcome) = attempt('attacker', $way, $state, wrapped(''), 'fast_uuid.source' => 'urandom');
			check_choice($way, $state, $session, $outcome, 'source', 'urandom');
			is(used($session), 'urandom', "source = 'urandom', $way, $state->{name}: from nowhere else")
			  if $outcome =~ /value/ && !$state->{worker};
			is(join('', @{ $session->{notices} }), '', "source = 'urandom', $way, $state->{name}: no warning");
			$session->quit;

			# By hand, on a loaded library, the SET itself is refused.
			my $at_once = $state->{known} && $way !~ /option|packet/;
			foreach my $setting ('source', 'ordering')
			{
				($session, $outcome) = attempt('attacker', $way, $state, wrapped(''), "fast_uuid.$setting" => 'typo');
				if ($at_once)
				{
					unlike($outcome, qr/22023/, "$setting = 'typo', $way, $state->{name}: the SET was refused");
				}
				else
				{
					check_choice($way, $state, $session, $outcome, $setting, 'typo');
					like($session->{failure}, qr/"typo"/, "$setting = 'typo', $way, $state->{name}: the error names it")
					  if $outcome eq '22023';
					unlike($session->outcome('SELECT uuidv7_fast()'), qr/value/,
						"$setting = 'typo', $way, $state->{name}: neither does the next call give a value")
					  if $way =~ /^(SET|set_config|option|startup packet)$/;
				}
				$session->quit;
			}
		}
	}
	return;
}

sub choose_for_session
{
	my (@states) = @_;
	my @choices = ([ 'source', 'urandom' ], [ 'source', 'typo' ], [ 'ordering', 'typo' ]);
	foreach my $where (sort keys %dba)
	{
		foreach my $choice (@choices)
		{
			my ($setting, $value) = @$choice;
			my $undo = eval { $dba{$where}->("fast_uuid.$setting", $value) };
			if (!defined $undo)
			{
				ok($value eq 'typo' && $where ne 'file' && $states[0]{known}, "$setting = '$value' is refused for $where at once");
				next;
			}
			foreach my $state (@states)
			{
				my $session = session('attacker', {});
				$session->query($state->{before});
				my $outcome = $session->outcome($state->{query}->(wrapped('')));
				$session->{failure} = $session->{error};
				check_choice($where, $state, $session, $outcome, $setting, $value);
				if ($outcome =~ /value/)
				{
					is(used($session), 'urandom', "$setting = '$value', $where, $state->{name}: from nowhere else")
					  if !$state->{worker};
				}
				elsif ($outcome eq '22023')
				{
					my $place = $where eq 'file' ? 'in the configuration file' : 'by ALTER (DATABASE|ROLE)';
					like($session->{error}, qr/"typo".*was set $place/, "$setting = '$value', $where, $state->{name}: it and its place are named");
				}
				$session->quit;
			}
			$undo->();
		}
	}
	return;
}

choose_in_session(@states);
choose_for_session(@states);

# A living session that reads a wrong file again.
$session = session('attacker', {});
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'a living session has a source');
foreach my $setting ('source', 'allowed_sources', 'ordering')
{
	append_to_file($node->data_dir . '/dba.conf', "fast_uuid.$setting = 'typo'\n");
	reload_in($session);
	unlike($session->outcome('SELECT uuidv7_fast()'), qr/value/, "and none after a reload with a wrong $setting");
	like($session->{error}, qr/"typo".* in the configuration file/, 'the error names it and its place');
	is(join('', @{ $session->{notices} }), '', 'and nobody else is told');
	unlink $node->data_dir . '/dba.conf';
	reload_in($session);
	like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'and once it is corrected the session goes on');
}
$session->quit;

# --- A wrong number or switch is no default either.

my %wrong = (buffer_size => '64.1kB', vdso => '2', max_clock_lead => '-2');
foreach my $setting (sort keys %wrong)
{
	foreach my $way (@ways)
	{
		my ($session, $outcome) = attempt('attacker', $way, $states[0], 'uuidv7_fast()', "fast_uuid.$setting" => 'typo');
		is($outcome, '22023', "$setting = 'typo', $way: the call is refused");
		like($session->{failure}, qr/invalid value for parameter "fast_uuid.$setting": "typo"/, "$setting = 'typo', $way: and says why");
		$session->quit;
	}
	foreach my $where (sort keys %dba)
	{
		my $undo = $dba{$where}->("fast_uuid.$setting", $wrong{$setting});
		$session = session('attacker', {});
		is($session->outcome('SELECT uuidv7_fast()'), '22023', "$setting = '$wrong{$setting}' from $where: the call is refused");
		$session->quit;
		$undo->();
	}
}

# --- A value that is hidden by another comes back: it counts as well.

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
$session = session('attacker', {});
$session->query($_) foreach "SET fast_uuid.source = 'urandom'", 'BEGIN', "SET LOCAL fast_uuid.source = 'xorshift128+'", $where{leader};
like($session->outcome('SELECT wrapped() FROM input WHERE n = 500'), qr/value/, 'hidden: a SET below a SET LOCAL, loaded in the leader');
is(used($session), 'xorshift128+', 'hidden: the source in force is that of SET LOCAL');
$session->query('COMMIT; SELECT uuidv7_fast()');
is(used($session), 'urandom xorshift128+', 'hidden: then that of SET');
$session->quit;

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
			like($session->{error}, qr/Roll back, and RESET it in a transaction of its own/, "$what: the hint says what to do");
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

# --- A seed is taken from SET alone, by who may.

my $seeded    = 'right(%s::text, 12)';
$session = session($superuser, {});
my $first = $session->query("SET fast_uuid.seed = '42'; " . sprintf "SELECT $seeded", "uuidv7_fast('xorshift128+')");
$session->quit;
like($first, qr/^[0-9a-f]{12}$/, 'a seed gives known random bits');

sub seeds
{
	my (@states) = @_;
	foreach my $way (@ways)
	{
		foreach my $state (@states)
		{
			my $call = sprintf $seeded, wrapped('xorshift128+');
			my ($session, $outcome) = attempt($superuser, $way, $state, $call, 'fast_uuid.seed' => '42');
			my $what = "seed, superuser, $way, $state->{name}";
			if ($way eq 'option' || $way eq 'startup packet')
			{
				is($outcome, '0A000', "$what: not taken");
				like($session->{failure}, qr/seed was set by a connection option; remove it there, a seed is accepted only from SET/, "$what: the error says so");
				like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "$what: other sources work");
			}
			else
			{
				like($outcome, qr/^value [0-9a-f]{12}$/, "$what: a value");
				ok(($outcome eq "value $first") == !$state->{worker}, "$what: the seed's, but for a worker's stream of its own");
			}
			$session->quit;

			($session, $outcome) = attempt('attacker', $way, $state, $call, 'fast_uuid.seed' => '42');
			isnt($outcome, "value $first", "seed, ordinary role, $way, $state->{name}: not taken ($outcome)");
			$session->quit;
		}
	}
	foreach my $where (sort keys %dba)
	{
		my $undo = $dba{$where}->('fast_uuid.seed', '42');
		foreach my $state (@states)
		{
			my $session = session('attacker', {});
			$session->query($state->{before});
			my $outcome = $session->outcome($state->{query}->(wrapped('xorshift128+')));
			is($outcome, '0A000', "seed from $where, $state->{name}: refused ($outcome)");
			like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "seed from $where, $state->{name}: other sources work")
			  if $outcome eq '0A000';
			$session->quit;
		}
		$undo->();
	}
	return;
}

seeds(@states);

# --- The same where the server has loaded the library.

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->restart;
@states = states(1);

foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom');
	attack_allowlist($where, @states);
	$undo->();
}
attack_function(@states);
choose_in_session(@states);
choose_for_session(@states);
seeds(@states);

$node->stop;
done_testing();
