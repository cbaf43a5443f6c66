# fast_uuid.ordering = instance, and durable: where they can be had; and after a crash.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;
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
	my $statistics = "SELECT concat(s) FROM fast_uuid_stats() AS s WHERE name = 'instance'";
	is($node->safe_psql('postgres', $statistics), '(instance,,,,)', 'there are no statistics');
	($code, $out, $err) = $node->psql('postgres', 'SELECT uuidv7_fast_watermark()');
	like($err, qr/ERROR:  fast_uuid must be loaded via/, 'and no watermark');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	$node->restart;
	my $refusal = qr/^0A000 ordering "durable" requires PostgreSQL 17 or later\|.*\|Lower "fast_uuid/;
	my $session = RawSession->start($node);
	foreach my $setting ('ordering', 'required_ordering')
	{
		$session->query_safe("RESET fast_uuid.ordering; SET fast_uuid.$setting = 'durable'");
		foreach my $call ('uuidv7_fast()', 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)',
			'fast_uuid_observe(uuidv7_fast_min(now()))', 'fast_uuid_reset_ordering()')
		{
			is($session->query("SELECT $call"), '', "$setting = durable, $call: nothing");
			like($session->{error}, $refusal, "$setting = durable, $call: and why");
		}
	}
	like($session->query('SELECT uuidv7_fast_at(now())'), qr/-/, 'what has no order works');
	$session->quit;
	is($node->safe_psql('postgres', "$instance; SELECT uuidv7_fast() IS NOT NULL"), 't', 'with preloading: works');
}

# A backend killed in the middle of bulk generation, then an immediate shutdown.
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
	is($node->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM survivors'),
		't', "$way: values before and after are different");
	is( $node->safe_psql(
			'postgres', "$instance; SELECT '$last_before' < uuidv7_fast(), clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'instance'"),
		't|t', "$way: the server comes back with a sound order");
}

$node->stop;
done_testing();
