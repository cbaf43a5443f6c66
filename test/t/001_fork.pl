# Processes that descend from one postmaster never share random bits: backends
# and parallel workers, with bytes buffered and a generator started in the
# postmaster before the first fork.

use strict;
use warnings;

use Cwd qw(getcwd);
use IPC::Run;
use POSIX ();
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $backends = 8;
my @sources  = ('openssl', 'getrandom', 'urandom', 'xorshift128+');

# 52 random bits of a value as text.  Among a million draws two may be equal by
# chance once in 9000 runs, and three pairs once in 10^12.
my $tail           = "right(id::text, 14)";
my $chance_allowed = 2;

my $module = getcwd() . '/test/modules/draw_in_postmaster';
BAIL_OUT("$module.so is not built: make test-modules") unless -e "$module.so";

my $node = PostgreSQL::Test::Cluster->new('preloaded');
$node->init;
$node->append_conf(
	'postgresql.conf', qq{
shared_preload_libraries = 'fast_uuid,$module'
max_worker_processes = 16
max_parallel_workers = 8
});
$node->start;
ok(slurp_file($node->logfile) =~ /drew from 4 entropy sources before the first fork/,
	'the postmaster has drawn from every source');

$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

# Backends, all at work at the same time.
$node->safe_psql('postgres', 'CREATE TABLE made (backend int, source text, n int, id uuid)');
my $per_source = 1_000_000 / $backends / @sources;
my @running    = map {
	my $backend = $_;
	IPC::Run::start(
		[
			'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
			map {
				( '-c',
					"INSERT INTO made SELECT $backend, '$_', n, uuidv7_fast('$_')"
					  . " FROM generate_series(1, $per_source) AS n")
			} @sources
		],
		'<', '/dev/null');
} 1 .. $backends;
is(scalar(grep { !IPC::Run::finish($_) } @running), 0, "$backends backends made their values");

is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM made'),
	'1000000|1000000', 'a million values of concurrent backends, none twice');
is( $node->safe_psql(
		'postgres',
		"SELECT source, count(DISTINCT $tail) FROM made WHERE n <= 3 GROUP BY source ORDER BY source"),
	join("\n", map { "$_|" . 3 * $backends } sort @sources),
	'no two backends start with the same random bits');
cmp_ok($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT $tail) FROM made"),
	'<=', $chance_allowed, 'no random bits shared between backends later');
is( $node->safe_psql(
		'postgres', 'SELECT bool_and(id > previous) FROM'
		  . ' (SELECT id, lag(id) OVER (PARTITION BY backend, source ORDER BY n) AS previous FROM made) AS pairs'),
	't', 'each backend made its values in strict order');

# Parallel workers.  Each setting makes two queries in one session, so that the
# second one's workers have the numbers of the first one's.
$node->safe_psql('postgres',
	    'CREATE TABLE input AS SELECT n FROM generate_series(1, 250000) AS n;'
	  . 'ALTER TABLE input SET (parallel_workers = 4);'
	  . 'ANALYZE input');

sub check_parallel
{
	my ($source, $seed) = @_;
	my $name  = "$source, " . ($seed eq '' ? 'unseeded' : "seed $seed");
	my $query = "SELECT uuidv7_fast('$source') AS id FROM input";
	my $plan  = $node->safe_psql(
		'postgres', qq{
SET fast_uuid.seed = '$seed';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
DROP TABLE IF EXISTS one, two, leader;
CREATE TABLE leader AS SELECT uuidv7_fast('$source') AS id FROM generate_series(1, 1000);
CREATE TABLE one AS $query;
CREATE TABLE two AS $query;
EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) SELECT count(*) FROM ($query OFFSET 0) AS made;
});
	like($plan, qr/Workers Launched: [1-4]/, "$name: parallel workers are at work");
	my $all = '(SELECT * FROM leader UNION ALL SELECT * FROM one UNION ALL SELECT * FROM two) AS made';
	is($node->safe_psql('postgres', "SELECT count(*), count(DISTINCT id) FROM $all"),
		'501000|501000', "$name: no value of a parallel worker twice");
	cmp_ok($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT $tail) FROM $all"),
		'<=', $chance_allowed, "$name: no random bits of a parallel worker twice");
	return;
}

check_parallel($_, '') foreach @sources;
check_parallel('xorshift128+', '42');

# Later workers of a seeded session, whose process ids have the same lower digits as
# those of earlier ones: a thousand processes in between.
{
	my $session = $node->background_psql('postgres');
	$session->query_safe(q{
CREATE TABLE few AS SELECT n FROM generate_series(1, 2000) AS n;
ALTER TABLE few SET (parallel_workers = 4);
CREATE TABLE drawn (id uuid, pid int);
CREATE FUNCTION worker() RETURNS int PARALLEL SAFE LANGUAGE plpgsql AS 'BEGIN RETURN pg_backend_pid(); END';
SET fast_uuid.seed = '42';
SET parallel_setup_cost = 0;
SET parallel_tuple_cost = 0;
SET min_parallel_table_scan_size = 0;
SET max_parallel_workers_per_gather = 4;
SET parallel_leader_participation = off});
	my $draw = sub {
		my $few = "CREATE TABLE some_ids AS SELECT uuidv7_fast('xorshift128+') AS id, worker() AS pid FROM few; INSERT INTO drawn SELECT * FROM some_ids; DROP TABLE some_ids;";
		$session->query_safe($few x 40);
	};
	$draw->();
	my $first = $node->safe_psql('postgres', 'SELECT min(pid) FROM drawn');
	my $pid   = $first;
	while (($pid - $first) % 1024 < 990)
	{
		$pid = fork // die "could not fork: $!";
		POSIX::_exit(0) if $pid == 0;
		waitpid $pid, 0;
	}
	$draw->();
	$session->quit;
	cmp_ok($node->safe_psql('postgres', 'SELECT count(DISTINCT pid) - count(DISTINCT pid & 1023) FROM drawn'), '>', 0, 'workers whose process ids end alike');
	is($node->safe_psql('postgres', "SELECT count(*) - count(DISTINCT $tail) FROM drawn"), '0', '... draw no random bits twice');
}

$node->stop;
done_testing();
