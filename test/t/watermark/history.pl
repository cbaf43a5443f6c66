# A statement finds a watermark that is older than its snapshot, although others have asked
# for hundreds since, in its database and in others: each is overtaken by a commit, so that
# what the statement computes by itself is not right for it.  Without one it reads nothing.
# That holds too where its own database has been asked just once since.
#
# The history lasts 100 ms; a machine that is slow enough has the others ask for longer than
# that, and tries again.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;

my ($tries, $calls, $lasting_ms) = (100, 200, 100);
my @databases = ('postgres', 'one', 'two');
my $node = start_feed('history', "synchronous_commit = off\nautovacuum = off\njit = off\nlog_statement = none");
$node->safe_psql('postgres', "CREATE DATABASE $_") foreach @databases[ 1, 2 ];
$node->safe_psql($_, 'CREATE EXTENSION fast_uuid') foreach @databases[ 1, 2 ];

sub session
{
	my ($database) = @_;
	return RawSession->connect($node, user => scalar(getpwuid $>), database => $database);
}

my $ask = "DO \$\$ BEGIN FOR i IN 1..$calls LOOP PERFORM uuidv7_feed_watermark(); PERFORM pg_current_xact_id(); COMMIT; END LOOP; END \$\$";

# A database takes a place per some milliseconds: all of them.
my $fill = q{DO $$ DECLARE until timestamptz := clock_timestamp() + interval '400 ms'; BEGIN
	WHILE clock_timestamp() < until LOOP PERFORM uuidv7_feed_watermark(); COMMIT; END LOOP; END $$};
my ($reader, $watch) = (session('postgres'), session('postgres'));
my %others = map { $_ => session($_) } @databases;
my %attacks = (
	'here' => ['postgres'],
	'here and in two other databases' => [@databases],
	'in another database' => ['one']);

foreach my $what (sort keys %attacks)
{
	my @asking = @others{ @{ $attacks{$what} } };
	my $in_time;
	foreach (1 .. $tries)
	{
		$watch->query_safe('SELECT uuidv7_feed_watermark()');
		$others{one}->query_safe($fill);
		my $began = $watch->query_safe('SELECT extract(epoch FROM clock_timestamp())');
		$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT');
		foreach (1, 2)
		{
			$_->send($ask) foreach @asking;
			$_->receive foreach @asking;
			$watch->query_safe($_) foreach 'SELECT pg_current_xact_id()', 'SELECT uuidv7_feed_watermark()';
		}
		my ($bound, $ended) = split / /, $reader->query_safe(q{SELECT uuidv7_feed_watermark() || ' ' || extract(epoch FROM clock_timestamp())});
		$reader->query_safe('COMMIT');
		$in_time = ($ended - $began) * 1000 < $lasting_ms or next;
		isnt($bound, '00000000-0000-7000-8000-000000000000', "others ask $what: a statement still finds one");
		last;
	}
	ok($in_time, "others ask $what: within $lasting_ms ms");
}
$node->stop;
done_testing();
