# The watermark in the statement that reads: it is right for the statement's snapshot, and
# one value for the whole statement, whatever ends meanwhile; it serves as an index
# condition, and prunes partitions.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;

my $node = start_feed('statements', q{
autovacuum = off
plan_cache_mode = force_generic_plan
});
$node->safe_psql('postgres', q{
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE VIEW feed AS SELECT * FROM made WHERE id < uuidv7_feed_watermark();
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM feed;
CREATE FUNCTION bound() RETURNS uuid STABLE LANGUAGE plpgsql AS
	'BEGIN RETURN uuidv7_feed_watermark(); END';
CREATE FUNCTION nested() RETURNS uuid STABLE LANGUAGE plpgsql AS
	'BEGIN RETURN (SELECT bound()); END';
CREATE FUNCTION read_stable() RETURNS SETOF uuid STABLE LANGUAGE plpgsql AS
	'BEGIN RETURN QUERY SELECT id FROM made WHERE id < uuidv7_feed_watermark(); END';
CREATE FUNCTION read_volatile() RETURNS SETOF uuid VOLATILE LANGUAGE plpgsql AS $$
DECLARE upto uuid := uuidv7_feed_watermark();
BEGIN RETURN QUERY SELECT id FROM made WHERE id < upto; END $$;
CREATE FUNCTION read_sql() RETURNS SETOF uuid VOLATILE LANGUAGE sql AS
	'SELECT id FROM made WHERE id < uuidv7_feed_watermark()';
});

my ($writer, $reader, $other) = map { RawSession->start($node) } 1 .. 3;
$reader->query_safe('PREPARE generic AS SELECT id FROM made WHERE id < uuidv7_feed_watermark()');
$reader->query_safe('PREPARE by_argument (uuid) AS SELECT id FROM made WHERE id < $1');
my $insert = 'INSERT INTO made DEFAULT VALUES RETURNING id';
my $watermark = 'SELECT uuidv7_feed_watermark()';

# Begin a statement that takes an advisory lock in the midst, which the writer holds.
sub begin_waiting
{
	my ($sql) = @_;
	$writer->query_safe('SELECT pg_advisory_lock(1) IS NULL');
	$reader->send($sql);
	$node->poll_query_until('postgres',
		"SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $reader->{pid}")
	  or die 'it does not wait';
	return;
}

sub end_waiting
{
	$writer->query_safe('SELECT pg_advisory_unlock(1)');
	return $reader->receive;
}

# A transaction ends between a snapshot and the statements that ask.
my @reads = (
	'SELECT id FROM made WHERE id < uuidv7_feed_watermark()',
	'SELECT id FROM made WHERE id < (SELECT uuidv7_feed_watermark())',
	'SELECT id FROM feed',
	'SELECT id FROM guarded',
	'SELECT id FROM made, uuidv7_feed_watermark() AS upto WHERE id < upto',
	'SELECT id FROM made WHERE id < bound()',
	'SELECT read_stable()',
	'SELECT read_volatile()',
	'SELECT read_sql()',
	'EXECUTE generic',
	'EXECUTE by_argument (uuidv7_feed_watermark())');
foreach my $isolation ('REPEATABLE READ', 'SERIALIZABLE')
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);

	# Of two transactions the older one ends later: the latest that has ended stays the same.
	$other->query_safe($insert);
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	$reader->query_safe('SELECT count(*) FROM made');
	$writer->query_safe('COMMIT');
	cmp_ok($reader->query_safe($watermark), 'le', $id,
		"$isolation, a snapshot from before a commit: the watermark is not beyond its row");
	unlike($reader->query_safe($_), qr/$id/, "$isolation, before a commit: $_") foreach @reads;
	$reader->query_safe('COMMIT');
	like($reader->query_safe($_), qr/$id/, "after it: $_") foreach @reads;
}
my $waits = 'FROM (SELECT pg_advisory_xact_lock(1) OFFSET 0) AS waited';
foreach my $call ('uuidv7_feed_watermark()', 'bound()',
	'(SELECT uuidv7_feed_watermark() WHERE waited IS NOT NULL)')
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);
	begin_waiting("SELECT $call $waits");
	$writer->query_safe('COMMIT');
	cmp_ok(end_waiting(), 'le', $id,
		"READ COMMITTED, a commit while the statement waits: $call is not beyond its row");
	cmp_ok($reader->query_safe($watermark), 'gt', $id, '... that of the next statement is');
}

# One value per statement, wherever it stands, and whoever ends between two partitions.  A
# VOLATILE function has snapshots of its own.
$node->safe_psql('postgres', q{
CREATE TABLE halves (half int) PARTITION BY LIST (half);
CREATE TABLE half_0 PARTITION OF halves FOR VALUES IN (0);
CREATE TABLE half_1 PARTITION OF halves FOR VALUES IN (1);
INSERT INTO halves SELECT n % 2 FROM generate_series(1, 10) AS n;
CREATE FUNCTION pause(half int) RETURNS bool VOLATILE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(1) WHERE half = 1;
	PERFORM uuidv7_feed_watermark(), nested();
	RETURN true;
END $$});
foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
{
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	begin_waiting('SELECT count(DISTINCT upto) FROM'
		  . ' (SELECT unnest(ARRAY[uuidv7_feed_watermark(), bound(), nested()]) AS upto'
		  . ' FROM halves WHERE pause(half)) AS s');
	$other->query_safe($insert);
	is(end_waiting(), '1', "$isolation, a commit between two partitions: one value");
	$reader->query_safe('COMMIT');

	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	begin_waiting('SELECT count(*) FROM halves'
		  . ' WHERE pause(half) AND nested() = (SELECT uuidv7_feed_watermark())');
	$other->query_safe($insert);
	is(end_waiting(), '10', "$isolation, ... also in the condition");
	$reader->query_safe('COMMIT');
}

