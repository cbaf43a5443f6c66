# What a reader, writer, owner or DBA would see of mistakes in single lines, that no other test
# would notice: found by planting them.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;

my $node = start_node('corners');
$node->safe_psql('postgres', table('t') . table('u') . q{
CREATE TABLE noise (n int);
CREATE ROLE owner; CREATE ROLE selects;
CREATE SCHEMA mine AUTHORIZATION owner;
GRANT TEMP ON DATABASE postgres TO owner;
CREATE FUNCTION pause(i int) RETURNS bigint VOLATILE LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_xact_lock(1) WHERE i = 2; RETURN 0; END $$;
});
my ($writer, $reader, $other, $another) = map { RawSession->start($node) } 1 .. 4;
my $insert = "INSERT INTO t (way) VALUES ('x') RETURNING id";
my $publish = 'INSERT INTO t (way) SELECT NULL WHERE false';
my $watermark = "SELECT fast_feed.watermark('t')";

# Run statements, and return the rows of the last one.
sub all
{
	my ($session, @statements) = @_;
	my $rows;
	$rows = $session->query_safe($_) foreach @statements;
	return $rows;
}

# A lock counts for each file that the sequence has a place for.
all($other, ($insert) x 3);
all($reader, $watermark);
all($other, 'ALTER SEQUENCE t_id_seq RESTART WITH 10');
all($reader, $watermark, $watermark);
my $late = all($writer, 'BEGIN', $insert);
all($writer, "PREPARE TRANSACTION 'p'");
all($other, $insert);
cmp_ok(all($reader, $watermark), '<=', $late, 'after a restart of the sequence, PREPARE holds back');
all($other, "COMMIT PREPARED 'p'");

