# A table of ids and one of positions under load: sessions write into both in every way, are
# cancelled and killed, and the clock jumps back and forth.  Readers below the watermark get
# each committed row exactly once, in ascending order: by a statement, in a snapshot that is
# older than the statement, by a cursor, by the statement of doc/feed-recipes.md and those
# that Kafka Connect's JDBC source, Airbyte and Logstash send; and windows that are closed as
# the page says get no more rows.  Without the watermark rows are missed.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FakeClock;
use FeedWriters;

# A commit waits for others before it is flushed, and so stands between "begun" and
# "visible" for a while.
my $node = new_feed_node('load', q{
max_connections = 60
max_prepared_transactions = 60
fsync = on
commit_delay = 2000
commit_siblings = 1
});
start_with_fake_clock($node);

my @recipe = map { $_->{sql} } examples('doc/change-feeds.md', 'doc/feed-recipes.md');
my ($outbox) = grep { /CREATE TABLE outbox \(/ } @recipe;
my ($event) = grep { /CREATE TABLE event \(/ } @recipe;
my ($views) = grep { /VIEW outbox_feed/ } @recipe;
my ($next_events) = $event =~ /PREPARE next_events.*? AS\n(.*?);/s;

# Windows of 100 ms, and others that are closed by the clock.
my ($hours) = grep { /outbox_hours/ } @recipe;
my ($windows, $close) = $hours =~ /(.*?)(INSERT INTO outbox_hours \(begins.*);/s;
$close =~ s/date_trunc\('hour', (.*?), 'UTC'\)\) AS ends/date_bin('100 ms', $1, 'epoch')) AS ends/
  or die $close;
my $clock_windows = $windows =~ s/outbox_hours/clock_hours/gr;
my $close_by_clock = $close =~ s/outbox_hours/clock_hours/gr;
$close_by_clock =~ s/uuidv7_fast_timestamp\(uuidv7_feed_watermark\(\)\)/now()/ or die $close;

$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid; $outbox $event $views $windows $clock_windows
CREATE TABLE spare (id uuid);
CREATE TABLE late ();
CREATE FUNCTION write_late() RETURNS trigger LANGUAGE plpgsql AS
	\$\$ BEGIN INSERT INTO outbox (payload) VALUES ('"deferred trigger"'); RETURN NULL; END \$\$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION write_late();
});

my $row = q{INSERT INTO outbox (payload) VALUES ('"row"')};
my $position = 'INSERT INTO event DEFAULT VALUES';
my @pieces = (
	$row, $position, "SELECT uuidv7_fast(); $row", 'INSERT INTO late DEFAULT VALUES',
	"INSERT INTO outbox VALUES (uuidv7_feed_id('xorshift128+'), '\"source\"')",
	q{INSERT INTO outbox (payload) SELECT '"rows"' FROM generate_series(1, 50)},
	'INSERT INTO event SELECT FROM generate_series(1, 50)',
	in_savepoints(q{INSERT INTO outbox (payload) VALUES ('"savepoint"')}), in_savepoints($position),
	'INSERT INTO spare VALUES (uuidv7_feed_id())',
	q{INSERT INTO outbox SELECT id, '"spare"' FROM spare ORDER BY id DESC LIMIT 1},
	qq{DO \$\$ BEGIN
		BEGIN $row; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN END;
		INSERT INTO outbox (payload) VALUES ('"exception"');
	END \$\$});
my $ways = 'deferred trigger exception row rows savepoint source spare';

sub write_once
{
	my ($session, $number) = @_;
	my $choice = rand;
	return run_in($session, $row) if $choice < 0.15;
	return run_in($session, "BEGIN; $row; SELECT 1 / 0") if $choice < 0.2;
	return write_transaction($session, "$session->{pid} $number", @pieces);
}

my $below = 'id < uuidv7_feed_watermark()';

