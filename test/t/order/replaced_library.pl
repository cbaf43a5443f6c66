# From PostgreSQL 17 on the shared memory of the first library stays until the server
# ends.  For one whose memory has another size, or another layout of equal size, what
# needs that memory is an error that says what helps; nothing else is.

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

my %generates = map { $_ => "SET fast_uuid.ordering = '$_'; SELECT uuidv7_fast()" } 'session', 'instance', 'durable';
my @shared    = (@generates{ 'instance', 'durable' }, 'SELECT uuidv7_fast_watermark()', 'SELECT * FROM fast_uuid_stats()');
my %layouts   = ('another size' => '0, 8', 'an earlier layout' => '-1, 0', 'a later layout' => '1, 0', 'the same' => '0, 0');
foreach my $name (sort keys %layouts)
{
	$node->restart;
	is($node->safe_psql('postgres', "SELECT make_layout($layouts{$name})"), 't', "$name: another library comes first");
	my $session = RawSession->start($node);
	foreach my $statement (@shared)
	{
		my $outcome = $session->outcome($statement);
		if ($name eq 'the same')
		{
			like($outcome, qr/^value ./, "$name: $statement");
			next;
		}
		is($outcome, '55000', "$name: refused: $statement");
		is($session->{error}, '55000 shared memory of fast_uuid is that of another version of the library||Restart the server.', "$name: and why");
	}
	like($session->outcome($generates{session}), qr/^value ./, "$name: session order needs none of it");
	$session->quit;
}

$node->stop;
done_testing();
