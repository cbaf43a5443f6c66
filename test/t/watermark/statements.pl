# The watermark in the statement that reads: it is right for that statement's snapshot,
# however old that is; a statement has one watermark; it serves as an index condition,
# and prunes partitions.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;
use Watchdog;

my $node = start_feed('statements', "autovacuum = off\njit = off\nplan_cache_mode = force_generic_plan");
$node->safe_psql('postgres', q{
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), name text);
CREATE VIEW feed AS SELECT * FROM made WHERE id < uuidv7_feed_watermark();
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM made WHERE id < uuidv7_feed_watermark();
CREATE FUNCTION bound() RETURNS uuid STABLE LANGUAGE plpgsql AS 'BEGIN RETURN uuidv7_feed_watermark(); END';
CREATE FUNCTION read_stable() RETURNS SETOF uuid STABLE LANGUAGE plpgsql AS
	'BEGIN RETURN QUERY SELECT id FROM made WHERE id < uuidv7_feed_watermark(); END';
CREATE FUNCTION read_volatile() RETURNS SETOF uuid VOLATILE LANGUAGE plpgsql AS $$
DECLARE
	upto uuid := uuidv7_feed_watermark();
BEGIN
	RETURN QUERY SELECT id FROM made WHERE id < upto;
END $$;
CREATE FUNCTION read_sql() RETURNS SETOF uuid VOLATILE LANGUAGE sql AS
	'SELECT uuidv7_feed_watermark(); SELECT id FROM made WHERE id < uuidv7_feed_watermark()';
CREATE FUNCTION take() RETURNS uuid VOLATILE LANGUAGE plpgsql AS 'BEGIN RETURN uuidv7_feed_watermark(); END';
});

my @prepare = ('PREPARE generic AS SELECT id FROM made WHERE id < uuidv7_feed_watermark()',
	'PREPARE by_argument (uuid) AS SELECT id FROM made WHERE id < $1');
my ($writer, $reader, $other) = map { RawSession->start($node, @prepare) } 1 .. 3;
my $insert = 'INSERT INTO made DEFAULT VALUES RETURNING id';

# A transaction ends between a snapshot and the call.
my @reads = (
	'SELECT id FROM made WHERE id < uuidv7_feed_watermark()', 'SELECT id FROM made WHERE id < (SELECT uuidv7_feed_watermark())',
	'SELECT id FROM feed', 'SELECT id FROM guarded', 'SELECT id FROM made, uuidv7_feed_watermark() AS upto WHERE id < upto',
	'SELECT id FROM made WHERE id < bound()', 'SELECT read_stable()', 'SELECT read_volatile()', 'SELECT read_sql()',
	'EXECUTE generic', 'EXECUTE by_argument (uuidv7_feed_watermark())');
foreach my $isolation ('REPEATABLE READ', 'SERIALIZABLE')
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);

	# Of two transactions the older one ends later: the latest that has ended stays the same.
	$other->query_safe($insert);
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	$reader->query_safe('SELECT count(*) FROM made');
	$writer->query_safe('COMMIT');
	cmp_ok($reader->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, "$isolation, a snapshot from before the end of the older one: the watermark is not beyond it");
	my $later = $other->query_safe($insert);
	cmp_ok($reader->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, "$isolation, a snapshot from before a commit: the watermark is not beyond what was committed");
	unlike($reader->query_safe($_), qr/$id|$later/, "$isolation, before a commit: $_") foreach @reads;
	$reader->query_safe('COMMIT');
	like($reader->query_safe($_), qr/$id.*$later/s, "$isolation, in the next transaction: $_") foreach @reads;
}

my $waits = 'FROM (SELECT pg_advisory_lock(1) OFFSET 0) AS waited';
foreach my $call ('uuidv7_feed_watermark()', 'bound()', '(SELECT uuidv7_feed_watermark() WHERE waited IS NOT NULL)')
{
	$writer->query_safe('SELECT pg_advisory_lock(1) IS NULL');
	$writer->query_safe('BEGIN');
	my $id  = $writer->query_safe($insert);
	my $pid = $reader->query_safe('SELECT pg_backend_pid()');
	$reader->send("SELECT $call $waits");
	$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid") or BAIL_OUT('it does not wait');
	$writer->query_safe('COMMIT');
	$writer->query_safe('SELECT pg_advisory_unlock(1)');
	cmp_ok($reader->receive, 'le', $id, "READ COMMITTED, a commit while the statement waits: $call is not beyond what was committed");
	$reader->query_safe('SELECT pg_advisory_unlock(1)');
	cmp_ok($reader->query_safe('SELECT uuidv7_feed_watermark()'), 'gt', $id, 'that of the next statement is');
}

