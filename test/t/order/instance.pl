# Where there are feeds, what is said where there are none; and their ids after a crash.

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

# Without preloading.
my @calls = map { "uuidv7_feed_$_" } 'id()', "id('urandom')", 'position()', 'watermark()', 'position_watermark()', 'wait(0)',
  "observe('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')", 'position_observe(0)', 'reset()';
my $session = RawSession->start($node);
if ($node->pg_version >= 17)
{
	like($session->outcome("SELECT $_"), qr/^value /, "without preloading: $_ works") foreach @calls;
}
else
{
	foreach my $call (@calls)
	{
		is($session->outcome("SELECT $call"), '55000', "without preloading: no $call");
		like($session->{error}, qr/ fast_uuid must be loaded via "shared_preload_libraries"\|.*\|Add fast_uuid to "shared_preload_libraries" and restart/,
			'... why, and what to do');
	}
	is($session->query('SELECT concat(s) FROM fast_uuid_stats() AS s OFFSET 1'), '(feed,,,,)', 'there are no statistics');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
}
like($session->outcome('SELECT uuidv7_fast()'), qr/^value ./, 'keys need no preloading');
$session->quit;
$node->restart;

# A backend killed at work, then an immediate shutdown.
$node->safe_psql('postgres', 'CREATE TABLE survivors (n bigserial, id uuid)');
foreach my $way ('SIGKILL', 'immediate shutdown')
{
	$node->safe_psql('postgres', 'INSERT INTO survivors (id) SELECT uuidv7_feed_id() FROM generate_series(1, 100000)');
	my $last_before = $node->safe_psql('postgres', 'SELECT uuidv7_feed_id()');

	my $victim = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres') . ' application_name=victim',
			'-c', 'DO $$ BEGIN LOOP PERFORM uuidv7_feed_id(); END LOOP; END $$'
		],
		'<', '/dev/null', '>&', \my $output);
	$node->poll_query_until('postgres',
		"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'victim' AND state = 'active' AND query LIKE 'DO%'")
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

	$node->safe_psql('postgres', 'INSERT INTO survivors (id) SELECT uuidv7_feed_id() FROM generate_series(1, 100000)');
	is($node->safe_psql('postgres', 'SELECT count(*) = count(DISTINCT id) FROM survivors'),
		't', "$way: values before and after are different");
	is( $node->safe_psql(
			'postgres', "SELECT '$last_before' < uuidv7_feed_id(), clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'feed'"),
		't|t', "$way: the server comes back with a sound order");
}

$node->stop;
done_testing();
