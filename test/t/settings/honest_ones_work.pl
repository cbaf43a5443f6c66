# What refuses wrong settings leaves right ones alone: no error and no warning
# for users who did nothing wrong, with the library preloaded and without; nor do
# generators stand in the way of a parallel plan.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0';
my $node = PostgreSQL::Test::Cluster->new('honest');
$node->init;
$node->append_conf('postgresql.conf', "jit = off\nmax_worker_processes = 16");
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE app LOGIN;
CREATE ROLE trusted LOGIN;
GRANT SET ON PARAMETER fast_uuid.allowed_sources TO trusted;
CREATE TABLE input AS SELECT n FROM generate_series(1, 10000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
GRANT SELECT ON input TO PUBLIC;
CREATE TABLE item (id uuid DEFAULT uuidv7_fast(), n int);
-- The library is first needed when the body runs, above a parallel plan too.
CREATE FUNCTION wrapped() RETURNS uuid LANGUAGE plpgsql PARALLEL RESTRICTED AS
	'BEGIN RETURN uuidv7_fast(); END';
GRANT CREATE ON SCHEMA public TO app;
GRANT EXECUTE ON FUNCTION fast_uuid_observe, fast_uuid_reset_ordering, uuidv7_feed_observe, uuidv7_feed_position_observe, uuidv7_feed_reset TO app;
GRANT INSERT, SELECT ON item TO PUBLIC;
CREATE FUNCTION mistaken(call text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
	'DECLARE id text; BEGIN EXECUTE concat($$SELECT $$, call) INTO id; RETURN id; END';
});

# What generates, and how many UUIDs in ascending order; one that is in none.
my %generators = (
	'uuidv7_fast()'                => '1 t',
	"uuidv7_fast('urandom')"       => '1 t',
	"uuidv7_fast(interval '0')"    => '1 t',
	'unnest(uuidv7_fast_array(3))' => '3 t',
	'uuidv7_fast_set(3)'           => '3 t',
	'uuidv7_fast_at(now())'        => '1 f');
my %feed_generators = ('uuidv7_feed_id()' => '1 t', "uuidv7_feed_id('urandom')" => '1 t', 'uuidv7_feed_position()' => '1 t');

# A new session of a role: statements, each a transaction; what they give, and that
# nothing is said.
sub check
{
	my ($what, $user, $statements, $expected, %packet) = @_;
	my $session = RawSession->connect($node, user => $user, database => 'postgres', %packet);
	my (@rows, @errors);
	foreach my $statement (split /; /, $statements)
	{
		push @rows, grep { $_ ne '' } $session->query($statement);
		push @errors, grep { $_ ne '' } $session->{error};
	}
	is(join("\n", @rows), $expected, $what);
	is(join("\n", @errors), '', "$what: no error");
	is(join('|', @{ $session->{notices} }), '', "$what: no warning");
	$session->quit;
	return;
}

