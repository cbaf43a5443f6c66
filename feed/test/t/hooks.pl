# Another library whose hooks fast_feed finds in its place, or that finds fast_feed's: both
# have their shared memory when the server has started, also after a crash.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use RawSession;
use Watchdog;

my $module = getcwd() . '/test/modules/chained_hooks';
my $node   = PostgreSQL::Test::Cluster->new('hooks');
plan skip_all => 'since PostgreSQL 17 fast_feed has no hooks' if $node->pg_version >= 17;
$node->init;
$node->append_conf('postgresql.conf', "restart_after_crash = on\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_feed; CREATE SEQUENCE drawn');
$node->stop;

# Do both work, as the log from there on and some calls show?
sub check_both
{
	my ($name, $begin) = @_;
	my $log = substr(slurp_file($node->logfile), $begin);
	like($log, qr/chained_hooks has its memory/, "$name: the other library has its memory");
	is($node->safe_psql('postgres', "SELECT fast_feed.next('drawn') > 0; SELECT fast_feed.wait(0) > 0"), "t\nt",
		'... so has fast_feed');
	return;
}

foreach my $libraries ("$module, fast_feed", "fast_feed, $module")
{
	my $name = $libraries =~ /^fast_feed/ ? 'loaded after fast_feed' : 'loaded before fast_feed';
	my $begin = -s $node->logfile;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$libraries'\n");
	$node->start;
	check_both($name, $begin);

	# All children end, and the memory that was asked for is made anew.
	$begin = -s $node->logfile;
	my $session = RawSession->start($node);
	kill 'KILL', $session->query('SELECT pg_backend_pid()');
	wait_until('the server is ready again',
		sub { substr(slurp_file($node->logfile), $begin) =~ /ready to accept connections/ });
	check_both("$name, after a crash", $begin);
	$node->stop;
}

done_testing();