sub repeatable_read
{
	my ($session, $last) = @_;
	run_in($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	run_in($session, 'SELECT count(*) FROM late');
	pause(20);
	my $ids = run_in($session, "SELECT id FROM outbox WHERE id > '$last' AND $below ORDER BY id");
	run_in($session, 'COMMIT');
	return $ids;
}

sub cursor
{
	my ($session, $last) = @_;
	run_in($session, 'BEGIN');
	run_in($session, 'DECLARE c CURSOR FOR'
		  . " SELECT id FROM outbox WHERE id > '$last' AND $below ORDER BY id");
	pause(20);
	my @all;
	while ((my $some = run_in($session, 'FETCH 500 c')) ne '')
	{
		push @all, $some;
		run_in($session, 'SELECT uuidv7_feed_watermark()');
	}
	run_in($session, 'COMMIT');
	return join "\n", @all;
}

sub logstash
{
	my ($session, $last) = @_;
	my $statement = "SELECT * FROM event_feed WHERE position > $last ORDER BY position";
	my @all;
	while (1)
	{
		my $rows = run_in($session,
			"SELECT * FROM ($statement) AS t1 LIMIT 100 OFFSET " . scalar @all);
		return join "\n", @all if $rows eq '';
		push @all, split /\n/, $rows;
	}
}

my $kafka_connect = 'SELECT * FROM "public"."event_feed"'
  . ' WHERE "public"."event_feed"."position" > $1 ORDER BY "public"."event_feed"."position" ASC';
my %ids = (
	'statement' => "SELECT id FROM outbox WHERE id > \$1 AND $below ORDER BY id",
	'repeatable read' => \&repeatable_read,
	'cursor' => \&cursor);
my %positions = (
	'the page' => $next_events,
	'Kafka Connect' => $kafka_connect,
	'Airbyte' => 'SELECT "position","payload" FROM "public"."event_feed"'
	  . ' WHERE "position" > $1 ORDER BY "position" ASC',
	'Logstash' => \&logstash);

my $load = FeedWriters->new_load;
$load->reader($_, $node, $ids{$_}) foreach sort keys %ids;
$load->reader('windows', $node, sub { run_in($_[0], $_) foreach $close, $close_by_clock; '' });
$load->reader($_, $node, $positions{$_}, from => 0) foreach sort keys %positions;
$load->reader('naive', $node, 'SELECT id FROM outbox WHERE id > $1 ORDER BY id');
$load->reader('naive by number', $node, $kafka_connect =~ s/event_feed/event/gr, from => 0);

# Cancelled, killed, a division by zero, an id that is refused, or there.
my $provoked = qr/^(?:closed|57014|57P01|22012|23514|23505)/;
$load->writer("writer $_", $node, \&write_once, survives => $provoked) foreach 1 .. 8;

# Until each way has been committed, and sessions in a transaction have been interrupted.
my $dba = connect_to($node, 'dba');
my %interrupted = (pg_cancel_backend => 0, pg_terminate_backend => 0);
my @offsets = ('+0', '-1', '+2', '-0.01', '-60', '+0.5', '-59.9');
my $all_ways = q{SELECT string_agg(DISTINCT way, ' ' ORDER BY way)
  FROM (SELECT payload #>> '{}' AS way FROM outbox) AS ways};
for (my $turn = 0; $turn < 120 || grep({ !$_ } values %interrupted)
	|| run_in($dba, $all_ways) ne $ways; $turn++)
{
	set_clock_offset($node, $offsets[ $turn % @offsets ]) if $turn >= 60;
	my $function = $turn % 12 ? 'pg_cancel_backend' : 'pg_terminate_backend';
	$interrupted{$function} += run_in($dba, qq{
SELECT count(*) FROM (
  SELECT $function(pid) FROM (
    SELECT pid FROM pg_stat_activity
     WHERE application_name LIKE 'writer %' AND backend_type = 'client backend' AND state <> 'idle'
     ORDER BY random() LIMIT 1) AS victim OFFSET 0) AS done}) if $turn % 4 == 0;
	pause(50);
}
set_clock_offset($node, '+0');
$load->end_writers;
finish_prepared($dba) while run_in($dba, 'SELECT count(*) FROM pg_prepared_xacts') > 0;

# Readers without the watermark pass a row of an open transaction, which then commits.
my $late = connect_to($node, 'late');
run_in($late, 'BEGIN');
my $id = run_in($late, "$row RETURNING id");
wait_for($node, "SELECT count(*) > 0 FROM clock_hours WHERE ends > '$id'");
run_in($late, 'COMMIT');
$load->commit_late($node, $row, "$row RETURNING id", 'naive');
$load->commit_late($node, $position, "$position RETURNING position", 'naive by number');
$load->end_readers;

my $committed = $node->safe_psql('postgres', 'SELECT id FROM outbox');
$load->check($_, $committed) foreach sort keys %ids;
$load->check('naive', $committed, 1);
$committed = $node->safe_psql('postgres', 'SELECT position FROM event');
$load->check($_, $committed) foreach sort keys %positions;
$load->check('naive by number', $committed, 1);

# The views are read by index conditions alone.
foreach my $view ('event_feed', 'outbox_feed')
{
	my $from = $node->safe_psql('postgres', 'SELECT max(position) FROM event');
	like($node->safe_psql('postgres', "SET enable_sort = off; EXPLAIN (COSTS OFF)"
		  . " SELECT * FROM $view WHERE position > $from ORDER BY position LIMIT 9"),
		qr/\ALimit\n.*Index Scan [^\n]*\n +Index Cond: .*watermark\(\).*$from[^\n]*\z/,
		"$view: an index scan, bounded at both ends, without a filter or a sort");
}

my $with_late_rows = 'SELECT count(*) FROM %s'
  . ' WHERE messages <> (SELECT count(*) FROM outbox WHERE id >= begins AND id < ends)';
is($node->safe_psql('postgres', sprintf($with_late_rows, 'outbox_hours')),
	'0', 'no row has come to a window that was closed');
cmp_ok($node->safe_psql('postgres', sprintf($with_late_rows, 'clock_hours')),
	'>', 0, 'rows have come to windows closed by the clock');
is($node->safe_psql('postgres', q{
SELECT (SELECT sum(messages) FROM outbox_hours) + count(*) = (SELECT count(*) FROM outbox)
  FROM outbox WHERE id >= (SELECT ends FROM outbox_hours ORDER BY ends DESC LIMIT 1)}),
	't', 'the windows and the rows after them have each row once');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
