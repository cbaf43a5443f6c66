# What was asked for, or an error: every way to make a setting, before and after the
# library is loaded, and with its first load inside a parallel operation, against the
# source and the seed; against the allowlist where the library is preloaded.  Where it
# is not, that list is an error.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

# A server, an attacker, an ordinary role, and what calls are wrapped in.
my $node = PostgreSQL::Test::Cluster->new('chosen');
$node->init;
$node->append_conf('postgresql.conf', "jit = off\nmax_worker_processes = 16\ninclude_if_exists 'dba.conf'\n");
$node->start;

$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE attacker LOGIN;
CREATE ROLE trusted LOGIN;
GRANT SET ON PARAMETER fast_uuid.allowed_sources TO trusted;
CREATE TABLE input AS SELECT n FROM generate_series(1, 1000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
GRANT SELECT ON input TO PUBLIC;
-- The library is first needed when the body runs, above a parallel plan too.
CREATE FUNCTION wrapped(source text) RETURNS uuid LANGUAGE plpgsql PARALLEL RESTRICTED AS
	'BEGIN RETURN uuidv7_fast(source); END';
CREATE FUNCTION restricted(source text) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom' AS 'BEGIN RETURN uuidv7_fast(source); END';
CREATE FUNCTION restricted_for_caller(source text) RETURNS uuid LANGUAGE plpgsql
	SET fast_uuid.allowed_sources = 'getrandom' AS 'BEGIN RETURN uuidv7_fast(source); END';
CREATE TABLE item (id uuid DEFAULT uuidv7_fast());
GRANT INSERT ON item TO PUBLIC;
});
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

my $loading  = "SELECT uuidv7_fast_min('2000-01-01Z')";
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';

# The states of a session when it first generates: its name; what it does before;
# and the query around a call.
my $plain = sub { "SELECT $_[0]" };
my @states = (
	{ name => 'not loaded', before => '', query => $plain },
	{ name => 'loaded', before => $loading, query => $plain },
	{   name     => 'parallel',
		before   => "$parallel; SET max_parallel_workers = 0",
		query    => sub { "SELECT $_[0] FROM input WHERE n = 500" }
	});

# Ways to make settings in a session: what goes into the startup packet, and
# statements for after.
my %way = (
	'option' => sub { my %s = @_; return ({ options => join ' ', map { "-c $_=$s{$_}" } sort keys %s }, '', '') },
	'startup packet' => sub { my %s = @_; return ({%s}, '', '') },
	'SET'            => sub { my %s = @_; return ({}, join('', map { "SET $_ = '$s{$_}';" } sort keys %s), '') },
	'set_config'     =>
	  sub { my %s = @_; return ({}, join('', map { "SELECT set_config('$_', '$s{$_}', false);" } sort keys %s), '') },
	'SET LOCAL' => sub { my %s = @_; return ({}, join('', 'BEGIN;', map { "SET LOCAL $_ = '$s{$_}';" } sort keys %s), 'ROLLBACK') });
my @ways = sort keys %way;

# Ways by which the DBA says what holds; each returns how to take it back.
my %dba = (
	'file' => sub {
		my ($name, $value) = @_;
		my $file = $node->data_dir . '/dba.conf';
		append_to_file($file, "$name = '$value'\n");
		$node->restart;
		return sub { unlink $file; $node->restart };
	},
	map {
		my $object = $_;
		( $object => sub {
				my ($name, $value) = @_;
				$node->safe_psql('postgres', "ALTER $object SET $name = '$value'");
				return sub { $node->safe_psql('postgres', "ALTER $object RESET $name") };
			})
	} ('DATABASE postgres', 'ROLE attacker', 'ROLE attacker IN DATABASE postgres', 'ROLE ALL'));

sub session
{
	my ($user, $packet) = @_;
	return RawSession->connect($node, user => $user, database => 'postgres', %$packet);
}

