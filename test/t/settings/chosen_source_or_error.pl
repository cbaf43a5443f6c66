# What was chosen, or an error: every way to make a setting, before the library is loaded,
# after, and where a parallel query loads it, with the library preloaded and without.  A
# right setting is in force and causes no warning.  A seed is taken from SET alone, by who
# may.  An allowlist holds where the library is preloaded; where it is not, it is an error.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('chosen');
$node->init;
$node->append_conf('postgresql.conf', qq{
jit = off
max_worker_processes = 16
include_if_exists 'more.conf'
});
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE app LOGIN;
CREATE ROLE trusted LOGIN;
GRANT SET ON PARAMETER fast_uuid.allowed_sources TO trusted;
CREATE TABLE input AS SELECT n FROM generate_series(1, 1000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
GRANT SELECT ON input TO PUBLIC;
CREATE TABLE item (id uuid DEFAULT uuidv7_fast());
GRANT INSERT ON item TO PUBLIC;
-- The library is first needed when the body runs, above a parallel plan too.
CREATE FUNCTION wrapped(source text DEFAULT NULL) RETURNS uuid LANGUAGE plpgsql
	PARALLEL RESTRICTED AS 'BEGIN RETURN uuidv7_fast(source); END';
CREATE FUNCTION restricted(source text) RETURNS uuid LANGUAGE plpgsql SECURITY DEFINER
	SET fast_uuid.allowed_sources = 'getrandom' AS 'BEGIN RETURN uuidv7_fast(source); END';
});
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
my $more_conf = $node->data_dir . '/more.conf';
my $allowlist = 'fast_uuid.allowed_sources';

# The states of a session when it first generates: what it does before; its query of a call.
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'
  . ' SET min_parallel_table_scan_size = 0; SET parallel_leader_participation = off';
my @states = (
	{ name => 'not loaded', before => '', from => '' },
	{ name => 'loaded', before => "SELECT uuidv7_fast_min('2000-01-01Z')", from => '' },
	{ name => 'parallel', before => $parallel, from => 'FROM input WHERE n = 500' });
my $not_loaded = $states[0];

# The ways to make a setting: by the DBA, beforehand; by the client, as it connects; by SQL.
# %s stands for its name, and its value.
my @ways = (
	{ by => 'dba', name => 'file' },
	{ by => 'dba', name => 'DATABASE postgres' },
	{ by => 'dba', name => 'ROLE app' },
	{ by => 'dba', name => 'ROLE app IN DATABASE postgres' },
	{ by => 'dba', name => 'ROLE ALL' },
	{ by => 'function', name => 'FUNCTION wrapped' },
	{ by => 'client', name => 'option' },
	{ by => 'client', name => 'startup packet' },
	{ by => 'session', name => 'SET', set => "SET %s = '%s'" },
	{ by => 'session', name => 'set_config', set => "SELECT set_config('%s', '%s', false)" },
	{ by => 'session', name => 'SET LOCAL', set => "BEGIN; SET LOCAL %s = '%s'" });

# Have the server read its file again, and wait until it has.
sub reload
{
	my $time = $node->safe_psql('postgres', 'SELECT pg_conf_load_time()');
	$node->reload;
	$node->poll_query_until('postgres', "SELECT pg_conf_load_time() > '$time'")
	  or die 'the server has not read its file';
	return;
}

# What the DBA does first, if it is his way, and takes back.
sub prepare
{
	my ($way, $setting, $value) = @_;
	if ($way->{name} eq 'file')
	{
		append_to_file($more_conf, "$setting = '$value'\n");
		reload();
	}
	elsif ($way->{by} eq 'dba' || $way->{by} eq 'function')
	{
		$node->safe_psql('postgres', "ALTER $way->{name} SET $setting = '$value'");
	}
	return;
}

sub take_back
{
	my ($way, $setting) = @_;
	if ($way->{name} eq 'file')
	{
		unlink $more_conf;
		reload();
	}
	elsif ($way->{by} eq 'dba' || $way->{by} eq 'function')
	{
		$node->safe_psql('postgres', "ALTER $way->{name} RESET $setting");
	}
	return;
}

