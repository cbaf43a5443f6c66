# The watermark under fire: 10 sessions write into a table in every way, while readers
# follow it: by a statement, in a snapshot older than the statement, by a cursor, and
# naively, by the greatest id that was seen.  In the second half the clock jumps back and
# forth.  The readers by the watermark see each committed row exactly once, in ascending
# order; the naive one misses rows.  Other kinds of statements are those of statements.pl.
#
# FAST_UUID_FIRE_SECONDS: for how long they write at least (6).

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use lib 'test/perl';
use FakeClock;
use FeedWriters;

my $seconds = $ENV{FAST_UUID_FIRE_SECONDS} // 6;
my $writers = 10;
my $dir  = PostgreSQL::Test::Utils::tempdir();
my ($enough, $stop) = ("$dir/enough", "$dir/stop");

# A commit waits for others before it is flushed, and so stands between "begun"
# and "visible" for a while.
my $node = new_feed_node('fire', q{
max_connections = 60
max_prepared_transactions = 60
fsync = on
commit_delay = 2000
commit_siblings = 1
});
fake_clock_installed() ? start_with_fake_clock($node) : $node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE followed (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), way text);

-- A row that is written when the transaction commits, or prepares.
CREATE TABLE late ();
CREATE FUNCTION write_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO followed (way) VALUES ('deferred trigger');
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION write_late();

CREATE PROCEDURE write_and_commit(transactions int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..transactions LOOP
		INSERT INTO followed (way) VALUES ('procedure');
		PERFORM count(*) FROM generate_series(1, (random() * 20000)::int);
		INSERT INTO followed (way) SELECT 'procedure' FROM generate_series(1, 3);
		IF random() < 0.8 THEN
			COMMIT;
		ELSE
			ROLLBACK;
		END IF;
	END LOOP;
END $$;
});

$node->safe_psql('postgres', guard('followed'));

# Writers

my @pieces = (
	sub { 'INSERT INTO followed (way) VALUES (\'row\')' },
	sub { 'INSERT INTO followed VALUES (uuidv7_feed_id(\'xorshift128+\'), \'row\')' },
	sub { 'INSERT INTO followed (way) SELECT \'rows\' FROM generate_series(1, ' . int(1 + rand 100) . ')' },
	sub { 'SELECT uuidv7_fast(); INSERT INTO followed (way) VALUES (\'row\')' },
	sub { 'INSERT INTO late DEFAULT VALUES' },
	sub { 'SAVEPOINT a; INSERT INTO followed (way) VALUES (\'lost\'); ROLLBACK TO a; INSERT INTO followed (way) VALUES (\'savepoint\');'
		  . 'SAVEPOINT b; INSERT INTO followed (way) VALUES (\'savepoint\'); RELEASE b' },
	sub { 'DO $$ BEGIN BEGIN INSERT INTO followed (way) VALUES (\'lost\'); RAISE division_by_zero;'
		  . 'EXCEPTION WHEN division_by_zero THEN NULL; END; INSERT INTO followed (way) VALUES (\'exception\'); END $$' });

sub write_transaction
{
	my ($session, $name, $number) = @_;
	my $choice = rand;

	return run_in($session, 'CALL write_and_commit(4)') if $choice < 0.05;
	return run_in($session, $pieces[ rand 4 ]->()) if $choice < 0.15;
	return finish_prepared($session) if $choice < 0.3;

	run_in($session, 'BEGIN');
	foreach (0 .. rand 3)
	{
		run_in($session, $pieces[ rand @pieces ]->());
		pause(5) if rand() < 0.3;
	}
	pause(20);

	$choice = rand;
	if ($choice < 0.15)
	{
		my $gid = "$name $number";
		run_in($session, "PREPARE TRANSACTION '$gid'");
		return if rand() < 0.5;
		pause(20);
		return finish_prepared($session, $gid);
	}
	return run_in($session, 'ROLLBACK') if $choice < 0.22;
	return run_in($session, 'SELECT 1 / 0') if $choice < 0.25;
	if ($choice < 0.27)
	{
		$session->quit;
		$session->{closed} = 1;
		return;
	}
	return run_in($session, 'COMMIT');
}

# Cancelled, killed, a division by zero; the prepared transaction was finished, or
# is being finished, by another.
my $provoked = qr/^(?:writer \d+: )?(closed|57014|57P01|22012|42704 prepared transaction|55000 prepared transaction)/;

sub write_until_enough
{
	my ($name) = @_;
	my $session;

	for (my $number = 0; !-e $enough; $number++)
	{
		eval {
			$session = connect_to($node, "writer $name") if !$session || $session->{closed};
			write_transaction($session, $name, $number);
			1;
		} or do
		{
			die $@ unless $@ =~ /$provoked/;

			# It can be cancelled, too.
			$session->query('ROLLBACK') foreach $session ? (1 .. 2) : ();
		};
	}
	return;
}

# Readers.  Each gets its session and the last id that it has seen, and returns those
# that come next.

