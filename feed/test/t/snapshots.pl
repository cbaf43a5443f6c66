# The watermark belongs to the snapshot of the statement that asks: it is never beyond a row
# that the statement does not see, is one value for the whole statement, and kept ones serve
# snapshots that are older.  Where none does, a transaction with a snapshot of its own is told.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;

my $node = start_node('snapshots', "plan_cache_mode = force_generic_plan\nmax_prepared_transactions = 2");
$node->safe_psql('postgres', table('t') . q{
CREATE VIEW feed AS SELECT * FROM t WHERE id < fast_feed.watermark('t');
CREATE VIEW guarded WITH (security_barrier) AS SELECT * FROM feed;
CREATE FUNCTION bound() RETURNS bigint STABLE LANGUAGE plpgsql AS
	$$ BEGIN RETURN fast_feed.watermark('t'); END $$;
CREATE FUNCTION nested() RETURNS bigint STABLE LANGUAGE plpgsql AS 'BEGIN RETURN (SELECT bound()); END';
CREATE FUNCTION read_stable() RETURNS SETOF bigint STABLE LANGUAGE plpgsql AS
	$$ BEGIN RETURN QUERY SELECT id FROM t WHERE id < fast_feed.watermark('t'); END $$;
CREATE FUNCTION read_volatile() RETURNS SETOF bigint VOLATILE LANGUAGE plpgsql AS $$
DECLARE upto bigint := fast_feed.watermark('t');
BEGIN RETURN QUERY SELECT id FROM t WHERE id < upto; END $$;
CREATE FUNCTION read_sql() RETURNS SETOF bigint VOLATILE LANGUAGE sql AS
	$$ SELECT id FROM t WHERE id < fast_feed.watermark('t') $$;
CREATE FUNCTION pause(half int) RETURNS bool VOLATILE LANGUAGE plpgsql AS $$
BEGIN
	PERFORM pg_advisory_xact_lock(1) WHERE half = 1;
	PERFORM fast_feed.watermark('t'), nested();
	RETURN true;
END $$;
CREATE TABLE halves (half int) PARTITION BY LIST (half);
CREATE TABLE half_0 PARTITION OF halves FOR VALUES IN (0);
CREATE TABLE half_1 PARTITION OF halves FOR VALUES IN (1);
INSERT INTO halves SELECT n % 2 FROM generate_series(1, 10) AS n;
});
my ($writer, $reader, $other) = map { RawSession->start($node) } 1 .. 3;
$reader->query_safe("PREPARE generic AS SELECT id FROM t WHERE id < fast_feed.watermark('t')");
$reader->query_safe('PREPARE by_argument (bigint) AS SELECT id FROM t WHERE id < $1');
my $insert = 'INSERT INTO t DEFAULT VALUES RETURNING id';
my $watermark = "SELECT fast_feed.watermark('t')";

# Begin a statement that takes an advisory lock in the midst, which the writer holds.
sub begin_waiting
{
	my ($sql) = @_;
	$writer->query_safe('SELECT pg_advisory_lock(1) IS NULL');
	$reader->send($sql);
	return wait_for($node, "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $reader->{pid}");
}

sub end_waiting
{
	$writer->query_safe('SELECT pg_advisory_unlock(1)');
	return $reader->receive;
}

# A transaction ends between a snapshot and the statements that ask.
my @reads = (
	'SELECT id FROM t WHERE id < fast_feed.watermark(\'t\')',
	'SELECT id FROM t WHERE id < (SELECT fast_feed.watermark(\'t\'))',
	'SELECT id FROM feed', 'SELECT id FROM guarded',
	'SELECT id FROM t, fast_feed.watermark(\'t\') AS upto WHERE id < upto',
	'SELECT id FROM t WHERE id < bound()',
	'SELECT read_stable()', 'SELECT read_volatile()', 'SELECT read_sql()', 'EXECUTE generic',
	'EXECUTE by_argument (fast_feed.watermark(\'t\'))');