# The earlier watermark that serves for an older snapshot: of another session, but not of
# another database; and of a database that has been forgotten by nobody, however often
# another one is asked.
{
	$node->safe_psql('postgres', 'CREATE DATABASE busy');
	$node->safe_psql('busy',     'CREATE EXTENSION fast_uuid');
	$writer->query_safe('BEGIN');
	$writer->query_safe($insert);
	my $early = $other->query_safe('SELECT uuidv7_feed_watermark()');
	$other->query_safe('CREATE TABLE something ()');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$reader->query_safe('SELECT count(*) FROM made');
	$writer->query_safe('COMMIT');
	$node->safe_psql('busy', "DO \$\$ BEGIN FOR i IN 1..1000 LOOP CREATE TEMP TABLE t (); DROP TABLE t; PERFORM uuidv7_feed_watermark(); COMMIT; END LOOP; END \$\$");
	is($reader->query_safe('SELECT uuidv7_feed_watermark()'), $early, 'a watermark that another session was given, before many of another database');
	$reader->query_safe('COMMIT');

	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);
	cmp_ok($node->safe_psql('busy', 'SELECT uuidv7_feed_watermark()'), 'gt', $id, 'a row is not committed, and another database has a watermark beyond it');
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$reader->query_safe('SELECT count(*) FROM made');
	$writer->query_safe('COMMIT');
	cmp_ok($reader->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, '... which does not serve here');
	$reader->query_safe('COMMIT');
}

# For an older snapshot the latest that is early enough; also of a session that had a
# transaction number, among others that came later.
$other->query_safe('BEGIN');
$other->query_safe('CREATE TABLE own ()');
$writer->query_safe('CREATE TABLE later ()');
my $latest = $other->query_safe('SELECT uuidv7_feed_watermark()');

# One that is younger than 2 ms for each database that asks may be replaced by the next.
my $replaceable = q{SELECT clock_timestamp() < '%s'::timestamptz + interval '50 ms'};
my $given_at    = $writer->query_safe('SELECT clock_timestamp()');
1 while $writer->query_safe(sprintf($replaceable, $given_at)) eq 't';
$writer->query_safe('CREATE TABLE latest ()');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$reader->query_safe('SELECT count(*) FROM made');
foreach (1 .. 20)
{
	$writer->query_safe('CREATE TABLE t ()');
	$writer->query_safe('DROP TABLE t');
	$writer->query_safe('SELECT uuidv7_feed_watermark()');
}
is($reader->query_safe('SELECT uuidv7_feed_watermark()'), $latest, 'the latest watermark from before a snapshot');
$_->query_safe('COMMIT') foreach $reader, $other;

# In one session the watermark does not go back, whatever others do; and what a transaction
# keeps of it does not grow with its statements.
# The writer goes on until the reader has seen enough: how much that is in a second
# depends on the machine.
$reader->query_safe('SELECT pg_advisory_lock(1)');
$writer->send(q{DO $$ BEGIN LOOP PERFORM uuidv7_feed_id(); PERFORM txid_current(); COMMIT; EXIT WHEN pg_try_advisory_xact_lock(1); END LOOP; END $$});
is($reader->query_safe(q{DO $$
DECLARE
	one uuid;
	two uuid := uuidv7_feed_watermark();
	changes int := 0;
	used bigint[] := '{}';
	i int := 0;
BEGIN
	WHILE i < 1000000 OR changes < 500 LOOP
		i := i + 1;
		ASSERT i < 50000000, 'it changes';
		one := two;
		two := uuidv7_feed_watermark();
		ASSERT two >= one, 'it goes back';
		changes := changes + (two > one)::int;
		IF changes >= 20 AND used = '{}' OR changes >= 500 AND i >= 1000000 THEN
			SELECT used || total_bytes INTO used FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext';
		END IF;
	END LOOP;
	ASSERT used[1] = used[2], 'memory: ' || used::text;
END $$}), '', 'in a million statements of a transaction it does not go back, nor does memory grow');
$reader->query_safe('SELECT pg_advisory_unlock(1)');
$writer->receive;

