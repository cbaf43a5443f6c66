# Feeds need shared memory.  Before PostgreSQL 17 there is none without preloading.  From then
# on that of the first library stays until the server ends: to one whose memory has another
# size, or another layout of equal size, it is refused, because two would split the order.
# Each error says what helps, and keys need none of it.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('memory');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my @calls = map { "SELECT uuidv7_feed_$_" } 'id()', "id('urandom')", 'position()', 'watermark()',
  'position_watermark()', 'wait(0)', "observe(uuidv7_fast_min(now()))", 'position_observe(0)',
  'reset()';

sub check_refused
{
	my ($name, $error, @refused) = @_;
	my $session = RawSession->start($node);
	foreach my $call (@refused)
	{
		$session->query($call);
		like($session->{error}, $error, "$name: refused: $call");
	}
	like($session->outcome('SELECT uuidv7_fast()'), qr/^value ./, "$name: a key");
	$session->quit;
	return;
}

if ($node->pg_version < 17)
{
	my $preload = qr/^55000 fast_uuid must be loaded via "shared_preload_libraries"\|.*\|Add /;
	check_refused('without preloading', $preload, @calls);
	is($node->safe_psql('postgres', 'SELECT concat(s) FROM fast_uuid_stats() AS s'),
		'(feed,,,,)', 'without preloading there are no statistics of feeds');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
}
else
{
	my $module = getcwd() . '/test/modules/other_library';
	my $layout = qr/^55000 shared memory of fast_uuid is that of another version.*\|Restart/;
	my $size = qr/^XX000 requested DSM segment .*size/;
	my %others = ('0, 8' => $size, '-1, 8' => $size, '-1, 0' => $layout, '1, 0' => $layout);
	$node->safe_psql('postgres',
		"CREATE FUNCTION make_layout(int, int) RETURNS bool AS '$module' LANGUAGE c");
	foreach my $numbers (sort keys %others)
	{
		$node->restart;
		is($node->safe_psql('postgres', "SELECT make_layout($numbers)"),
			't', "$numbers: another library comes first");
		check_refused($numbers, $others{$numbers}, @calls, 'SELECT * FROM fast_uuid_stats()');
	}
}
$node->restart;
my $session = RawSession->start($node);
like($session->outcome($_), qr/^value /, "in the end: $_") foreach @calls;
$session->quit;
$node->stop;
done_testing();