foreach my $isolation ('REPEATABLE READ', 'SERIALIZABLE')
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);

	# Of two transactions the older one ends later: the latest that has ended stays the same.
	$other->query_safe($insert);
	$other->query_safe($watermark);
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	$reader->query_safe('SELECT count(*) FROM t');
	$writer->query_safe('COMMIT');
	cmp_ok($reader->query_safe($watermark), '<=', $id,
		"$isolation, a snapshot from before a commit: the watermark is not beyond its row");
	unlike($reader->query_safe($_), qr/^$id$/m, "$isolation, before a commit: $_") foreach @reads;
	$reader->query_safe('COMMIT');
	like($reader->query_safe($_), qr/^$id$/m, "after it: $_") foreach @reads;
}
my $waits = 'FROM (SELECT pg_advisory_xact_lock(1) OFFSET 0) AS waited';
foreach my $call ("fast_feed.watermark('t')", 'bound()',
	"(SELECT fast_feed.watermark('t') WHERE waited IS NOT NULL)")
{
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);
	begin_waiting("SELECT $call $waits");
	$writer->query_safe('COMMIT');
	cmp_ok(end_waiting(), '<=', $id,
		"READ COMMITTED, a commit while the statement waits: $call is not beyond its row");
	cmp_ok($reader->query_safe($watermark), '>', $id, '... that of the next statement is');
}

# One value per statement, wherever it stands, and whoever ends between two partitions: also one
# that has only published, whose end no snapshot shows, and after which another reader is given
# more for the same snapshot.
my $published = RawSession->start($node);
foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
{
	$published->query_safe('BEGIN');
	$published->query_safe('INSERT INTO t (way) SELECT NULL WHERE false');
	$other->query_safe($insert);
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	begin_waiting(q{SELECT count(DISTINCT upto) FROM (SELECT unnest(ARRAY[fast_feed.watermark('t'), bound(),
		nested(), fast_feed.watermark('t', 'id')]) AS upto FROM halves WHERE pause(half)) AS s});
	$published->query_safe('COMMIT');
	$other->query_safe($watermark);
	$other->query_safe($insert);
	is(end_waiting(), 1, "$isolation: one value, though a transaction has ended meanwhile");
	$reader->query_safe('COMMIT');
}

# A cursor keeps what its snapshot was given.
$reader->query_safe('BEGIN');
my $upto = $reader->query_safe($watermark);
$reader->query_safe("DECLARE c CURSOR FOR SELECT id FROM t WHERE id < fast_feed.watermark('t') ORDER BY id DESC");
$other->query_safe($insert) foreach 1 .. 3;
cmp_ok($reader->query_safe('FETCH c'), '<', $upto, 'a cursor has the watermark of its snapshot');
cmp_ok($reader->query_safe($watermark), '>=', $upto + 3, '... and a later statement its own');
$reader->query_safe('COMMIT');

# An index condition, bounded at both ends, and partitions are pruned by it.
$node->safe_psql('postgres', q{
CREATE TABLE p (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY) PARTITION BY RANGE (id);
CREATE TABLE p_1 PARTITION OF p FOR VALUES FROM (0) TO (1000);
CREATE TABLE p_2 PARTITION OF p FOR VALUES FROM (1000) TO (2000);
SELECT fast_feed.enable('p', 'id'); INSERT INTO p DEFAULT VALUES});
like($node->safe_psql('postgres', q{SET enable_seqscan = off; SET enable_sort = off; SET enable_bitmapscan = off;
	EXPLAIN (COSTS OFF) SELECT * FROM t WHERE id > 5 AND id < fast_feed.watermark('t') ORDER BY id LIMIT 9}),
	qr/\ALimit\n.*Index (?:Only )?Scan [^\n]*\n +Index Cond: [^\n]*watermark[^\n]*\z/, 'one index condition');
like($node->safe_psql('postgres', q{EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF, SUMMARY OFF) SELECT * FROM p
	WHERE id > 0 AND id < fast_feed.watermark('p')}), qr/Subplans Removed: 1/, 'partitions are pruned by it');

# Without a kept watermark that is older: told, with what to do, each time; and READ COMMITTED
# gets nothing once.  After a restart of the sequence none is kept.
$node->safe_psql('postgres', table('fresh'));
my $restart = 'ALTER SEQUENCE fresh_id_seq RESTART WITH 10';
foreach my $isolation ('REPEATABLE READ', 'SERIALIZABLE')
{
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	$reader->query_safe('SELECT count(*) FROM t');
	$other->query_safe($restart);
	$reader->query_safe('SAVEPOINT a');
	foreach my $time ('first', 'second')
	{
		refused($reader, "SELECT fast_feed.watermark('fresh')", '55000',
			'no watermark of sequence "fresh_id_seq" is old enough.*first statement',
			"$isolation: no watermark is old enough, the $time time");
		$reader->query_safe('ROLLBACK TO a');
	}
	$reader->query_safe('ROLLBACK');
	is($reader->query_safe("SELECT fast_feed.watermark('fresh')"), 10, '... and the next transaction has one');
}
begin_waiting("SELECT fast_feed.watermark('fresh') $waits");
$other->query_safe($restart);
is(end_waiting(), 0, 'READ COMMITTED: nothing, where none is old enough');
is($reader->query_safe("SELECT fast_feed.watermark('fresh')"), 10, '... and all in the next statement');