# A session whose settings are made in one of the ways, in one of the states, and
# what comes of a call in it.
sub attempt
{
	my ($user, $way, $state, $call, %settings) = @_;
	my ($packet, $before, $after) = $way{$way}->(%settings);
	my $session = session($user, $packet);
	$session->query($state->{before});
	$session->query($before);
	my $outcome = $session->outcome($state->{query}->($call));
	$session->query($after);
	return ($session, $outcome);
}

# What a value in a session came from: the sources that were asked.
sub used
{
	my ($session) = @_;
	return $session->query("SELECT string_agg(name, ' ') FROM fast_uuid_sources() WHERE refills > 0");
}

# Have the server read its file again, and wait until this session has.
sub reload_in
{
	my ($session) = @_;
	my $time = $session->query('SELECT pg_conf_load_time()');
	$node->reload;
	return if $session->{closed};    # the server has refused the connection
	foreach (1 .. 1000 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return if $session->query('SELECT pg_conf_load_time()') ne $time;
	}
	fail('the session reads the file again');
	return;
}

# That the parallel state is what it says.
my $in_parallel = $states[-1];
my $honest = session('attacker', {});
$honest->query($in_parallel->{before});
like($honest->query('EXPLAIN ' . $in_parallel->{query}->('wrapped(NULL)')), qr/Gather/, 'the first call above a parallel plan');
$honest->quit;

# --- Restricted sources: nobody gets a value from another one.

