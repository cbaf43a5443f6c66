# Another library whose hooks fast_uuid finds in its place, or that finds fast_uuid's:
# both have their shared memory when the server has started, also after a crash.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;
use Watchdog;

my $module = getcwd() . '/test/modules/chained_hooks';
my $node   = PostgreSQL::Test::Cluster->new('hooks');
plan skip_all => 'since PostgreSQL 17 fast_uuid has no hooks' if $node->pg_version >= 17;
$node->init;
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
$node->stop;

sub check
{
	my ($name, $log, @messages) = @_;
	foreach my $message (@messages)
	{
		like(substr(slurp_file($node->logfile), $log), qr/chained_hooks $message/, "$name: the other library $message");
	}
	is( $node->safe_psql('postgres', 'SELECT count(DISTINCT uuidv7_feed_id()) FROM generate_series(1, 1000); SELECT uuidv7_feed_watermark() IS NOT NULL'),
		"1000\nt", "$name: so has fast_uuid");
	return;
}

foreach my $libraries ("$module, fast_uuid", "fast_uuid, $module")
{
	my $name = $libraries =~ /^fast_uuid/ ? 'loaded after fast_uuid' : 'loaded before fast_uuid';
	my $log  = -s $node->logfile;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	ok($node->start(fail_ok => 1), "$name: the server starts") or next;
	check($name, $log, 'has asked for its memory', 'has its memory');

	# All children end, and the memory that was asked for is made anew.
	$log = -s $node->logfile;
	my $session = RawSession->start($node);
	kill 'KILL', $session->query('SELECT pg_backend_pid()');
	wait_until('the server is ready again', sub { substr(slurp_file($node->logfile), $log) =~ /ready to accept connections/ });
	check("$name, after a crash", $log, 'has its memory');
	$node->stop;
}

done_testing();