# The server lists running transactions by process, so one that is prepared comes last.
foreach my $pair ([ $writer, $other ], [ $other, $writer ])
{
	$node->safe_psql('postgres', $restart);
	$_->query_safe('BEGIN; SELECT pg_current_xact_id() IS NULL') foreach @$pair;
	$node->safe_psql('postgres', $insert);
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM t');
	$pair->[0]->query_safe("PREPARE TRANSACTION 'listed last'");
	is($reader->query_safe("SELECT fast_feed.watermark('fresh')"), 10, 'a snapshot that lists the same transactions in another order');
	$reader->query_safe('COMMIT');
	$pair->[0]->query_safe("COMMIT PREPARED 'listed last'");
	$pair->[1]->query_safe('COMMIT');
}

# A table that is enabled after the snapshot: nobody has published what was written before.
$node->safe_psql('postgres', q{CREATE SEQUENCE shared;
CREATE TABLE one (id bigint PRIMARY KEY DEFAULT nextval('shared'));
CREATE TABLE two (id bigint PRIMARY KEY DEFAULT nextval('shared'));
SELECT fast_feed.enable('one', 'id', sequence => 'shared')});
$writer->query_safe('BEGIN');
my $uncovered = $writer->query_safe('INSERT INTO two DEFAULT VALUES RETURNING id');
$other->query_safe('INSERT INTO one DEFAULT VALUES');
$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$reader->query_safe("SELECT fast_feed.watermark('one')");
$writer->query_safe('COMMIT');
$other->query_safe("SELECT fast_feed.enable('two', 'id', sequence => 'shared')");
refused($reader, "SELECT id FROM two WHERE id < fast_feed.watermark('two')", '55000', 'was not yet followed when this snapshot',
	'a table that was enabled after the snapshot');
$reader->query_safe('ROLLBACK');
is($reader->query_safe("SELECT id FROM two WHERE id < fast_feed.watermark('two')"), $uncovered, '... and the row is read by the next');

# Of many that are kept, those before the latest ones stay.
$node->safe_psql('postgres', table('aging'));
my @aging = ('INSERT INTO aging DEFAULT VALUES', "SELECT fast_feed.watermark('aging')");
$writer->query_safe($_) foreach (@aging) x 100;
$other->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM aging';
$writer->query_safe($_) foreach (@aging) x 5;
my $aged = $other->query_safe("SELECT fast_feed.watermark('aging')");
$other->query_safe('COMMIT');
cmp_ok($aged, '<=', 101, 'after 105 watermarks, that of an older snapshot: not beyond it');
cmp_ok($aged, '>', 50, '... and not much before it');

# Kept by growing age: a transaction that has worked for a while before it reads finds one that
# is older than its snapshot, but not by much, beside ten readers and busy writers.
my $load = FeedWriters->new_load;
foreach my $number (1 .. 10)
{
	$load->writer("poll $number", $node, sub { run_in($_[0], $watermark); usleep(50_000) });
}
$load->writer("write $_", $node, sub { run_in($_[0], $insert) }) foreach 1 .. 2;
my $dba = connect_to($node, 'dba');
my $begin = run_in($dba, 'SELECT last_value FROM t_id_seq');
usleep(1_500_000);
# The longest takes too long for each time: at night, with the load of a million rows.
foreach my $work (0.02, 0.2, 2, $ENV{FEED_LOAD_ROWS} ? 30 : ())
{
	# What it finds is up to some three times as old.
	usleep(3e6 * $work) if $work > 2;
	foreach (1 .. 3)
	{
		run_in($dba, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
		my $last = run_in($dba, 'SELECT max(id) FROM t');
		usleep(1e6 * $work);
		my $bound = run_in($dba, $watermark);
		run_in($dba, 'COMMIT');
		cmp_ok($bound, '<=', $last + 3, "after $work s of work: not beyond what the snapshot shows");
		cmp_ok($bound, '>', $begin, "after $work s of work: rows of this load");
	}
}
$load->end_writers;

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
