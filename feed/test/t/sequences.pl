# What happens to a sequence beside readers and writers: it is restarted, set back, altered,
# renamed, replaced.  No reader passes the row of a transaction that commits late, not even
# with a snapshot, or by a kept watermark, from before.  Where the sequence has gone back to
# what readers may have passed, no row gets such a number.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;

my $node = start_node('sequences');
my ($writer, $other, $reader, $old) = map { RawSession->start($node) } 1 .. 4;
my $insert = "INSERT INTO t (way) VALUES ('x') RETURNING id";

sub read_after
{
	my ($position, $session) = (@_, $reader);
	return split /\n/, $session->query_safe("SELECT id FROM t WHERE id > $position AND ${\ below('t')} ORDER BY id");
}

# Fill a table by transactions that a reader follows, so that watermarks are kept.
sub fill
{
	my ($count, @more) = @_;
	$other->query_safe($_) foreach split /(?<=;)/, table('t', @more);
	$other->query_safe($insert) foreach 1 .. $count;
	return scalar read_after(0);
}

# A transaction that begins now commits after others, and after the reader has read.
sub check_late_row
{
	my ($name, $position) = @_;
	$writer->query_safe('BEGIN');
	my $late = $writer->query_safe($insert);
	$other->query_safe($insert);
	my @before = read_after($position);
	is(scalar(grep { $_ >= $late } @before), 0, "$name: no row is read that stands behind an open one");
	$writer->query_safe('COMMIT');
	my @after = read_after($before[-1] // $position);
	return is($after[0], $late, "$name: the row that commits late is read");
}

# Restarted, by each statement, when readers begin anew.
foreach my $restart ('TRUNCATE t RESTART IDENTITY', 'DELETE FROM t; ALTER SEQUENCE t_id_seq RESTART',
	'DELETE FROM t; ALTER SEQUENCE t_id_seq RESTART WITH 7', 'DELETE FROM t; ALTER TABLE t ALTER id RESTART',
	'DELETE FROM t; ALTER SEQUENCE t_id_seq CACHE 5; ALTER SEQUENCE t_id_seq RESTART CACHE 1',
	'DELETE FROM t; BEGIN; ALTER SEQUENCE t_id_seq RESTART; ROLLBACK')
{
	fill(50);
	$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$old->query_safe('SELECT 1');
	$other->query_safe($_) foreach split /; /, $restart;
	check_late_row($restart, 0);

	# With a snapshot from before, which knows of no row but those that are gone.
	my $read = "SELECT count(*) FROM t WHERE ${\ below('t')}";
	if ($restart =~ /ROLLBACK/)
	{
		is($old->query_safe($read), 50, "$restart: a snapshot from before has its rows");
	}
	else
	{
		refused($old, $read, '55000', 'no watermark of sequence "t_id_seq" is old enough',
			"$restart: a snapshot from before is told");
	}
	$old->query_safe('ROLLBACK');
	is(scalar(() = read_after(0)), 2, "$restart: both rows are there");
}

# Both statements wait for who has published, even if no number was drawn yet, and after
# PREPARE TRANSACTION.
foreach my $restart ('TRUNCATE t RESTART IDENTITY', 'ALTER SEQUENCE t_id_seq RESTART')
{
	foreach my $prepare (0, 1)
	{
		fill(5);
		$other->query_safe('DELETE FROM t');
		$writer->query_safe('BEGIN');
		$writer->query_safe('INSERT INTO t (way) SELECT NULL WHERE false');
		$writer->query_safe("PREPARE TRANSACTION 'p'") if $prepare;
		$other->send($restart);
		wait_until_blocked($node, $other);
		my $what = $prepare ? 'a prepared transaction' : 'a transaction';
		ok(!$other->has_answer, "$restart waits for $what that has only published");
		$writer->query_safe($prepare ? "COMMIT PREPARED 'p'" : 'COMMIT');
		$other->receive;
		check_late_row("$restart after $what", 0);
	}
}

# A statement has one watermark, or none where the sequence gets another file meanwhile; also from
# its own functions.  For a later one, and a cursor, a bound from before does not hold.
$other->query_safe(q{CREATE FUNCTION at_second(i int, sql text) RETURNS bigint LANGUAGE plpgsql AS
	$$ BEGIN IF i = 2 THEN EXECUTE sql; END IF; RETURN i; END $$});
my $per_row = "SELECT fast_feed.watermark('t') AS w, at_second(i, \$\$%s\$\$) FROM generate_series(1, 3) AS i";
my @altered = ('55000', 'sequence "t_id_seq" was altered or restarted during .*Retry');
foreach my $change ("SELECT fast_feed.skip('t_id_seq', 99)", 'ALTER SEQUENCE t_id_seq MAXVALUE 1000',
	'ALTER SEQUENCE t_id_seq RESTART')
{
	foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
	{
		my $what = "$change, $isolation";
		my $watermark = "SELECT fast_feed.watermark('t')";
		my $begin = "BEGIN ISOLATION LEVEL $isolation";
		fill(5);
		$other->query_safe($_) foreach 'BEGIN', 'SELECT pg_advisory_xact_lock(1)';
		$reader->query_safe($begin);
		$reader->send(sprintf $per_row, 'SELECT pg_advisory_xact_lock(1)');
		wait_until_blocked($node, $reader);
		$writer->query_safe($change);
		$other->query_safe('COMMIT');
		$reader->receive;
		like($reader->{error}, qr/^$altered[0] $altered[1]/s, "$what: beside a statement");
		$reader->query_safe('ROLLBACK');
		check_late_row("$what: again", 5) unless $change =~ /RESTART/;

		fill(5);
		$reader->query_safe($begin);
		refused($reader, sprintf($per_row, $change), @altered, "$what: within a statement");
		$reader->query_safe('ROLLBACK');
		$reader->query_safe($_) foreach $begin, "DECLARE c CURSOR FOR $watermark", $watermark, $change, 'SAVEPOINT a';
		refused($reader, 'FETCH c', @altered, "$what: before a cursor is fetched");
		$reader->query_safe('ROLLBACK TO a');
		refused($reader, $watermark, @altered, "$what: between statements");
		$reader->query_safe('ROLLBACK');
		$reader->query_safe($_) foreach $begin, 'SAVEPOINT a', $change;
		$reader->query_safe($watermark);
		$reader->query_safe('ROLLBACK TO a');

		# Its end is one that the next snapshot knows of.
		like($reader->outcome($watermark), $isolation eq 'READ COMMITTED' ? qr/^value 6$/ : qr/^55000$/,
			"$what: in a savepoint that is rolled back");
		$reader->query_safe('ROLLBACK');
		is($reader->query_safe($watermark), 6, "$what: nothing of that holds");
	}
}

# Or where the column gets another sequence, which needs no lock on the table.  enable() gives nothing.
fill(5, 'id bigserial PRIMARY KEY, way text');
$other->query_safe('CREATE SEQUENCE s MINVALUE 100');
refused($reader, sprintf($per_row, 'ALTER SEQUENCE t_id_seq OWNED BY NONE; ALTER SEQUENCE s OWNED BY t.id'), '55000',
	'"s" was altered', 'another sequence within a statement');
$reader->query_safe('ROLLBACK');
refused($reader, sprintf($per_row, 'ALTER TABLE t RENAME id TO before; ALTER TABLE t ADD id bigserial UNIQUE'), '55000',
	'"t_id_seq1" was altered', '... by another column of the name');
$reader->query_safe('ROLLBACK');
$reader->query_safe($_) foreach 'BEGIN', "SELECT fast_feed.enable('t', 'id')", 'ALTER SEQUENCE t_id_seq MAXVALUE 1000',
  "SELECT fast_feed.enable('t', 'id')";
refused($reader, 'SAVEPOINT a; SELECT fast_feed.wait(0)', '25001', 'already called', '... after which it does not wait');
$reader->query_safe('ROLLBACK TO a');
is($reader->query_safe("SELECT fast_feed.watermark('t')"), 6, 'enabled, altered and enabled in a transaction');
$reader->query_safe('ROLLBACK');

# Set back to what readers may have passed: no row gets such a number, by whatever way.
fill(50);
$other->query_safe("SELECT setval('t_id_seq', 5)");
my $gone_back = 'sequence "t_id_seq" has gone back to numbers that readers may have passed.*RESTART';
refused($writer, $insert, '55000', $gone_back, 'set back: refused by follow()');
refused($writer, "SELECT fast_feed.next('t_id_seq')", '55000', $gone_back, 'set back: refused by next()');
$writer->query_safe('BEGIN');
$writer->query_safe('SAVEPOINT a');
refused($writer, $insert, '55000', $gone_back, 'set back: refused in a savepoint');
$writer->query_safe('ROLLBACK TO a');
refused($writer, $insert, '55000', $gone_back, 'set back: refused again after it');
$writer->query_safe('ROLLBACK');
is_deeply([ read_after(0) ], [ 1 .. 5 ], 'set back: readers are not told of what was higher');
$other->query_safe("SELECT setval('t_id_seq', 50)");
check_late_row('set back and forth', 50);
$other->query_safe('DELETE FROM t');
$other->query_safe('ALTER SEQUENCE t_id_seq RESTART WITH 6');
check_late_row('restarted on purpose', 0);

# Nor with a snapshot from before, by a kept watermark.
fill(50);
$old->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$old->query_safe('SELECT 1');
$other->query_safe('DELETE FROM t');
$other->query_safe("SELECT setval('t_id_seq', 5)");
cmp_ok($old->query_safe("SELECT fast_feed.watermark('t')"), '<=', 6, 'set back: an old snapshot is not told either');
$old->query_safe('ROLLBACK');

# Set back where nobody was told yet is nobody's harm.
fill(0);
$other->query_safe("SELECT setval('t_id_seq', 70)");
$other->query_safe("SELECT setval('t_id_seq', 20)");
check_late_row('set back before anybody has read', 0);

# Set back while somebody has published: no number at or below that is used.
foreach my $draw ($insert, "SELECT fast_feed.next('t_id_seq')",
	"INSERT INTO t VALUES (nextval('t_id_seq'), 'x')")
{
	fill(50);
	$writer->query_safe('BEGIN');
	$writer->query_safe($insert);
	$other->query_safe("SELECT setval('t_id_seq', 5)");
	refused($writer, $draw, '(?:55000|23514)', '', "set back beside an open transaction: $draw");
	$writer->query_safe('ROLLBACK');
}
fill(50, 'id bigserial PRIMARY KEY, way text, changed bigint');
$other->query_safe("SELECT fast_feed.enable('t', 'id', true)");
$writer->query_safe('BEGIN');
$writer->query_safe($insert);
$other->query_safe("SELECT setval('t_id_seq', 5)");
refused($writer, $insert, '55000', 'has gone back during this transaction', 'set back: refused by stamp()');
$writer->query_safe('ROLLBACK');

# The column is given another sequence while a writer waits for the one before.
foreach my $change ('ALTER SEQUENCE %s OWNED BY NONE; ALTER SEQUENCE s OWNED BY t.changed',
	'ALTER SEQUENCE %s RENAME TO r; ALTER SEQUENCE s RENAME TO %s')
{
	my $old = $change =~ /RENAME/ ? 'named' : 't_changed_seq';
	my $named = $change =~ /RENAME/ ? ", 'named'" : '';
	$other->query_safe($_) foreach 'DROP TABLE IF EXISTS t', 'DROP SEQUENCE IF EXISTS s, r, named, t_changed_seq',
	  'CREATE TABLE t (id bigserial PRIMARY KEY, way text, changed bigint)', 'CREATE SEQUENCE s', 'CREATE SEQUENCE named',
	  'CREATE SEQUENCE t_changed_seq OWNED BY t.changed',
	  "SELECT fast_feed.enable('t', 'changed', true$named)", $insert, 'BEGIN';
	$other->query_safe($_) foreach split /; /, $change =~ s/%s/$old/gr;
	$other->query_safe(sprintf "SELECT setval('%s', 1000)", $named ? 'named' : 's');
	$writer->query_safe('BEGIN');
	$writer->send($insert =~ s/RETURNING id/RETURNING changed/r);
	wait_until_blocked($node, $writer);
	$other->query_safe('COMMIT');
	is($writer->receive, 1001, "$change: who has waited draws from the new one");
	$other->query_safe($insert);
	cmp_ok($reader->query_safe("SELECT fast_feed.watermark('t')"), '<=', 1001, "$change: ... and holds back");
	$writer->query_safe('COMMIT');
}

# ... and that one is dropped.
foreach my $waits ($insert, "SELECT fast_feed.watermark('t')")
{
	$other->query_safe($_) foreach 'DROP TABLE t', 'CREATE TABLE t (id bigserial PRIMARY KEY, way text, changed bigint)',
	  'CREATE SEQUENCE dropped OWNED BY t.changed', "SELECT fast_feed.enable('t', 'changed', true)", $insert, 'BEGIN',
	  'ALTER SEQUENCE dropped OWNED BY NONE', 'CREATE SEQUENCE t_changed_seq OWNED BY t.changed', 'DROP SEQUENCE dropped';
	$writer->send($waits);
	wait_until_blocked($node, $writer);
	$other->query_safe('COMMIT');
	$writer->receive;
	like($writer->{error}, qr/^55000 .*was dropped.*Retry/s, "the sequence that it waited for is dropped: $waits");
	$writer->query_safe($waits);
}

# Numbers that a session has cached before CACHE 1 are gone.
fill(3);
$other->query_safe('ALTER SEQUENCE t_id_seq CACHE 50');
$writer->query_safe("SELECT nextval('t_id_seq')");
$other->query_safe('ALTER SEQUENCE t_id_seq CACHE 1');
check_late_row('cached numbers', $other->query_safe('SELECT max(id) FROM t'));

# The identity is dropped and added again, or another sequence takes its place, in sessions
# that have the one before in their caches.
foreach my $change (
	'ALTER TABLE t ALTER id DROP IDENTITY, ALTER id ADD GENERATED BY DEFAULT AS IDENTITY',
	'ALTER TABLE t ALTER id DROP IDENTITY; CREATE SEQUENCE s OWNED BY t.id; ALTER TABLE t ALTER id SET DEFAULT nextval(\'s\')',
	'ALTER TABLE t ALTER id DROP IDENTITY; CREATE SEQUENCE s; ALTER TABLE t ALTER id SET DEFAULT fast_feed.next(\'s\');'
	  . ' ALTER SEQUENCE s OWNED BY t.id',
	'ALTER SEQUENCE t_id_seq RENAME TO s', 'ALTER TABLE t RENAME TO u; ALTER TABLE u RENAME TO t')
{
	$other->query_safe($_) foreach 'DROP TABLE IF EXISTS t', 'DROP SEQUENCE IF EXISTS s';
	fill(20);
	$_->query_safe($insert) foreach $writer, $other, $reader;
	$other->query_safe('DELETE FROM t');
	$other->query_safe($_) foreach split /; ?/, $change;
	check_late_row($change, $change =~ /RENAME/ ? 23 : 0);
}

# The schema of a sequence given by name becomes another one's, or nobody's: all sessions follow the same.
$other->query_safe($_) foreach 'CREATE SCHEMA a', 'CREATE SEQUENCE a.s', 'CREATE SCHEMA b', 'CREATE SEQUENCE b.s START 1001',
  "CREATE TABLE v (id bigint PRIMARY KEY DEFAULT nextval('a.s'), way text)",
  "SELECT fast_feed.enable('v', 'id', sequence => 'a.s')";
my $into_v = "INSERT INTO v (way) VALUES ('') RETURNING id";
$_->query_safe($into_v) foreach $writer, $reader;
$other->query_safe($_) foreach 'BEGIN', 'ALTER SCHEMA a RENAME TO c', 'ALTER SCHEMA b RENAME TO a', 'COMMIT';
refused($writer, $into_v, '23514', 'could be missed', 'the schema is renamed: a number of the sequence before is refused');
is($reader->query_safe("SELECT fast_feed.watermark('v')"), 1001, '... and the watermark is of the one that is followed');
$other->query_safe('ALTER SCHEMA a RENAME TO b');
refused($_, "SELECT fast_feed.watermark('v')", '42P01', 'sequence "a.s" does not exist.*if it was renamed',
	'... and there is none without a sequence') foreach $reader, $other;

# A sequence that is given to another column leaves sessions that have used it.
$other->query_safe('DROP TABLE IF EXISTS u');
fill(3, 'id bigserial PRIMARY KEY, way text');
$_->query_safe($insert) foreach $writer, $other, $reader;
$other->query_safe('CREATE TABLE u (id bigint)');
$other->query_safe('ALTER SEQUENCE t_id_seq OWNED BY u.id');
refused($_, $insert, '55000', 'does not own exactly one sequence', 'owned by another column') foreach $writer, $other;
refused($reader, "SELECT fast_feed.watermark('t')", '55000', 'does not own exactly one sequence',
	'owned by another column: no watermark');
$other->query_safe('ALTER SEQUENCE t_id_seq OWNED BY t.id');
check_late_row('owned again', 6);

# More sequences in a transaction than fit into shared memory, in a savepoint
# that is rolled back, prepared, and over a crash.
my @tables = map { "many_$_" } 1 .. 20;
$other->query_safe($_) foreach map { split /(?<=;)/, table($_) } @tables;
sub check_many
{
	my ($name) = @_;
	my @held = grep { $reader->query_safe("SELECT count(*) FROM $_ WHERE ${\ below($_)}") == 0 } @tables;
	return is("@held", "@tables", "$name: each of many sequences is held back");
}
$writer->query_safe('BEGIN');
$writer->query_safe('SAVEPOINT a');
$writer->query_safe("INSERT INTO $_ (way) VALUES ('late')") foreach @tables;
$writer->query_safe('ROLLBACK TO a');
$writer->query_safe("INSERT INTO $_ (way) VALUES ('late')") foreach @tables;
# In a savepoint that is released, which has a transaction ID of its own.
$writer->query_safe($_) foreach 'SAVEPOINT b', "UPDATE many_1 SET way = 'later'", 'RELEASE b';
$other->query_safe("INSERT INTO $_ (way) VALUES ('early')") foreach @tables;
check_many('open');
is($other->query_safe('SELECT count(DISTINCT sequence), count(*) FROM fast_feed.holders()'), 20, 'holders() has them');
$writer->query_safe("PREPARE TRANSACTION 'many'");
check_many('prepared');
is($other->query_safe(q{SELECT string_agg(DISTINCT gid, ' ') || ' ' || count(*) FROM fast_feed.holders()}), 'many 20',
	'holders() has each once');
$node->stop('immediate');
$node->start;
($writer, $other, $reader) = map { RawSession->start($node) } 1 .. 3;
check_many('prepared, after a crash');
$other->query_safe("COMMIT PREPARED 'many'");
is($reader->query_safe("SELECT count(*) FROM $_ WHERE ${\ below($_)}"), 2, "$_: both rows are read") foreach @tables;
is($other->query_safe('SELECT count(*) FROM fast_feed.holders()'), 0, 'holders() has none');

# Beyond what a lock can hold, a prepared transaction holds back all.
fill(0);
$other->query_safe("SELECT setval('t_id_seq', (1::bigint << 48) - 2)");
check_late_row('below 2^48', 0);
$writer->query_safe('BEGIN');
my $late = $writer->query_safe($insert);
$writer->query_safe("PREPARE TRANSACTION 'p'");
$other->query_safe($insert);
is(scalar(read_after(0)), 0, 'above 2^48: a prepared transaction holds back all');
$other->query_safe("COMMIT PREPARED 'p'");
is((read_after($late - 1))[0], $late, 'above 2^48: its row is read');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