# A session in a state, in which the setting is made, unless the DBA has.
sub session
{
	my ($user, $way, $state, $setting, $value) = @_;
	my %packet = (user => $user);
	$packet{options} = "-c $setting=" . $value =~ s/ /\\ /r if $way->{name} eq 'option';
	$packet{$setting} = $value if $way->{name} eq 'startup packet';
	my $session = RawSession->connect($node, %packet);
	$session->query($state->{before});
	$session->query(sprintf $way->{set}, $setting, $value) if $way->{by} eq 'session';
	return $session;
}

sub plain_session
{
	my ($user) = @_;
	return RawSession->connect($node, user => $user);
}

sub check_no_warning
{
	my ($session, $name) = @_;
	is(join('|', $session->{error}, @{ $session->{notices} }), '', "$name: no error, no warning");
	return;
}

# That the parallel state is what it says
my $planner = plain_session('app');
$planner->query($parallel);
like($planner->query("EXPLAIN SELECT wrapped() $states[2]{from}"), qr/Gather/, 'a parallel plan');
$planner->quit;

# --- Not preloaded, a text for a setting that protects others is an error, each time;
# without it the library loads.

my $error = '55000 fast_uuid must be loaded via "shared_preload_libraries"'
  . " to set \"$allowlist\"||"
  . 'Add fast_uuid to "shared_preload_libraries" and restart the server,'
  . ' or remove the setting and reconnect.';

# First, because the server keeps a name as it was written first
foreach my $packet (
	{ options => '-c Fast_UUID.allowed_sources=getrandom' },
	{ $allowlist => 'getrandom', session_preload_libraries => 'fast_uuid' })
{
	my $session = RawSession->connect($node, user => $superuser, %$packet);
	$session->query('SELECT uuidv7_fast()') if $session->{error} eq '';
	is($session->{error}, $error, join(' ', "$allowlist by", sort keys %$packet));
}

foreach my $way (@ways)
{
	prepare($way, $allowlist, 'getrandom');
	foreach my $user ('app', $superuser)
	{
		next if $user eq $superuser && $way->{name} =~ /app/;
		my $name    = "$allowlist by $way->{name}, $user";
		my $session = session($user, $way, $not_loaded, $allowlist, 'getrandom');
		my @calls   = ('SELECT wrapped()');
		push @calls, 'INSERT INTO item DEFAULT VALUES', $states[1]{before}
		  unless $way->{by} eq 'function' || $way->{name} eq 'SET LOCAL';
		push @calls, "LOAD 'fast_uuid'" if @calls > 1 && $user eq $superuser;
		foreach my $call (@calls, @calls)
		{
			$session->query($call);
			is($session->{error}, $error, "$name: $call") unless $session->{error} =~ /^25P02/;
		}
		$session->query($_) foreach 'ROLLBACK', "RESET $allowlist";
		my $outcome = $session->outcome('SELECT uuidv7_fast()');
		my $expected = $way->{by} =~ /session|function/ ? qr/^value ./ : qr/^55000$/;
		like($outcome, $expected, "$name: after RESET");
		$session->quit;
	}
	take_back($way, $allowlist);
}
is($node->safe_psql('postgres', 'SELECT count(*) FROM item'), '0', "none by the column's default");

# Nothing is left of a load that failed, however often it is tried: what it registers with the
# server would be called at the end of each transaction.
my $trying = plain_session($superuser);
my $memory = "SELECT used_bytes FROM pg_backend_memory_contexts WHERE name = 'TopMemoryContext'";
my $failing = 'DO $$ BEGIN FOR i IN 1..%d LOOP BEGIN PERFORM uuidv7_fast();'
  . ' EXCEPTION WHEN object_not_in_prerequisite_state THEN END; END LOOP; END $$';