# A mark that a transaction keeps from within a savepoint serves others who see it running.
all($writer, 'BEGIN', 'INSERT INTO noise VALUES (1)');
my $number = all($other, $insert);
all($writer, 'SAVEPOINT a', 'INSERT INTO noise VALUES (2)');
all($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t');
all($writer, $watermark);
all($other, $insert);
is($reader->outcome($watermark), 'value ' . ($number + 1), 'a mark that was kept within a savepoint');
all($_, 'ROLLBACK') foreach $writer, $reader;

# What is changed while a transaction has the table locked shows in its next statement.
all($reader, 'SET plan_cache_mode = force_generic_plan', 'PREPARE reads AS ' . $watermark);
foreach my $change ('ALTER TABLE t DISABLE TRIGGER ALL', 'CREATE TABLE child () INHERITS (t)', 'ALTER SEQUENCE t_id_seq CACHE 5')
{
	all($reader, 'BEGIN', ('EXECUTE reads') x 2);
	all($other, $change);
	refused($reader, 'EXECUTE reads', '55000', 'not followed|cannot be followed', "$change: no watermark any more");
	all($reader, 'ROLLBACK');
	all($other, 'DROP TABLE IF EXISTS child', 'ALTER SEQUENCE t_id_seq CACHE 1', "SELECT fast_feed.enable('t', 'id')");
}
all($reader, 'DEALLOCATE reads', 'RESET plan_cache_mode');

# Two feeds in one statement: each has one value.
all($another, 'BEGIN', $publish);
all($other, $insert);
all($writer, 'SELECT pg_advisory_lock(1)');
$reader->send('SELECT count(DISTINCT a[1]) FROM (SELECT'
	  . " ARRAY[fast_feed.watermark('t'), fast_feed.watermark('u'), pause(i)] AS a FROM generate_series(1, 3) AS i OFFSET 0) AS s");
wait_for($node, "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $reader->{pid}");
all($another, 'COMMIT');
all($writer, 'SELECT pg_advisory_unlock(1)');
is($reader->receive, 1, 'two feeds in one statement');

# After a prepared transaction the session's next one takes no locks.
all($writer, 'BEGIN', $insert, "PREPARE TRANSACTION 'p'", "COMMIT PREPARED 'p'", 'BEGIN', $insert);
is(all($other, "SELECT count(*) FROM pg_locks WHERE locktype = 'userlock'"), 0, 'no locks after PREPARE TRANSACTION');
all($writer, 'ROLLBACK', 'BEGIN', $insert, 'CREATE TEMP TABLE unprepared (n int)');
refused($writer, "PREPARE TRANSACTION 'p'", '0A000', 'temporary', 'PREPARE TRANSACTION fails');
all($writer, 'BEGIN', $insert);
is(all($other, "SELECT count(*) FROM pg_locks WHERE locktype = 'userlock'"), 0, '... and leaves no locks to the next one');
all($writer, 'ROLLBACK');

# A writer that restarts the sequence itself.
all($writer, 'BEGIN', $insert, 'TRUNCATE t RESTART IDENTITY');
is($writer->outcome($insert), 'value 1', 'a sequence that the writer has restarted');
all($writer, 'ROLLBACK');

# holders(), of a number with its 16th bit set
all($other, "SELECT setval('t_id_seq', 40000)");
all($writer, 'BEGIN', $insert, "PREPARE TRANSACTION 'p'");
is(all($other, "SELECT last FROM fast_feed.holders() WHERE gid = 'p'"), 40000, 'holders() has the number');
all($other, "COMMIT PREPARED 'p'");

# A sequence that has given nothing yet
all($other, 'CREATE TABLE fresh (id bigserial PRIMARY KEY)', 'INSERT INTO fresh VALUES (1)');
refused($other, "SELECT fast_feed.enable('fresh', 'id')", '55000', 'has not given', 'a sequence that has given nothing');
cmp_ok(all($other, "SELECT fast_feed.skip('fresh_id_seq', 1)", "SELECT nextval('fresh_id_seq')"), '>', 1, '... is skipped');

# Indexes: one that is not valid excludes nothing; one that includes another column does.
all($other, 'CREATE TABLE invalid (id bigserial)', 'INSERT INTO invalid VALUES (1), (1)', "SELECT setval('invalid_id_seq', 5)");
$other->query('CREATE UNIQUE INDEX CONCURRENTLY ON invalid (id)');
refused($other, "SELECT fast_feed.enable('invalid', 'id')", '55000', 'more than once', 'an index that is not valid');
all($other, 'CREATE TABLE included (id bigserial, body text)', 'CREATE UNIQUE INDEX ON included (id) INCLUDE (body)',
	"SELECT fast_feed.enable('included', 'id')", 'BEGIN');
my ($first, $second) = map { all($other, "SELECT fast_feed.next('included_id_seq')") } 1, 2;
all($other, "INSERT INTO included VALUES ($second)");
is($other->outcome("INSERT INTO included VALUES ($first) RETURNING id"), "value $first", 'an index that includes a column');
all($other, 'ROLLBACK');

# Enabled by a transaction that was in progress when the snapshot was taken
all($other, 'CREATE SEQUENCE shared', "CREATE TABLE one (id bigint PRIMARY KEY DEFAULT nextval('shared'))",
	"CREATE TABLE two (id bigint PRIMARY KEY DEFAULT nextval('shared'))", "SELECT fast_feed.enable('one', 'id', sequence => 'shared')");
all($writer, 'BEGIN', 'INSERT INTO two DEFAULT VALUES');
all($another, 'BEGIN', 'SELECT txid_current()');
all($other, 'INSERT INTO one DEFAULT VALUES');
all($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ', "SELECT fast_feed.watermark('one')");
all($writer, 'COMMIT');
all($another, "SELECT fast_feed.enable('two', 'id', sequence => 'shared')", 'COMMIT');
refused($reader, "SELECT fast_feed.watermark('two')", '55000', 'not yet followed', 'enabled by a transaction in progress');
all($reader, 'ROLLBACK');

# A cursor has an older snapshot than what the session asks by meanwhile.
all($other, "CREATE TABLE three (id bigint PRIMARY KEY DEFAULT nextval('shared'))");
all($writer, 'BEGIN', 'INSERT INTO three DEFAULT VALUES');
all($other, 'INSERT INTO one DEFAULT VALUES');
all($reader, 'BEGIN', "SELECT fast_feed.watermark('one')", "DECLARE c CURSOR FOR SELECT fast_feed.watermark('three')");
all($writer, 'COMMIT');
all($other, "SELECT fast_feed.enable('three', 'id', sequence => 'shared')");
cmp_ok(all($reader, "SELECT fast_feed.watermark('three')"), '>', 1, 'a statement after enable()');
refused($reader, 'FETCH c', '55000', 'not yet followed', 'a cursor from before enable()');
all($reader, 'ROLLBACK');

# The same of a partition, whose trigger was disabled when a row was written, and is enabled by
# hand.  One that comes after the snapshot was not written to before.
all($other, 'CREATE TABLE parted (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY) PARTITION BY RANGE (id)',
	map({ "CREATE TABLE parted_$_ PARTITION OF parted FOR VALUES FROM (${_}00) TO (${_}99)" } 0 .. 1),
	"SELECT fast_feed.enable('parted', 'id')", 'ALTER TABLE parted_0 DISABLE TRIGGER ALL');
my $unknown = all($writer, 'BEGIN', "INSERT INTO parted_0 SELECT nextval('parted_id_seq') RETURNING id");
$late = all($another, 'INSERT INTO parted DEFAULT VALUES RETURNING id');
is(all($another, "SELECT fast_feed.watermark('parted_1')"), $late + 1, 'of another partition there is a watermark');
all($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t', 'SAVEPOINT a');
all($writer, 'COMMIT');
all($other, 'ALTER TABLE parted_0 ENABLE ALWAYS TRIGGER zzz_fast_feed_guard');
foreach my $time ('first', 'second')
{
	refused($reader, "SELECT fast_feed.watermark('parted')", '55000', '"parted_0" was not yet followed', "a partition's trigger, the $time time");
	all($reader, 'ROLLBACK TO a');
}
all($reader, 'ROLLBACK');
is(all($reader, "SELECT string_agg(id::text, ' ' ORDER BY id) FROM parted WHERE id < fast_feed.watermark('parted')"),
	"$unknown $late", '... and the next transaction has a watermark');
all($reader, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t');
all($other, 'CREATE TABLE parted_2 PARTITION OF parted FOR VALUES FROM (200) TO (299)');
is($reader->outcome("SELECT fast_feed.watermark('parted')"), 'value ' . ($late + 1), 'a partition that is created after the snapshot');
all($reader, 'ROLLBACK');

# What a snapshot was given is forgotten with it.
my $statements = q{DO $$ BEGIN FOR i IN 1..%d LOOP
	BEGIN INSERT INTO noise VALUES (1); RAISE 'rolled back'; EXCEPTION WHEN raise_exception THEN NULL; END;
	PERFORM fast_feed.watermark('t'); END LOOP; END $$};
my $bytes = "SELECT total_bytes FROM pg_backend_memory_contexts WHERE name = 'TopTransactionContext'";
all($other, 'BEGIN');
my ($after_few, $after_many) = map { all($other, sprintf($statements, $_), $bytes) } 20, 2000;
is($after_many, $after_few, 'memory of a transaction after 20 and 2,000 statements');
all($other, 'COMMIT');

# What is found out about a partition does not depend on how many there are.
all($other, 'CREATE TABLE hundred (id bigserial) PARTITION BY HASH (id)',
	map({ "CREATE TABLE hundred_$_ PARTITION OF hundred FOR VALUES WITH (MODULUS 100, REMAINDER $_)" } 0 .. 99),
	"SELECT fast_feed.enable('hundred', 'id')");
my $fresh = RawSession->start($node);
all($fresh, 'BEGIN', "SELECT fast_feed.watermark('hundred')");
cmp_ok(all($fresh, "SELECT idx_tup_fetch FROM pg_stat_xact_sys_tables WHERE relname = 'pg_depend'"), '<', 1000,
	'rows of pg_depend that are read for 100 partitions');
$fresh->quit;

# Privileges: USAGE is enough for the owner of a table; without it he does not draw, not even
# from what is published already; next() publishes nothing for who may only read.
all($other, 'CREATE SEQUENCE granted', 'GRANT USAGE ON SEQUENCE granted TO owner', 'CREATE TABLE mine.granted (id int, n bigint)',
	'ALTER TABLE mine.granted OWNER TO owner', "SELECT fast_feed.enable('mine.granted', 'n', true, 'public.granted')",
	'INSERT INTO mine.granted VALUES (1)', 'REVOKE USAGE ON SEQUENCE granted FROM owner', 'BEGIN', "SELECT fast_feed.next('granted')");
refused($other, 'INSERT INTO mine.granted VALUES (1)', '42501', 'permission denied for sequence', 'without USAGE');
all($other, 'ROLLBACK', 'GRANT SELECT ON SEQUENCE granted TO owner');
refused($other, 'INSERT INTO mine.granted VALUES (1)', '42501', 'permission denied for sequence', 'with SELECT alone');
all($other, 'GRANT SELECT ON SEQUENCE t_id_seq TO selects');
all($another, 'BEGIN', 'SET LOCAL ROLE selects', 'SAVEPOINT a');
refused($another, "SELECT fast_feed.next('t_id_seq')", '42501', '', 'next() by who may only read');
all($another, 'ROLLBACK TO a');
is(all($other, 'SELECT count(*) FROM fast_feed.in_flight()'), 0, '... publishes nothing');
all($another, 'ROLLBACK');
# A privilege that is revoked in the middle of a transaction, also where a row was inserted since
all($other, 'CREATE TABLE revoked (id bigserial PRIMARY KEY)', "SELECT fast_feed.enable('revoked', 'id')", 'GRANT INSERT ON revoked TO selects',
	'GRANT USAGE ON SEQUENCE revoked_id_seq TO selects', 'BEGIN', 'SET LOCAL ROLE selects', "SELECT fast_feed.next('revoked_id_seq')",
	'RESET ROLE', 'REVOKE USAGE ON SEQUENCE revoked_id_seq FROM selects', 'INSERT INTO revoked DEFAULT VALUES', 'SET LOCAL ROLE selects');
refused($other, "SELECT fast_feed.next('revoked_id_seq')", '42501', '', 'a privilege that was revoked');
all($other, 'ROLLBACK');
all($other, 'SET ROLE owner', 'CREATE TABLE mine.trap (id bigserial PRIMARY KEY)',
	"CREATE FUNCTION mine.see() RETURNS int LANGUAGE sql AS 'SELECT 1'",
	"CREATE FUNCTION mine.f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN mine.see(); END'",
	'CREATE INDEX ON mine.trap (mine.f(1))', 'CREATE OR REPLACE FUNCTION mine.see() RETURNS int LANGUAGE plpgsql AS'
	  . " 'BEGIN CREATE TEMP TABLE left_behind (n int); RETURN 1; END'", 'RESET ROLE');
refused($another, "SELECT fast_feed.enable('mine.trap', 'id')", '42501', 'security-restricted', 'what an owner leaves behind for a superuser');

# What was published in a savepoint that is rolled back keeps the lock of the sequence.
all($writer, 'BEGIN', 'SAVEPOINT a', $publish, 'ROLLBACK TO a');
$other->send("ALTER SEQUENCE t_id_seq RESTART WITH 60000");
wait_until_blocked($node, $other);
ok(!$other->has_answer, 'ALTER SEQUENCE waits for who has published in a savepoint');
all($writer, 'COMMIT');
$other->receive;

# skip() below what was drawn while it waited
$number = all($writer, 'BEGIN', $insert);
$other->send("SELECT fast_feed.skip('t_id_seq', $number + 50)");
wait_until_blocked($node, $other);
all($writer, ($insert) x 99, 'COMMIT');
is($other->receive, $number + 99, 'skip() does not go back behind what was drawn while it waited');
is(all($writer, $insert), $number + 100, '... nor does the sequence');

# Set back by one number
$number = all($other, ($insert) x 5);
is(all($reader, $watermark), $number + 1, 'the watermark');
all($other, "SELECT setval('t_id_seq', $number - 1)", "DELETE FROM t WHERE id = $number");
refused($writer, $insert, '55000', 'has gone back', 'set back by one number');
all($other, "SELECT setval('t_id_seq', $number)");

# A trigger that does not see each UPDATE, and what may run in a parallel worker
all($other, 'CREATE TABLE partly (id bigserial PRIMARY KEY, way text)',
	"CREATE TRIGGER g BEFORE INSERT OR UPDATE OF way ON partly FOR EACH ROW EXECUTE FUNCTION fast_feed.guard('id')",
	'ALTER TRIGGER g ON partly DEPENDS ON EXTENSION fast_feed', 'ALTER TABLE partly ENABLE ALWAYS TRIGGER g');
refused($other, "SELECT fast_feed.watermark('partly')", '55000', 'not followed', 'a trigger for some columns');
is(all($other, q{SELECT string_agg(DISTINCT proparallel::text, '' ORDER BY proparallel::text) FROM pg_proc
	WHERE pronamespace = 'fast_feed'::regnamespace}), 'ru', 'no function is PARALLEL SAFE');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
