# From PostgreSQL 17 on the shared memory of the first library stays until the server
# ends.  To one whose memory has another size, or another layout of equal size, it is
# refused: by the server, or by the library, which says what helps.  Keys need none of it.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('replaced');
$node->init;
plan skip_all => 'before PostgreSQL 17 the library is replaced by a restart' if $node->pg_version < 17;
my $module = getcwd() . '/test/modules/other_library';
$node->start;
$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION make_layout(numbers int, bytes int) RETURNS bool AS '$module' LANGUAGE c;
});

my @feed = map { "SELECT uuidv7_feed_$_()" } 'id', 'position', 'watermark';
push @feed, 'SELECT uuidv7_feed_wait(0)', 'SELECT * FROM fast_uuid_stats()';
my $layout = qr/^55000 shared memory of fast_uuid is that of another version of the library\|\|Restart the server\.$/;
my $size   = qr/^XX000 requested DSM segment .*size/;
my %others = ('0, 8' => $size, '-1, 8' => $size, '-1, 0' => $layout, '1, 0' => $layout);
foreach my $numbers_bytes (sort keys %others)
{
	$node->restart;
	is($node->safe_psql('postgres', "SELECT make_layout($numbers_bytes)"), 't', "$numbers_bytes: another library comes first");
	my $session = RawSession->start($node);
	foreach my $statement (@feed)
	{
		$session->outcome($statement);
		like($session->{error}, $others{$numbers_bytes}, "$numbers_bytes: refused: $statement");
	}
	like($session->outcome('SELECT uuidv7_fast()'), qr/^value ./, "$numbers_bytes: keys need none of it");
	$session->quit;
}
$node->restart;
my $session = RawSession->start($node);
like($session->outcome($_), qr/^value ./, "without another library: $_") foreach @feed;
$session->quit;

$node->stop;
done_testing();