$trying->query_safe($_) foreach "SET $allowlist = 'getrandom'", sprintf($failing, 10);
my $before = $trying->query_safe($memory);
$trying->query_safe(sprintf $failing, 2000);
my $growth = $trying->query_safe($memory) - $before;
cmp_ok($growth, '<', 2000, "2000 loads that fail leave nothing behind (memory grew by $growth)");
$trying->query_safe("RESET $allowlist");
like($trying->outcome('SELECT uuidv7_fast()'), qr/^value ./, '... and the next one works');
$trying->quit;

# A worker has its leader's settings, not one that was made meanwhile.
my $leader = plain_session('app');
$leader->query($_) foreach 'SELECT uuidv7_fast()', $parallel;
$node->safe_psql('postgres', "ALTER ROLE app SET $allowlist = 'getrandom'");
like($leader->outcome("SELECT uuidv7_fast() $states[2]{from}"),
	qr/value/, 'a new worker of a loaded session starts');
$leader->quit;
$node->safe_psql('postgres', "ALTER ROLE app RESET $allowlist");

# What can be seen to be wrong only when the library is loaded is dropped, with a warning.
my %wrong = (source => 'typo', buffer_size => 'typo', seed => 'abc', sauce => 'openssl');
foreach my $setting (sort keys %wrong)
{
	my $session = plain_session($superuser);
	$session->query("SET fast_uuid.$setting = '$wrong{$setting}'");
	like($session->outcome('SELECT uuidv7_fast()'), qr/value/, "a wrong $setting: the call works");
	like("@{ $session->{notices} }", qr/^invalid.*"fast_uuid\.$setting"/, 'a warning says so');
	my $count = "SELECT count(*) FROM pg_settings WHERE name LIKE 'fast\\_uuid.%'";
	is($session->query("$count AND source <> 'default'"), '0', 'nothing is kept');
	$session->quit;
}

# A query that is cancelled while the library loads does not leave half of it.
my $module = getcwd() . '/test/modules/faults';
$node->safe_psql('postgres',
	"CREATE FUNCTION load_cancelled(file text) RETURNS bool AS '$module' LANGUAGE c");
my $cancelled = plain_session($superuser);
$cancelled->query("SET fast_uuid.sauce = 'a misspelt setting, of which the server warns'");
is($cancelled->outcome("SELECT load_cancelled('fast_uuid')"), '57014', 'a cancel during the load');
like("@{ $cancelled->{notices} }", qr/"fast_uuid\.sauce", removing it$/, 'comes after the warning');
like($cancelled->outcome('SELECT uuidv7_fast()'), qr/value/, 'and the next call works');
$cancelled->quit;

# --- Every right setting, in whatever way it is made, is in force.

my %right = (source => 'urandom', buffer_size => '1kB', vdso => 'off');

sub check_right_settings
{
	my ($preloaded) = @_;
	foreach my $way (@ways)
	{
		foreach my $setting ($way->{by} eq 'function' ? 'source' : sort keys %right)
		{
			prepare($way, "fast_uuid.$setting", $right{$setting});
			foreach my $state ($setting eq 'source' ? @states : $states[2])
			{
				my $name    = "$setting by $way->{name}, $state->{name}, $preloaded";
				my $session = session('app', $way, $state, "fast_uuid.$setting", $right{$setting});
				like($session->outcome("SELECT wrapped() $state->{from}"), qr/value/, $name);
				check_no_warning($session, $name);
				my $used = $session->query(
					"SELECT string_agg(name, ' ') FROM fast_uuid_sources() WHERE refills > 0");
				is($used, 'urandom', "$name: from there alone") if $setting eq 'source';
				is($session->query("SHOW fast_uuid.$setting"), $right{$setting}, "$name: in force")
				  unless $way->{by} eq 'function';
				$session->quit;
			}
			take_back($way, "fast_uuid.$setting");
		}
	}
	return;
}

# --- A seed is taken from SET alone, by who may.

# So is its start time; the UUID is the first from both, as in test/sql/repeat.sql.
my $seed  = '42 2026-01-01';
my $call  = "wrapped('xorshift128+')";
my $first = '019b76da-a800-7000-8007-1559e2525f98';