# One value per statement, wherever it stands, and whoever ends meanwhile.
$node->safe_psql('postgres', q{
CREATE FUNCTION nested() RETURNS uuid STABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT bound()); END';
CREATE TABLE halves (half int) PARTITION BY LIST (half);
CREATE TABLE half_0 PARTITION OF halves FOR VALUES IN (0);
CREATE TABLE half_1 PARTITION OF halves FOR VALUES IN (1);
INSERT INTO halves SELECT n % 2 FROM generate_series(1, 10) AS n;
-- Between the halves; a VOLATILE function has snapshots of its own.
CREATE FUNCTION pause(half int) RETURNS bool VOLATILE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_lock(1), pg_advisory_unlock(1) WHERE half = 1;
	PERFORM uuidv7_feed_watermark(), nested();
	RETURN true;
END $$});
foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
{
	foreach my $read ('SELECT count(DISTINCT upto) FROM (SELECT unnest(ARRAY[uuidv7_feed_watermark(), bound(), nested()]) AS upto FROM halves WHERE pause(half)) AS s',
		'SELECT 11 - count(*) FROM halves WHERE pause(half) AND nested() = (SELECT uuidv7_feed_watermark())')
	{
		my $pid = $reader->query_safe('SELECT pg_backend_pid()');
		$writer->query_safe('SELECT pg_advisory_lock(1) IS NULL');
		$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
		$reader->send($read);
		$node->poll_query_until('postgres', "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $pid") or BAIL_OUT('it does not wait');
		$other->query_safe($insert);
		$writer->query_safe('SELECT pg_advisory_unlock(1)');
		is($reader->receive, '1', "$isolation, a commit between two partitions: $read");
		$reader->query_safe('COMMIT');
	}
}

# A REPEATABLE READ transaction keeps it, although those of others have pushed it out of
# shared memory.
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $still = $reader->query_safe('SELECT uuidv7_feed_watermark()');
foreach (1 .. 300)
{
	$other->query_safe($insert);
	$writer->query_safe('SELECT uuidv7_feed_watermark()');
}
is($reader->query_safe($_), $still, "REPEATABLE READ, beyond what is kept for all: $_") foreach 'SELECT uuidv7_feed_watermark()', 'SELECT nested()';
$reader->query_safe('COMMIT');

# A cursor keeps its value, whatever is done between two rows.
foreach my $hold ('WITHOUT HOLD', 'WITH HOLD')
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);
	$reader->query_safe('BEGIN');
	$reader->query_safe("DECLARE c CURSOR $hold FOR SELECT uuidv7_feed_watermark() FROM generate_series(1, 4)");
	$reader->query_safe("DECLARE r CURSOR $hold FOR SELECT id FROM made WHERE id < uuidv7_feed_watermark()");
	$writer->query_safe('COMMIT');
	my @fetched;
	foreach my $n (1 .. 300)
	{
		push @fetched, $reader->query_safe('FETCH c') if $n % 100 == 0;
		$reader->query_safe('COMMIT') if $hold eq 'WITH HOLD' && $n == 150;
		$reader->query_safe('SELECT uuidv7_feed_watermark()');
		$other->query_safe('UPDATE made SET name = 1 WHERE id = (SELECT min(id::text)::uuid FROM made)') if $n % 10 == 0;
	}
	is($fetched[2], $fetched[0], "a cursor $hold has one value");
	cmp_ok($fetched[0], 'le', $id, "... which is not beyond what was committed after it was opened");
	unlike($reader->query_safe('FETCH ALL r'), qr/$id/, "... nor are its rows");
	$reader->query_safe('CLOSE r');
	$reader->query_safe('CLOSE c');
	$reader->query_safe('COMMIT');
}

# It also keeps one that was given to another snapshot first, when others are where that
# was.
sub fetch
{
	my ($name) = @_;
	$reader->query_safe("DECLARE $name CURSOR FOR SELECT uuidv7_feed_watermark() FROM generate_series(1, 2)");
	return $reader->query_safe("FETCH $name");
}
$reader->query_safe('BEGIN');
my $given = fetch('first');
is(fetch('second'), $given, 'two cursors of one moment have one value');
$writer->query_safe('SELECT uuidv7_feed_watermark()');
$other->query_safe($insert);
$reader->query_safe('CLOSE first');
cmp_ok(fetch("later_$_"), 'gt', $given, 'one is closed, and others have a later one') foreach 1 .. 5;
is($reader->query_safe('FETCH second'), $given, '... while the other one keeps it');
$reader->query_safe('COMMIT');

