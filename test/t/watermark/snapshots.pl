# The watermark for an older snapshot: the greatest that any session was given early enough
# for it is found again, however often others ask; and none that is not right for it: of
# another database, or for an imported snapshot, or for that of a logical slot.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use KnownClock;
use RawSession;
use Watchdog;

my $node = new_feed_node('snapshots', q{
autovacuum = off
log_statement = none
synchronous_commit = local
synchronous_standby_names = 'nobody'
}, allows_streaming => 'logical');

# The history of watermarks goes by the monotonic clock, which moves when it is told to.
my $clock = KnownClock->new($node);
$clock->put(1_000_000_000 * time, 1000);
my $passed = 0;

sub pass_time
{
	my ($milliseconds) = @_;
	$passed += $milliseconds;
	return $clock->stop_monotonic(1_000_000 * $passed);
}

pass_time(1000);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
$node->safe_psql('postgres', 'CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id())');
my %asks = (postgres => RawSession->start($node));
foreach my $database ('one', 'two')
{
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$asks{$database} = RawSession->connect($node, database => $database);
	$asks{$database}->query_safe('CREATE EXTENSION fast_uuid');
}
my ($writer, $reader, $other) = map { RawSession->start($node) } 1 .. 3;

my $insert = 'INSERT INTO made DEFAULT VALUES RETURNING id';
my $watermark = 'SELECT uuidv7_feed_watermark()';
my $take_number = 'SELECT pg_current_xact_id()';
my $begin_with_snapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1';

# Of a session that has a transaction number, among others that came later.
$other->query_safe('BEGIN');
$other->query_safe($take_number);
$writer->query_safe($take_number);
my $latest = $other->query_safe($watermark);

# One that is younger than some milliseconds may be replaced by the next.
pass_time(50);
$writer->query_safe($take_number);
$reader->query_safe($begin_with_snapshot);
foreach (1 .. 20)
{
	$writer->query_safe($take_number);
	$writer->query_safe($watermark);
}
is($reader->query_safe($watermark), $latest, 'the latest watermark from before a snapshot');
$_->query_safe('COMMIT') foreach $reader, $other;

# Of another database.
$writer->query_safe('BEGIN');
my $id = $writer->query_safe($insert);
cmp_ok($asks{one}->query_safe($watermark), 'gt', $id,
	'a row is not committed, and another database has a watermark beyond it');
$reader->query_safe($begin_with_snapshot);
$writer->query_safe('COMMIT');
cmp_ok($reader->query_safe($watermark), 'le', $id, '... which does not serve here');
$reader->query_safe('COMMIT');

# Of a cursor, after its transaction has been given a later one: the same transactions have
# numbers for both, but fewer of them are running.
$writer->query_safe('BEGIN');
$id = $writer->query_safe($insert);
$other->query_safe($take_number);
$reader->query_safe('BEGIN');
$reader->query_safe("DECLARE asks CURSOR FOR $watermark");
$writer->query_safe('COMMIT');
cmp_ok($reader->query_safe($watermark), 'gt', $id, 'a later statement is given a later one');
cmp_ok($reader->query_safe('FETCH asks'), 'le', $id, '... a cursor is not');
$reader->query_safe('COMMIT');

# Others ask for hundreds, for the 100 ms that the documents name; each is overtaken by a
# commit, so that what the statement computes by itself is not right for it.
my $ask_often = q{DO $$
BEGIN
	FOR i IN 1..4 LOOP
		PERFORM uuidv7_feed_watermark(), pg_current_xact_id();
		COMMIT;
	END LOOP;
END $$};