sub check_seed
{
	my ($preloaded) = @_;
	foreach my $way (@ways)
	{
		prepare($way, 'fast_uuid.seed', $seed);
		foreach my $user ('app', $superuser)
		{
			foreach my $state (@states)
			{
				my $name    = "seed by $way->{name}, $user, $state->{name}, $preloaded";
				my $session = session($user, $way, $state, 'fast_uuid.seed', $seed);
				my $outcome = $session->outcome("SELECT $call $state->{from}");
				if ($user eq $superuser && $way->{by} =~ /session|function/)
				{
					is($outcome, "value $first", "$name: taken");
					check_no_warning($session, $name);
				}
				else
				{
					unlike($outcome, qr/value 019b76da-|1559e2525f98/, "$name: not taken");
					like($outcome, qr/value/, "$name: random bits") if $way->{by} eq 'dba';
					like("@{ $session->{notices} }", qr/"xorshift128\+" is not seeded/, "$name: says so")
					  unless $preloaded eq 'preloaded' || $state->{name} eq 'loaded'
					  || $user eq $superuser && $way->{name} =~ /app/;
				}
				$session->quit;
			}
		}
		take_back($way, 'fast_uuid.seed');
	}
	return;
}

check_right_settings('not preloaded');
check_seed('not preloaded');

# --- The same where the server has loaded the library.

$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->restart;
check_right_settings('preloaded');
check_seed('preloaded');

# Nobody gets a UUID from another source than those allowed, by the settings that he makes,
# nor by those that he takes back.
my $any = "SELECT uuidv7_fast('xorshift128+')";

foreach my $dba (grep { $_->{by} eq 'dba' } @ways)
{
	prepare($dba, $allowlist, 'getrandom');
	foreach my $way (grep { $_->{by} =~ /client|session/ } @ways)
	{
		foreach my $setting ($allowlist, 'fast_uuid.source')
		{
			my $name    = "allowlist by $dba->{name}, $setting by $way->{name}";
			my $session = session('app', $way, $not_loaded, $setting, 'xorshift128+');
			unlike($session->outcome($_), qr/value/, "$name: $_")
			  foreach 'SELECT wrapped()', $any, 'INSERT INTO item DEFAULT VALUES';
			$session->query('ROLLBACK');
			foreach my $later ("RESET $allowlist", 'RESET ALL', 'DISCARD ALL')
			{
				$session->query($later);
				unlike($session->outcome($_), qr/value/, "$name, $later: $_")
				  foreach $any, "SET fast_uuid.source = 'xorshift128+'; SELECT wrapped()";
				$session->query('RESET fast_uuid.source');
			}
			like($session->outcome("SELECT uuidv7_fast('getrandom')"),
				qr/value/, "$name: what is allowed works in the end")
			  unless $session->{closed};
			$session->quit;
		}
	}
	take_back($dba, $allowlist);
}

# A function restricts its caller, who cannot widen it.
foreach my $way (grep { $_->{by} =~ /client|session/ } @ways)
{
	my $session = session('app', $way, $not_loaded, 'fast_uuid.source', 'xorshift128+');
	is($session->outcome('SELECT restricted(NULL)'),
		'42501', "a function with an allowlist, source by $way->{name}");
	$session->quit;
}
my $caller = plain_session('app');
is($caller->outcome("SELECT restricted('xorshift128+')"), '42501', 'a function with an allowlist');
like($caller->outcome("SELECT restricted('getrandom')"), qr/value/, 'gives what it allows');
like($caller->outcome($any), qr/value/, 'and its caller is free');
$caller->quit;

# Who was given the privilege restricts.
foreach my $way (grep { $_->{by} =~ /client|session/ } @ways)
{
	my $name    = "GRANT SET ON PARAMETER, $way->{name}";
	my $session = session('trusted', $way, $not_loaded, $allowlist, 'getrandom');
	like($session->outcome("SELECT uuidv7_fast('getrandom')"), qr/value/, "$name: it is taken");
	check_no_warning($session, $name);
	is($session->outcome($any), '42501', "$name: and holds");
	$session->quit;
}

$node->stop;
done_testing();