foreach my $preload ('', 'fast_uuid')
{
	my $how = $preload eq '' ? 'not preloaded' : 'preloaded';
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\n");
	$node->restart;

	# Before 17 there are no feeds without preloading.
	%generators = (%generators, %feed_generators) if $preload ne '' || $node->pg_version >= 17;

	my $plan = 'FROM input WHERE n % 100 = 0';
	check("$how, a fresh session's parallel query", 'app', "$parallel; SELECT count(uuidv7_fast()) $plan", '100');
	check("$how, the same in a function's body, without a setting", 'app', "$parallel; SELECT count(wrapped()) $plan", '100');
	check("$how, the same where a setting was made and taken back", 'app',
		"SET fast_uuid.source = 'urandom'; RESET fast_uuid.source; $parallel; SELECT count(wrapped()) $plan", '100');

	# A parallel plan stays one: the leader generates above it, in one order.
	foreach my $call (sort keys %generators)
	{
		my $made = "CREATE TABLE made AS SELECT $call AS id $plan";
		like($node->safe_psql('postgres', "$parallel; EXPLAIN $made"), qr/Gather/, "$how, $call: a parallel plan");
		check("$how, $call above it", 'app',
			"$parallel; $made;"
			  . " SELECT concat_ws(' ', count(DISTINCT id) / 100, bool_and(id > previous)) FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS previous FROM made) AS pairs; DROP TABLE made",
			$generators{$call});
	}

	# In a worker nothing is generated: before the leader has the library, and after.
	my $mistaken = RawSession->connect($node, user => 'app', database => 'postgres');
	$mistaken->query($_) foreach $parallel, 'SET parallel_leader_participation = off';
	foreach my $call (sort keys %generators)
	{
		my $quoted = $call =~ s/'/''/gr;
		$mistaken->query("SELECT mistaken('$quoted') $plan");
		my $what = $call =~ /feed_(id|position)/ ? $1 eq 'id' ? 'feed ids' : 'positions' : 'UUIDs';
		is($mistaken->{error}, "25000 cannot generate $what in a parallel worker||Mark the calling function PARALLEL RESTRICTED.", "$how, $call in a worker");
		like($mistaken->outcome("SELECT $call"), qr/^value [0-9a-f]/, "$how, $call in its leader");
	}
	foreach my $function ('fast_uuid_observe', 'fast_uuid_reset_ordering',
		map { "uuidv7_feed_$_" } qw(observe position_observe reset wait watermark position_watermark))
	{
		my $argument = $function =~ /wait|position_obs/ ? '0' : $function =~ /observe/ ? 'uuidv7_fast_min(now())' : '';
		$mistaken->query("SELECT mistaken('$function($argument)') $plan");
		is($mistaken->{error}, "25000 cannot execute $function() in a parallel worker||Mark the calling function PARALLEL RESTRICTED.", "$how, $function() in a worker");
	}
	is($mistaken->query("SELECT held_back_by FROM fast_uuid_stats() WHERE name = 'feed'"), '', "$how, no worker holds the watermark back");
	$mistaken->quit;

	$node->safe_psql(
		'postgres', qq{
ALTER DATABASE postgres SET fast_uuid.source = 'getrandom';
ALTER ROLE app SET fast_uuid.source = 'urandom';
ALTER ROLE app IN DATABASE postgres SET fast_uuid.buffer_size = '1kB';
ALTER ROLE ALL SET fast_uuid.max_clock_lead = '5s';
});
	$node->safe_psql('postgres', "ALTER DATABASE postgres SET fast_uuid.allowed_sources = 'openssl, getrandom, urandom'") if $preload ne '';
	check("$how, a role with settings", 'app', 'INSERT INTO item (n) VALUES (1), (2) RETURNING n', "1\n2");
	check("$how, its parallel query", 'app', "$parallel; SELECT count(uuidv7_fast()) $plan", '100');
	check("$how, its settings", 'app',
		'SELECT uuidv7_fast() IS NOT NULL; SHOW fast_uuid.source; SHOW fast_uuid.buffer_size; SHOW fast_uuid.max_clock_lead',
		"t\nurandom\n1kB\n5s");
	check("$how, a source of its own choice", 'app', "SET fast_uuid.source = 'openssl'; SELECT uuidv7_fast() IS NOT NULL", 't');
	check("$how, the same by option", 'app', 'SELECT uuidv7_fast() IS NOT NULL', 't', options => '-c fast_uuid.source=getrandom');
	check("$how, the same in a parallel query", 'app', "$parallel; SELECT count(wrapped()) $plan; RESET fast_uuid.source; SELECT count(wrapped()) $plan",
		"100\n100", options => '-c fast_uuid.source=getrandom');
	my @chosen = ([ source => 'urandom' ], [ buffer_size => '1kB' ], [ vdso => 'off' ], [ max_clock_lead => '5s' ]);
	check("$how, settings before a parallel query that loads the library", 'app',
		join('; ', map({ "SET fast_uuid.$_->[0] = '$_->[1]'" } @chosen), $parallel, "SELECT count(wrapped()) $plan", map { "SHOW fast_uuid.$_->[0]" } @chosen),
		join("\n", 100, map { $_->[1] } @chosen));
	check("$how, who was given the privilege, by SET once the library is loaded", 'trusted',
		"SELECT uuidv7_fast() IS NOT NULL; SET fast_uuid.allowed_sources = 'urandom';"
		  . " SELECT count(uuidv7_fast('urandom')) $plan; RESET fast_uuid.allowed_sources", "t\n100");
	check("$how, the same by option", 'trusted', "SELECT uuidv7_fast('urandom') IS NOT NULL", 't',
		options => '-c fast_uuid.allowed_sources=urandom') if $preload ne '';

	$node->safe_psql('postgres', 'CREATE TABLE indexed AS SELECT uuidv7_fast() AS id, n FROM generate_series(1, 100000) AS n;'
		  . ' ALTER TABLE indexed SET (parallel_workers = 2); ALTER TABLE indexed OWNER TO app') if $preload eq '';
	check("$how, an index built in parallel", 'app',
		"SET min_parallel_table_scan_size = 0; SET maintenance_work_mem = '256MB';"
		  . ' CREATE INDEX ON indexed (uuidv7_fast_timestamp(id)); SELECT count(*) FROM indexed', '100000');

	$node->safe_psql(
		'postgres', q{
ALTER DATABASE postgres RESET ALL;
ALTER ROLE app RESET ALL;
ALTER ROLE app IN DATABASE postgres RESET ALL;
ALTER ROLE ALL RESET ALL;
});
}

$node->stop;
done_testing();