# An imported snapshot.
$writer->query_safe('BEGIN');
my $id = $writer->query_safe($insert);
$other->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
my $exported = $other->query_safe('SELECT pg_export_snapshot()');
$writer->query_safe('COMMIT');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$reader->query_safe("SET TRANSACTION SNAPSHOT '$exported'");
cmp_ok($reader->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, 'an imported snapshot: the watermark is not beyond what was committed since');
$_->query_safe('COMMIT') foreach $reader, $other;

# What a reader does besides.
$node->safe_psql('postgres', q{
CREATE TABLE queue (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE TABLE copied (id uuid PRIMARY KEY);
CREATE TABLE progress (upto uuid);
INSERT INTO queue SELECT FROM generate_series(1, 10);
INSERT INTO progress VALUES (uuidv7_feed_watermark())});
is($reader->query_safe('WITH gone AS (DELETE FROM queue WHERE id < uuidv7_feed_watermark() RETURNING id) SELECT count(*) FROM gone'), '10', 'DELETE ... RETURNING takes rows');
is($reader->query_safe('MERGE INTO copied AS c USING feed AS f ON c.id = f.id WHEN NOT MATCHED THEN INSERT VALUES (f.id)'), '', 'MERGE copies them');
is($node->safe_psql('postgres', 'SELECT count(*) FROM made LEFT JOIN copied USING (id) WHERE copied.id IS NULL'), '0', '... all');
is($reader->query_safe('UPDATE progress SET upto = uuidv7_feed_watermark() WHERE upto < uuidv7_feed_watermark() RETURNING true'), 't', 'UPDATE stores it');

# The planner: an index condition, and partitions that are not opened.
$node->safe_psql('postgres', q{
CREATE TABLE parted (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id()) PARTITION BY RANGE (id);
CREATE TABLE parted_past PARTITION OF parted FOR VALUES FROM (MINVALUE) TO ('02000000-0000-7000-8000-000000000000');
CREATE TABLE parted_future PARTITION OF parted FOR VALUES FROM ('02000000-0000-7000-8000-000000000000') TO (MAXVALUE);
INSERT INTO made SELECT FROM generate_series(1, 10000);
ANALYZE made});
foreach my $read ('made WHERE id < uuidv7_feed_watermark() AND', 'feed WHERE', 'guarded WHERE')
{
	my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) SELECT * FROM $read id > uuidv7_fast_min(now()) ORDER BY id LIMIT 100");
	like($plan, qr/Index Scan using made_pkey.*\n.*Index Cond: .*id < uuidv7_feed_watermark\(\)/, "$read: an index condition");
	unlike($plan, qr/Filter/, '... alone');
}
my $plan = $node->safe_psql('postgres', 'EXPLAIN (COSTS OFF) SELECT * FROM parted WHERE id < uuidv7_feed_watermark()');
like($plan, qr/Subplans Removed: 1/, 'a partition beyond it is pruned');
unlike($plan, qr/parted_future/, '... that of the future');
$node->safe_psql('postgres', q{
CREATE TABLE many AS SELECT uuidv7_feed_id() AS id FROM generate_series(1, 100000);
ALTER TABLE many SET (parallel_workers = 2)});
my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET parallel_leader_participation = off;';
like($node->safe_psql('postgres', "$parallel EXPLAIN SELECT count(*) FROM many WHERE id < (SELECT uuidv7_feed_watermark())"), qr/Workers Planned: 2/, 'parallel workers compare with it');
is($node->safe_psql('postgres', "$parallel SELECT count(*) FROM many WHERE id < (SELECT uuidv7_feed_watermark())"), '100000', '... which the leader has asked for');

# The hole that is left: a VOLATILE function gives a later one to the statement that
# calls it.
$reader->query_safe('BEGIN ISOLATION LEVEL READ COMMITTED');
$writer->query_safe('SELECT pg_advisory_lock(1) IS NULL');
$writer->query_safe('BEGIN');
$id = $writer->query_safe($insert);
$reader->send("SELECT take() $waits");
wait_until('it waits', sub { $node->safe_psql('postgres', "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'advisory'") eq '1' });
$writer->query_safe('COMMIT');
$writer->query_safe('SELECT pg_advisory_unlock(1)');
cmp_ok($reader->receive, 'gt', $id, 'a VOLATILE function gives the statement that calls it a later one, as doc/change-feeds.md says');
$reader->query_safe('COMMIT');

$_->quit foreach $writer, $reader, $other;
$node->stop;
done_testing();