sub attack_allowlist
{
	my ($where, @attacks) = @_;
	foreach my $way (@attacks)
	{
		my $what = "allowlist from $where, $way";
		my ($session, $outcome) = attempt(
			'attacker', $way, $states[0], 'wrapped(NULL)',
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
	return;
}

sub attack_function
{
	foreach my $way (@ways)
	{
		foreach my $function ('restricted', 'restricted_for_caller')
		{
			my ($session, $outcome) = attempt('attacker', $way, $states[0], "$function('xorshift128+')",
				'fast_uuid.allowed_sources' => 'xorshift128+');
			unlike($outcome, qr/value/, "allowlist from $function(), $way: no value ($outcome)");
			$session->quit;
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

# --- Not preloaded, a text for a setting that protects others is an error, each time;
# without it the library loads.

my ($name, $value) = ('fast_uuid.allowed_sources', 'getrandom');
my $option = { options => "-c $name=$value" };
my $error  = "55000 fast_uuid must be loaded via \"shared_preload_libraries\" to set \"$name\"||"
  . 'Add fast_uuid to "shared_preload_libraries" and restart the server, or remove the setting and reconnect.';
my $refused = sub {
	my ($how, $user, $packet, $set) = @_;
	my $session = session($user, $packet);
	$session->query($set);
	foreach my $call (('INSERT INTO item DEFAULT VALUES', $loading, $user eq $superuser ? "LOAD 'fast_uuid'" : ()) x 2)
	{
		is($session->query($call) . $session->{error}, $error, "$name by $how: $call");
	}
	$session->query("RESET $name");
	like($session->outcome('SELECT uuidv7_fast()'), $set eq '' ? qr/^55000/ : qr/^value ./, "$name by $how: after RESET");
	$session->quit;
};
$refused->('SET',    $_, {},      "SET $name = '$value'") foreach 'attacker', $superuser;
$refused->('option', $_, $option, '') foreach 'attacker', $superuser;
$refused->('option, in capitals', 'attacker', { options => '-c ' . ucfirst($name) . "=$value" }, '');

is(session($superuser, { %$option, session_preload_libraries => 'fast_uuid' })->{error}, $error, "$name by option, session_preload_libraries");
foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->($name, $value);
	$refused->($where, $_, {}, '') foreach 'attacker', $where =~ /attacker/ ? () : $superuser;
	$undo->();
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM item'), '0', 'no value by the column\'s default');

# A worker has its leader's settings, not one that was made meanwhile.
my $session = session('attacker', {});
$session->query($_) foreach 'SELECT uuidv7_fast()', $parallel, 'SET parallel_leader_participation = off';
my $undo = $dba{'ROLE attacker'}->($name, $value);
like($session->outcome('SELECT uuidv7_fast() FROM input WHERE n = 500'), qr/value/, 'a new worker of a loaded session starts');
$session->quit;
$undo->();

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

# --- The chosen source, in whatever way it was chosen.

foreach my $way (@ways)
{
	foreach my $state (@states)
	{
		my $what = "source = 'urandom', $way, $state->{name}";
		my ($session, $outcome) = attempt('attacker', $way, $state, 'wrapped(NULL)', 'fast_uuid.source' => 'urandom');
		like($outcome, qr/value/, "$what: the call is answered");
		is(used($session), 'urandom', "$what: from nowhere else");
		is(join('', @{ $session->{notices} }), '', "$what: no warning");
		$session->quit;
	}
}

# A session that has the library keeps what it has when it reads a wrong file.
$session = session('attacker', {});
like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'a session has a source');
foreach my $setting ('source', 'allowed_sources')
{
	my $before = $session->query("SHOW fast_uuid.$setting");
	append_to_file($node->data_dir . '/dba.conf', "fast_uuid.$setting = 'typo'\n");
	reload_in($session);
	is($session->query("SHOW fast_uuid.$setting"), $before, "after a reload with a wrong $setting it has the same");
	like($session->outcome('SELECT uuidv7_fast()'), qr/value/, 'and generates');
	unlink $node->data_dir . '/dba.conf';
	reload_in($session);
}
$session->quit;

# --- A seed is taken from SET alone, by who may.

my $seeded    = 'right(%s::text, 12)';
$session = session($superuser, {});
my $first = $session->query("SET fast_uuid.seed = '42'; " . sprintf "SELECT $seeded", "uuidv7_fast('xorshift128+')");
$session->quit;
like($first, qr/^[0-9a-f]{12}$/, 'a seed gives known random bits');

foreach my $way (@ways)
{
	foreach my $state (@states)
	{
		my $call = sprintf $seeded, "wrapped('xorshift128+')";
		my ($session, $outcome) = attempt($superuser, $way, $state, $call, 'fast_uuid.seed' => '42');
		my $what = "seed, superuser, $way, $state->{name}";
		if ($way eq 'option' || $way eq 'startup packet')
		{
			isnt($outcome, "value $first", "$what: not taken");
			like(join('', @{ $session->{notices} }) . $session->{error}, qr/invalid value for parameter "fast_uuid\.seed": "42"/, "$what: and that is said");
		}
		else
		{
			is($outcome, "value $first", "$what: the seed's");
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
		my $outcome = $session->outcome($state->{query}->(sprintf $seeded, "wrapped('xorshift128+')"));
		like($outcome, qr/^value [0-9a-f]{12}$/, "seed from $where, $state->{name}: a value");
		isnt($outcome, "value $first", "seed from $where, $state->{name}: not the seed's");
		$session->quit;
	}
	$undo->();
}

# --- The same where the server has loaded the library.

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->restart;

foreach my $where (sort keys %dba)
{
	my $undo = $dba{$where}->('fast_uuid.allowed_sources', 'getrandom');
	attack_allowlist($where, $where eq 'DATABASE postgres' ? @ways : ('SET', 'startup packet'));
	$undo->();
}
attack_function();

# A source that is not allowed is a wish like any other.
my ($wish, $outcome) =
  attempt($superuser, 'SET', $states[0], 'wrapped(NULL)', 'fast_uuid.source' => 'xorshift128+', 'fast_uuid.allowed_sources' => 'getrandom');
is($outcome, '42501', "source = 'xorshift128+', not allowed: the call is refused");
$wish->quit;

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

$node->stop;
done_testing();
