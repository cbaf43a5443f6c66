# fast_uuid.ordering = instance: where it can be had, how it goes with session
# order in one backend and in bulk, and after a crash.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Watchdog;

my $node = PostgreSQL::Test::Cluster->new('instance');
$node->init;
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $instance = "SET fast_uuid.ordering = 'instance'";

# Without preloading.
my ($code, $out, $err) = $node->psql('postgres',
	"\\set VERBOSITY verbose\n$instance; SELECT uuidv7_fast() IS NOT NULL; SELECT uuidv7_fast_array(3) IS NOT NULL;"
	  . "RESET fast_uuid.ordering; SELECT uuidv7_fast() IS NOT NULL",
	on_error_stop => 0);
if ($version >= 170000)
{
	is($out, "t\nt\nt", 'without preloading: works');
	is($err, '', 'without preloading: no complaint');
}
else
{
	is($out, 't', 'without preloading: no value under instance order, session order still works');
	like($err, qr/^.*ERROR:  55000: fast_uuid must be loaded via "shared_preload_libraries".*ERROR:  55000: fast_uuid must be loaded/s,
		'without preloading: an error for every call');
	like($err, qr/HINT:  Add fast_uuid to "shared_preload_libraries" and restart/, 'the hint says what to do');
	is( $node->safe_psql('postgres', "SELECT clock_lead IS NULL FROM fast_uuid_stats() WHERE name = 'instance'"),
		't', 'there are no statistics');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	$node->restart;
	is($node->safe_psql('postgres', "$instance; SELECT uuidv7_fast() IS NOT NULL"), 't', 'with preloading: works');
}

is($node->safe_psql('postgres', "SELECT largest_clock_lead < interval '1 min' FROM fast_uuid_stats() WHERE name = 'instance'"),
	't', 'a new instance has not been ahead of the clock');

# One backend: the scope changes from value to value, alone and in bulk.
is( $node->safe_psql(
		'postgres', q{
CREATE TABLE kept (n serial, id uuid);
DO $$
BEGIN
  FOR i IN 1..300 LOOP
    PERFORM set_config('fast_uuid.ordering', CASE WHEN i % 3 = 0 THEN 'session' ELSE 'instance' END, true);
    INSERT INTO kept (id) VALUES (uuidv7_fast());
    INSERT INTO kept (id) SELECT unnest(uuidv7_fast_array(i));
    INSERT INTO kept (id) SELECT uuidv7_fast_set(i);
    INSERT INTO kept (id) VALUES (uuidv7_fast('getrandom'));
  END LOOP;
END $$;
SELECT count(*), count(DISTINCT id), bool_and(id > previous)
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM kept) AS pairs}),
	'90900|90900|t', 'one order across changes of the scope');

# Two sessions in turn.
my @sessions = map { $node->background_psql('postgres') } 1 .. 2;
$_->query_safe($instance) foreach @sessions;
my ($latest, $violations) = ('', 0);
foreach my $turn (1 .. 200)
{
	my $call = (
		'uuidv7_fast()',
		'(uuidv7_fast_array(1000))[1000]',
		"uuidv7_fast('xorshift128+')",
		'(SELECT id FROM uuidv7_fast_set(300) AS id ORDER BY id DESC LIMIT 1)')[ $turn / 2 % 4 ];
	my $id = $sessions[ $turn % 2 ]->query_safe("SELECT $call");
	$violations++ if $id le $latest;
	$latest = $id;
}
is($violations, 0, 'two sessions in turn: each value is greater than the other\'s before');

# A set that rests in one session while another generates UUIDs.
$sessions[0]->query_safe('BEGIN; DECLARE resting CURSOR FOR SELECT uuidv7_fast_set(10)');
my @ids = map { ($sessions[0]->query_safe('FETCH resting'), $sessions[1]->query_safe('SELECT uuidv7_fast()')) } 1 .. 5;
is(join(' ', @ids), join(' ', sort @ids), 'each row of a set is greater than what another session made before it');
$sessions[0]->query_safe('COMMIT');

$_->quit foreach @sessions;

# A backend killed in the middle of bulk generation, then an immediate shutdown.
sub all_values
{
	return $node->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM survivors');
}
$node->safe_psql('postgres', 'CREATE TABLE survivors (n bigserial, id uuid)');
foreach my $way ('SIGKILL', 'immediate shutdown')
{
	$node->safe_psql('postgres', "$instance; INSERT INTO survivors (id) SELECT uuidv7_fast_set(100000)");
	my $last_before = $node->safe_psql('postgres', "$instance; SELECT uuidv7_fast()");

	my $victim = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=victim',
			'-c', $instance, '-c', 'SELECT count(*) FROM (SELECT uuidv7_fast_array(100000) FROM generate_series(1, 1000000)) AS made'
		],
		'<', '/dev/null', '>&', \my $output);
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active' AND query LIKE '%array%'")
	  or BAIL_OUT('the victim does not start');
	my $log_before = -s $node->logfile;
	if ($way eq 'SIGKILL')
	{
		my $pid = $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE application_name = 'victim'");
		is(kill('KILL', $pid), 1, "$way: a backend at work is killed");
		$node->wait_for_log(qr/all server processes terminated/, $log_before);
	}
	else
	{
		$node->stop('immediate');
		$node->start;
	}
	IPC::Run::finish($victim);
	wait_until_up($node);

	$node->safe_psql('postgres', "$instance; INSERT INTO survivors (id) SELECT uuidv7_fast_set(100000)");
	is(all_values(), 't', "$way: values before and after are different");
	is( $node->safe_psql(
			'postgres', "$instance; SELECT '$last_before' < uuidv7_fast(), clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'instance'"),
		't|t', "$way: the server comes back with a sound order");
}

$node->stop;
done_testing();