# A database takes a place per some milliseconds: all of them.
foreach (1 .. 300)
{
	pass_time(2);
	$asks{one}->query_safe($watermark);
}
foreach my $databases (['postgres'], [ 'postgres', 'one', 'two' ], ['one'])
{
	pass_time(10);
	my $given = $other->query_safe($watermark);
	pass_time(10);
	$reader->query_safe($begin_with_snapshot);
	$other->query_safe($take_number);
	foreach (1 .. 100)
	{
		$asks{$_}->query_safe($ask_often) foreach @$databases;
		pass_time(1);
	}
	is($reader->query_safe($watermark), $given,
		"others ask in @$databases: a statement still finds the latest one");
	$reader->query_safe('COMMIT');
}
$clock->stop_monotonic(0);

# An imported snapshot, in a session that keeps the watermark of a later wait.
$writer->query_safe('BEGIN');
$id = $writer->query_safe($insert);
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $exported = $other->query_safe('SELECT pg_export_snapshot()');
$writer->query_safe('COMMIT');
$reader->query_safe('SELECT uuidv7_feed_wait(0)');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$reader->query_safe("SET TRANSACTION SNAPSHOT '$exported'");
cmp_ok($reader->query_safe($watermark), 'le', $id,
	'an imported snapshot: the watermark is not beyond what was committed since');
$_->query_safe('COMMIT') foreach $reader, $other;
$_->quit foreach $writer, $reader, values %asks;

# The snapshot of a new logical slot stands for a point in the WAL: a transaction that waits
# for a standby has committed there, though other snapshots have it as running, while one
# with a smaller number has not, though it has ended since.
SKIP:
{
	skip 'there is no test_decoding', 4 if $other->outcome("LOAD 'test_decoding'") eq '58P01';
	my ($first, $second, $small, $great) = map { RawSession->start($node) } 1 .. 4;
	my $slot = RawSession->connect($node, replication => 'database');

	sub wait_until_true
	{
		my ($condition) = @_;
		return wait_until($condition, sub { $other->query_safe("SELECT $condition") eq 't' });
	}

	# That the slot waits for the end of a transaction.
	sub slot_waits_for
	{
		my ($number) = @_;
		return "EXISTS (SELECT FROM pg_locks WHERE pid = $slot->{pid} AND NOT granted"
		  . " AND transactionid = '$number')";
	}

	# It waits for all that are running, and then for those that began meanwhile.
	$_->query_safe('BEGIN') foreach $first, $second, $small, $great;
	my $number = $first->query_safe($take_number);
	$slot->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
	$slot->send(q{CREATE_REPLICATION_SLOT s TEMPORARY LOGICAL test_decoding (SNAPSHOT 'use')});
	wait_until_true(slot_waits_for($number));
	$number = $second->query_safe($take_number);
	$first->query_safe('COMMIT');
	wait_until_true(slot_waits_for($number));

	$id = $small->query_safe($insert);
	$great->query_safe('SET synchronous_commit = on');
	$number = $great->query_safe($take_number);
	$great->query_safe('CREATE TABLE of_great ()');
	$great->send('COMMIT');
	my $state = "pg_stat_activity WHERE pid = $great->{pid}";
	wait_until_true("'SyncRep' = (SELECT wait_event FROM $state)");

	# Its snapshot is that of now; recent minor releases wait for the great one first.
	$second->query_safe('COMMIT');
	wait_until_true(slot_waits_for($number) . ' OR EXISTS (SELECT FROM pg_stat_activity'
		  . " WHERE pid = $slot->{pid} AND state = 'idle in transaction')");
	$small->query_safe('COMMIT');
	cmp_ok($other->query_safe($watermark), 'gt', $id,
		'a row was committed, and another session has a watermark beyond it');
	$other->query_safe("SELECT pg_cancel_backend($great->{pid})");
	$slot->receive;
	is($slot->{error}, '', 'the slot is there');
	is($slot->query_safe("SELECT count(*) FROM made WHERE id = '$id'"), '0',
		'its snapshot does not show the row');
	cmp_ok($slot->query_safe($watermark), 'le', $id, 'nor is its watermark beyond it');
	$slot->quit;
}
$node->stop('immediate');
done_testing();
