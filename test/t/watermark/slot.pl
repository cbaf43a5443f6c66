# The watermark for the snapshot of a new logical slot, which stands for a point in the
# WAL: a transaction that waits for a standby has committed there, though other snapshots
# have it as running, while one with a smaller number has not, though it has ended since.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;

my $settings = "autovacuum = off\nsynchronous_commit = local\nsynchronous_standby_names = 'nobody'";
my $node = start_feed('slot', $settings, allows_streaming => 'logical');
$node->safe_psql('postgres', q{
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE TABLE other (n int)});

my ($first, $second, $small, $great, $asks) = map { RawSession->start($node) } 1 .. 5;
my $slot = RawSession->connect($node, user => scalar(getpwuid $>), database => 'postgres', replication => 'database');
my ($pid, $pid_of_great) = map { $_->query_safe('SELECT pg_backend_pid()') } $slot, $great;
my $waits = "SELECT EXISTS (SELECT FROM pg_locks WHERE pid = $pid AND NOT granted AND transactionid = '%s')";

# The slot waits for all that are running, and then for those that began meanwhile.
$_->query_safe('BEGIN') foreach $first, $second;
my $one = $first->query_safe('SELECT pg_current_xact_id()');
$slot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
$slot->send(q{CREATE_REPLICATION_SLOT s TEMPORARY LOGICAL test_decoding (SNAPSHOT 'use')});
$node->poll_query_until('postgres', sprintf($waits, $one)) or BAIL_OUT('the slot does not wait');
my $two = $second->query_safe('SELECT pg_current_xact_id()');
$first->query_safe('COMMIT');
$node->poll_query_until('postgres', sprintf($waits, $two)) or BAIL_OUT('the slot does not wait for the second one');

$small->query_safe('BEGIN');
my $id = $small->query_safe('INSERT INTO made DEFAULT VALUES RETURNING id');
$great->query_safe('SET synchronous_commit = on');
$great->query_safe('BEGIN');
$great->query_safe('INSERT INTO other VALUES (1)');
my $number = $great->query_safe('SELECT pg_current_xact_id()');
$great->send('COMMIT');
$node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $pid_of_great") or BAIL_OUT('the commit does not wait');

# Its snapshot is that of now; recent minor releases wait for the great one first.
$second->query_safe('COMMIT');
$node->poll_query_until('postgres', sprintf("$waits OR (SELECT state = 'idle in transaction' FROM pg_stat_activity WHERE pid = $pid)", $number))
  or BAIL_OUT('the slot has no snapshot');
$small->query_safe('COMMIT');
cmp_ok($asks->query_safe('SELECT uuidv7_feed_watermark()'), 'gt', $id, 'a row was committed, and another session has a watermark beyond it');
$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid_of_great)");
$slot->receive;
is($slot->{error}, '', 'the slot is there');
is($slot->query_safe("SELECT count(*) FROM made WHERE id = '$id'"), '0', 'its snapshot does not show the row');
cmp_ok($slot->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, 'nor is its watermark beyond it');
$_->quit foreach $first, $second, $small, $asks, $slot;
$node->stop('immediate');
done_testing();