my $below = 'id < uuidv7_feed_watermark()';

sub by_statement
{
	my ($sql, $from) = @_;
	return sub { run_in($_[0], sprintf($sql, $_[1])) };
}

# In a transaction whose snapshot is older than the statement.
sub by_snapshot
{
	my ($session, $last) = @_;
	run_in($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	run_in($session, 'SELECT count(*) FROM late');
	pause(20);
	my $ids = run_in($session, "SELECT id FROM followed WHERE id > '$last' AND $below ORDER BY id");
	run_in($session, 'COMMIT');
	return $ids;
}

# In pieces, while other statements ask for the watermark.
sub by_cursor
{
	my ($session, $last) = @_;
	run_in($session, 'BEGIN');
	run_in($session, "DECLARE c CURSOR FOR SELECT id FROM followed WHERE id > '$last' AND $below ORDER BY id");
	pause(20);
	my ($ids, $some) = ('');
	do
	{
		$some = run_in($session, 'FETCH 500 c');
		$ids .= ($ids eq '' || $some eq '' ? '' : "\n") . $some;
		run_in($session, 'SELECT uuidv7_feed_watermark()');
	} while ($some ne '');
	run_in($session, 'COMMIT');
	return $ids;
}

my %reader = (
	statement => by_statement("SELECT id FROM followed WHERE id > '%s' AND $below ORDER BY id"),
	repeatable_read => \&by_snapshot,
	cursor => \&by_cursor,
	naive => by_statement("SELECT id FROM followed WHERE id > '%s' ORDER BY id"));

my @ways = ('deferred trigger', 'exception', 'procedure', 'row', 'rows', 'savepoint');
my $began = clock_gettime(CLOCK_MONOTONIC);
my @readers = map { follow($node, "reader $_", "$dir/$_", $stop, $reader{$_}) } sort keys %reader;
my @writers = map { my $name = $_; in_background("writer $name", sub { srand($name); write_until_enough($name) }) } 1 .. $writers;

# Meanwhile the clock jumps, and writers are cancelled and killed.
my ($jumps, %interrupted) = (0, pg_cancel_backend => 0, pg_terminate_backend => 0);
my $dba = connect_to($node, 'dba');
for (my $turn = 0; !-e $enough; $turn++)
{
	if (fake_clock_installed() && clock_gettime(CLOCK_MONOTONIC) > $began + $seconds / 2)
	{
		set_clock_offset($node, ('+0', '-1', '+2', '-0.01', '-60', '+0.5', '-59.9')[ $jumps++ % 7 ]);
	}
	if ($turn % 4 == 0)
	{
		my $function = rand() < 0.7 ? 'pg_cancel_backend' : 'pg_terminate_backend';
		$interrupted{$function} += run_in($dba,
			"SELECT count(*) FROM (SELECT $function(pid) FROM (SELECT pid FROM pg_stat_activity"
			  . " WHERE application_name LIKE 'writer %' AND backend_type = 'client backend' AND state <> 'idle'"
			  . " ORDER BY random() LIMIT 1) AS victim OFFSET 0) AS interrupted");
	}
	pause(50);

	# Until each of what is looked at below has happened, too.
	next if clock_gettime(CLOCK_MONOTONIC) < $began + $seconds || grep { !$_ } $jumps || !fake_clock_installed(), values %interrupted;
	append_to_file($enough, '') if run_in($dba, 'SELECT count(DISTINCT way) FROM followed') == @ways;
}
set_clock_offset($node, '+0') if fake_clock_installed();
is(join("\n", map { $_->() } @writers), '', "$writers writers have written");
note "interrupted: @{[%interrupted]}; the clock jumped $jumps times";
my @prepared = split /\n/, run_in($dba, 'SELECT gid FROM pg_prepared_xacts');
run_in($dba, (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$_'") foreach @prepared;
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on to the end');
$dba->quit;

my $rows = $node->safe_psql('postgres', 'SELECT count(*) FROM followed');
note "$rows rows; prepared transactions left at the end: " . @prepared;
note $node->safe_psql('postgres', 'SELECT way, count(*) FROM followed GROUP BY way ORDER BY way');
is($node->safe_psql('postgres', q{SELECT string_agg(DISTINCT way, ' ' ORDER BY way) FROM followed}), "@ways",
	'rows were committed that were made in every way');

my %committed = map { $_ => 1 } split /\n/, $node->safe_psql('postgres', 'SELECT id FROM followed');
check_readers(\%committed, $dir, map { $_ => $_ eq 'naive' } keys %reader);

$node->stop;
my @errors = grep {
	/\b(ERROR|FATAL|PANIC|TRAP):/
	  && !/canceling statement due to user request$|due to administrator command$|: {2}division by zero$/
	  && !/prepared transaction with identifier .* (is busy|does not exist)$/
} split /\n/, slurp_file($node->logfile);
is(join("\n", @errors), '', 'no error in the server log that was not provoked');
done_testing();
