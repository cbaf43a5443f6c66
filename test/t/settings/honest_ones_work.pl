# What refuses wrong settings leaves right ones alone: no error and no warning
# for users who did nothing wrong, with the library preloaded and without; nor do
# generators stand in the way of a parallel plan.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Attempts;
use RawSession;

start_node("max_prepared_transactions = 1\n");
$node->safe_psql(
	'postgres', q{
CREATE ROLE app LOGIN;
INSERT INTO input SELECT generate_series(1001, 10000);
ALTER TABLE item ADD n int;
GRANT CREATE ON SCHEMA public TO app;
GRANT EXECUTE ON FUNCTION fast_uuid_observe, fast_uuid_reset_ordering TO app;
GRANT SELECT ON item TO PUBLIC;
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

	# Before 17 no wider order can be had without preloading.
	my $least = $preload ne '' || $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000 ? 'instance' : 'session';

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
			"$parallel; SET fast_uuid.ordering = '$least'; $made;"
			  . " SELECT concat_ws(' ', count(DISTINCT id) / 100, bool_and(id > previous)) FROM (SELECT id, lag(id) OVER (ORDER BY ctid) AS previous FROM made) AS pairs; DROP TABLE made",
			$generators{$call});
	}

	# In a worker nothing is generated: before the leader has the library, and after.
	my $mistaken = RawSession->connect($node, user => 'app', database => 'postgres');
	$mistaken->query($_) foreach $parallel, 'SET parallel_leader_participation = off', "SET fast_uuid.ordering = '$least'";
	foreach my $call (sort keys %generators)
	{
		my $quoted = $call =~ s/'/''/gr;
		$mistaken->query("SELECT mistaken('$quoted') $plan");
		is($mistaken->{error}, '25000 cannot generate UUIDs in a parallel worker||Mark the calling function PARALLEL RESTRICTED.', "$how, $call in a worker");
		like($mistaken->outcome("SELECT $call"), qr/^value [0-9a-f]/, "$how, $call in its leader");
	}
	foreach my $function ('fast_uuid_observe', 'fast_uuid_reset_ordering', 'uuidv7_fast_wait', 'uuidv7_fast_watermark')
	{
		my $argument = $function =~ /observe/ ? 'uuidv7_fast_min(now())' : $function =~ /wait/ ? '0' : '';
		$mistaken->query("SELECT mistaken('$function($argument)') $plan");
		is($mistaken->{error}, "25000 cannot execute $function() in a parallel worker||Mark the calling function PARALLEL RESTRICTED.", "$how, $function() in a worker");
	}
	is($mistaken->query("SELECT held_back_by FROM fast_uuid_stats() WHERE name = 'instance'"), '', "$how, no worker holds the watermark back");
	$mistaken->quit;

	$node->safe_psql(
		'postgres', qq{
ALTER DATABASE postgres SET fast_uuid.source = 'getrandom';
ALTER ROLE app SET fast_uuid.source = 'urandom';
ALTER ROLE app IN DATABASE postgres SET fast_uuid.buffer_size = '1kB';
ALTER ROLE ALL SET fast_uuid.max_clock_lead = '5s';
});
	my $required = $preload eq '' ? 'session' : $least;
	$node->safe_psql(
		'postgres', qq{
ALTER DATABASE postgres SET fast_uuid.allowed_sources = 'openssl, getrandom, urandom';
ALTER DATABASE postgres SET fast_uuid.required_ordering = '$least';
}) if $preload ne '';
	check("$how, a role with settings", 'app', 'INSERT INTO item (n) VALUES (1), (2) RETURNING n', "1\n2");
	check("$how, its parallel query", 'app', "$parallel; SELECT count(uuidv7_fast()) $plan", '100');
	check("$how, its settings", 'app',
		'SELECT uuidv7_fast() IS NOT NULL; SHOW fast_uuid.source; SHOW fast_uuid.buffer_size; SHOW fast_uuid.max_clock_lead;'
		  . ' SHOW fast_uuid.ordering; SHOW fast_uuid.required_ordering',
		"t\nurandom\n1kB\n5s\nsession\n$required");
	check("$how, a source of its own choice", 'app', "SET fast_uuid.source = 'openssl'; SELECT uuidv7_fast() IS NOT NULL", 't');
	check("$how, the same by option", 'app', 'SELECT uuidv7_fast() IS NOT NULL', 't', options => '-c fast_uuid.source=getrandom');
	check("$how, an order of its own choice", 'app', "SET fast_uuid.ordering = 'session'; SELECT uuidv7_fast() IS NOT NULL; SHOW fast_uuid.ordering", "t\nsession");
	check("$how, the same by option, in a parallel query", 'app', "$parallel; SELECT count(wrapped()) $plan; RESET fast_uuid.ordering; SELECT count(wrapped()) $plan",
		"100\n100", options => "-c fast_uuid.ordering=$least");
	my @chosen = ([ source => 'urandom' ], [ buffer_size => '1kB' ], [ vdso => 'off' ], [ ordering => $least ], [ max_clock_lead => '5s' ]);
	check("$how, settings before a parallel query that loads the library", 'app',
		join('; ', map({ "SET fast_uuid.$_->[0] = '$_->[1]'" } @chosen), $parallel, "SELECT count(wrapped()) $plan", map { "SHOW fast_uuid.$_->[0]" } @chosen),
		join("\n", 100, map { $_->[1] } @chosen));
	check("$how, who was given the privilege, by SET once the library is loaded", 'trusted',
		"SELECT uuidv7_fast() IS NOT NULL; SET fast_uuid.allowed_sources = 'urandom'; SET fast_uuid.required_ordering = '$least';"
		  . " SELECT count(uuidv7_fast('urandom')) $plan; RESET fast_uuid.required_ordering", "t\n100");
	check("$how, the same by option", 'trusted', "SELECT uuidv7_fast('urandom') IS NOT NULL", 't',
		options => "-c fast_uuid.allowed_sources=urandom -c fast_uuid.required_ordering=$least") if $preload ne '';

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