# A cursor keeps its value, whatever is done between two rows.
foreach my $hold ('WITHOUT HOLD', 'WITH HOLD')
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);
	$reader->query_safe('BEGIN');
	$reader->query_safe("DECLARE c CURSOR $hold FOR"
		  . ' SELECT uuidv7_feed_watermark() FROM generate_series(1, 100)');
	$reader->query_safe("DECLARE r CURSOR $hold FOR"
		  . ' SELECT id FROM made WHERE id < uuidv7_feed_watermark()');
	$writer->query_safe('COMMIT');
	my %fetched;
	foreach my $n (1 .. 100)
	{
		$fetched{ $reader->query_safe('FETCH c') } = 1;
		$reader->query_safe('COMMIT') if $hold eq 'WITH HOLD' && $n == 50;
		$reader->query_safe($watermark);
		$other->query_safe($insert) if $n % 10 == 0;
	}
	is(keys %fetched, 1, "a cursor $hold has one value");
	cmp_ok((keys %fetched)[0], 'le', $id, '... not beyond what was committed after it was opened');
	unlike($reader->query_safe('FETCH ALL r'), qr/$id/, '... nor are its rows');
	$reader->query_safe('CLOSE ALL');
	$reader->query_safe('COMMIT');
}

# It also keeps one that was given to another snapshot first, when others are where that was.
sub fetch_from_new
{
	my ($name) = @_;
	return $reader->query_safe("DECLARE $name CURSOR FOR"
		  . " SELECT uuidv7_feed_watermark() FROM generate_series(1, 2); FETCH $name");
}
$reader->query_safe('BEGIN');
my $given = fetch_from_new('first');
is(fetch_from_new('second'), $given, 'two cursors of one moment have one value');
$other->query_safe($insert);
$reader->query_safe('CLOSE first');
foreach (1 .. 5)
{
	cmp_ok(fetch_from_new("later_$_"), 'gt', $given, 'one is closed, others have a later one');
}
is($reader->query_safe('FETCH second'), $given, '... while the other one keeps it');
$reader->query_safe('COMMIT');

# In one session the watermark does not go back, whatever others do, and what a transaction
# keeps of it does not grow with its statements.  The writer goes on until the reader has
# seen enough.
$reader->query_safe('SELECT pg_advisory_lock(1)');
$writer->send(q{DO $$
BEGIN
	WHILE NOT pg_try_advisory_xact_lock(1) LOOP
		PERFORM uuidv7_feed_id(), pg_current_xact_id();
		COMMIT;
	END LOOP;
END $$});
is($reader->query_safe(q{DO $$
DECLARE
	before uuid;
	now uuid := uuidv7_feed_watermark();
	changes int := 0;
	used bigint[] := '{}';
BEGIN
	WHILE changes < 1000 LOOP
		before := now;
		now := uuidv7_feed_watermark();
		ASSERT now >= before, 'it goes back';
		CONTINUE WHEN now = before;
		changes := changes + 1;
		IF changes IN (20, 1000) THEN
			SELECT used || total_bytes INTO used
			  FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
		END IF;
	END LOOP;
	ASSERT used[1] = used[2], 'memory: ' || used::text;
END $$}), '', 'in a transaction it does not go back, nor does memory grow with its changes');
$reader->query_safe('SELECT pg_advisory_unlock(1)');
$writer->receive;

# A queue; then the planner: an index condition, partitions that are not opened.
like($reader->query_safe('DELETE FROM made WHERE id < uuidv7_feed_watermark() RETURNING id'),
	qr/\w/, 'DELETE takes rows');
$node->safe_psql('postgres', q{
CREATE TABLE parted (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id()) PARTITION BY RANGE (id);
CREATE TABLE parted_past PARTITION OF parted
	FOR VALUES FROM (MINVALUE) TO ('02000000-0000-7000-8000-000000000000');
CREATE TABLE parted_future PARTITION OF parted
	FOR VALUES FROM ('02000000-0000-7000-8000-000000000000') TO (MAXVALUE);
INSERT INTO made SELECT FROM generate_series(1, 10000);
ANALYZE made});
foreach my $read ('made WHERE id < uuidv7_feed_watermark() AND', 'feed WHERE', 'guarded WHERE')
{
	my $plan = $node->safe_psql('postgres', 'EXPLAIN (COSTS OFF)'
		  . " SELECT * FROM $read id > uuidv7_fast_min(now()) ORDER BY id LIMIT 100");
	like($plan, qr/Index Only Scan using made_pkey.*\n.*Index Cond: .*id < uuidv7_feed_watermark/,
		"$read: an index condition");
	unlike($plan, qr/Filter/, '... alone');
}
my $plan = $node->safe_psql('postgres',
	'EXPLAIN (COSTS OFF) SELECT * FROM parted WHERE id < uuidv7_feed_watermark()');
like($plan, qr/Subplans Removed: 1/, 'a partition beyond it is pruned');
unlike($plan, qr/parted_future/, '... that of the future');
$node->stop;
done_testing();
