# Consumers that come, rows that go, and partitions, by the statements of doc/recipes.md, beside
# writers that commit late and consumers that read on: a new consumer gets each row that was there
# when it had been registered, and each later one, whether it begins with the oldest row, now or
# after a copy; partitions are created and dropped, and rows loaded, without a row being missed.
# And what the page warns of does lose rows.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;
use Watchdog;

my $node = start_node('retention', 'max_connections = 60');
my @recipes = map { $_->{sql} } examples('doc/recipes.md');

# The part of an example.
sub recipe
{
	my ($part) = @_;
	my @found = map { /($part)/ms ? $1 : () } @recipes;
	is(scalar(@found), 1, "doc/recipes.md has one $part");
	return $found[0];
}
my $worker = recipe('^CREATE TABLE outbox \(.*?^END \$\$;');
my $register = recipe(q{^INSERT INTO consumers VALUES \('search'\);});
my $now = recipe(q{^UPDATE consumers SET position = fast_feed[^;]*;});
my $copy = recipe(q{^CREATE TABLE copy .*?'search';});
my $delete = recipe('^BEGIN;\nLOCK TABLE consumers [^;]*;[^\n]*\nDELETE FROM outbox [^;]*;\nCOMMIT;');
my $event = recipe('^CREATE TABLE event \(.*?(?=^SET lock_timeout)');
my $add = recipe('^CREATE TABLE event_1 [^;]*;');
my $drop = recipe('^DO \$\$ BEGIN\n  LOCK TABLE event_consumers .*?DROP TABLE event_0.*?END \$\$;');
my $load_rows = 'INSERT INTO event (body) SELECT body FROM loaded';
like(slurp_file('doc/recipes.md'), qr/`\Q$load_rows\E`/, 'the page says how to load rows');

# Each row of what was written, and deleted; how often somebody has deleted.
sub create
{
	my ($database) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $database");
	$node->safe_psql($database, qq{
CREATE EXTENSION fast_feed;
$worker $event
${\ ($worker =~ s/.*(?=CREATE FUNCTION)//sr =~ s/outbox/event/gr =~ s/consumers/event_consumers/gr)}
INSERT INTO consumers VALUES ('second');
INSERT INTO event_consumers VALUES ('second');
CREATE TABLE written (feed text, id bigint);
CREATE TABLE deleted (id bigint);
CREATE TABLE passes AS SELECT 0 AS n;
CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS \$\$ BEGIN
	IF TG_OP = 'DELETE' THEN INSERT INTO deleted VALUES (OLD.id);
	ELSE INSERT INTO written VALUES (TG_ARGV[0], NEW.id); END IF;
	RETURN NULL;
END \$\$;
CREATE TRIGGER note AFTER INSERT OR DELETE ON outbox FOR EACH ROW EXECUTE FUNCTION note('outbox');
CREATE TRIGGER note AFTER INSERT ON event FOR EACH ROW EXECUTE FUNCTION note('event')});
	return;
}

# When nobody else is there: "now" is after what has been committed.
create('quiet');
my $quiet = connect_to($node, 'quiet', 'quiet');
my $insert = 'INSERT INTO outbox (tenant) VALUES (1)';
run_in($quiet, $_) foreach $insert, $insert, $register, $now, $insert;
is(run_in($quiet, q{SELECT * FROM outbox_next('search')}), 3, 'now: what was there is not read, what comes is');

# A consumer that is registered when it has copied lacks what went meanwhile.
run_in($quiet, $_) foreach q{DELETE FROM consumers WHERE name = 'search'}, split(/(?<=;)\n/, $copy), $insert,
  q{SELECT * FROM outbox_next('mail')}, q{SELECT * FROM outbox_next('second')}, $delete, $register,
  split /(?<=;)\n/, $copy =~ s/copy AS/again AS/r;
is(run_in($quiet, q{SELECT * FROM outbox_next('search')}), '', 'registered after the copy: a row is lost');

# One that registers while rows are deleted waits for that, and keeps what comes after.
my $comes = connect_to($node, 'comes', 'quiet');
my ($begins, $ends) = $delete =~ /^(.*DELETE[^;]*;)\n(.*)$/s;
run_in($quiet, $_) foreach q{DELETE FROM consumers WHERE name = 'search'}, $begins;
$comes->send($register);
wait_until_blocked($node, $comes);
run_in($quiet, $ends);
$comes->receive;
is($comes->{error}, '', 'a consumer registers once the rows are deleted');
$comes->quit;

# Beside writers.  Partitions are small.
create('busy');
my $size = 400;

sub busy
{
	return connect_to($node, $_[0], 'busy');
}

sub add_partition
{
	my ($n) = @_;
	my ($from, $to) = ($n * $size, ($n + 1) * $size);
	return $add =~ s/event_1/event_$n/r =~ s/\(10000\)/($from)/r =~ s/\(20000\)/($to)/r;
}

my $dba = busy('dba');
run_in($dba, 'DROP TABLE event_0');
run_in($dba, add_partition(0) =~ s/\(0\)/(1)/r);
run_in($dba, add_partition($_)) foreach 1 .. 20;
run_in($dba, q{CREATE TABLE loaded AS SELECT 'loaded' AS body FROM generate_series(1, 1000)});

my $load = FeedWriters->new_load;
my @statements = (
	$insert, in_savepoints($insert), 'INSERT INTO outbox (tenant) SELECT n FROM generate_series(1, 20) AS n',
	q{INSERT INTO event (body) SELECT 'x' FROM generate_series(1, 20)}, q{INSERT INTO event (body) VALUES ('x')});
$load->writer("writer $_", $node, sub { write_transaction($_[0], "$$ $_[1]", @statements) }, database => 'busy',
	survives => qr/^23514 no partition/) foreach 1 .. 5;

# Starts a reader of a consumer.
sub read_as
{
	my ($feed, $name) = @_;
	$load->reader("$feed $name", $node, sub {
		my $rows = run_in($_[0], "SELECT * FROM ${feed}_next('$name')");
		return join "\n", map { sprintf '%019d', $_ } split /\n/, $rows;
	}, from => 0, database => 'busy');
	return;
}
read_as($_, 'mail'), read_as($_, 'second') foreach 'outbox', 'event';
$load->reader('retention', $node, sub { run_in($_[0], $_) foreach $delete, 'UPDATE passes SET n = n + 1'; '' },
	from => 0, database => 'busy');

# Partitions come, well before their first row, and go: by statements that give up where they
# have to wait.
my ($first, $next) = (0, 21);
$load->reader('partitions', $node, sub {
	my ($session) = @_;
	run_in($session, "SET lock_timeout = '200 ms'");
	if (run_in($session, 'SELECT last_value FROM event_id_seq') > ($next - 15) * $size)
	{
		run_in($session, add_partition($next));
		$next++;
	}
	my $bound = ($first + 1) * $size - 1;
	run_in($session, $drop =~ s/9999/$bound/r =~ s/event_0/event_$first/r);
	$first++ if run_in($session, "SELECT to_regclass('event_$first') IS NULL") eq 't';
	return '';
}, from => 0, database => 'busy', survives => qr/^(?:55P03|40P01)/);

# New consumers, one after another.  What they can no longer get is what has been deleted when
# whoever deletes knows of them.
my %deleted;
foreach my $name (map { ("oldest $_", "now $_", "copy $_") } 1 .. 3)
{
	$load->wait_for_passes('outbox mail', 3);
	run_in($dba, $register =~ s/search/$name/r);
	my $passes = run_in($dba, 'SELECT n FROM passes');
	wait_until('retention', sub { run_in($dba, 'SELECT n FROM passes') > $passes + 1 });
	$deleted{$name} = run_in($dba, 'SELECT coalesce(max(id), 0) FROM deleted');

	# If the watermark is 0, again, as the page says.
	my $table = $name =~ tr/ /_/r;
	my @begin = $name =~ /now/ ? $now : ();
	@begin = split /(?<=;)\n/, $copy =~ s/copy AS/$table AS/r =~ s/FROM copy/FROM $table/r if $name =~ /copy/;
	foreach my $statement (map { s/search/$name/r } @begin)
	{
		wait_until($statement, sub { eval { run_in($dba, $statement); 1 } || $@ =~ /^23514/ ? !$@ : die $@ });
	}
	$deleted{$name} = run_in($dba, "SELECT position FROM consumers WHERE name = '$name'") if $name =~ /now/;
	read_as('outbox', $name);
}

# Rows are loaded, in a transaction that commits late.
my $loads = busy('loads');
run_in($loads, "BEGIN; $load_rows");
$load->wait_for_passes('outbox mail', 2);
run_in($loads, 'COMMIT');

wait_until('partitions go', sub { run_in($dba, q{SELECT to_regclass('event_4') IS NULL}) eq 't' });
wait_until('rows', sub { run_in($dba, 'SELECT count(*) FROM deleted') > 2000 });
$load->end_writers;
finish_prepared($dba) while run_in($dba, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
$load->end_readers;

my $written = "SELECT lpad(id::text, 19, '0') FROM written WHERE feed = '%s' AND id > %d";
foreach my $feed ('outbox', 'event')
{
	$load->check("$feed $_", run_in($dba, sprintf $written, $feed, 0)) foreach 'mail', 'second';
}
foreach my $name (sort keys %deleted)
{
	my $expected = sprintf $written, 'outbox', $deleted{$name};
	my $copied = $name =~ /copy/ ? $name =~ tr/ /_/r : '(SELECT 0 AS id LIMIT 0)';
	$load->check("outbox $name", run_in($dba, "$expected AND id NOT IN (SELECT id FROM $copied AS c)"));
}

# Rows of the last statement, or of what the page says not to do.  A reader has planned its
# statement with the partitions from before, and takes its snapshot after: in between it waits
# for one of them.
sub is_read
{
	my ($add_partition) = @_;
	run_in($quiet, q{
DROP TABLE IF EXISTS part;
CREATE TABLE part (id bigint GENERATED ALWAYS AS IDENTITY, day int) PARTITION BY LIST (day);
CREATE TABLE part_0 PARTITION OF part FOR VALUES IN (0);
CREATE TABLE part_last PARTITION OF part FOR VALUES IN (-1);
SELECT fast_feed.enable('part', 'id')});
	my $read = 'SELECT id FROM part WHERE id > %d AND ' . below('part') . ' ORDER BY id';
	my ($reader, $writer, $blocker) = map { connect_to($node, $_, 'quiet') } 'reader', 'writer', 'blocker';
	run_in($blocker, 'BEGIN; LOCK TABLE part_last');
	$reader->send(sprintf $read, 0);
	wait_until_blocked($node, $reader);
	$writer->send("$add_partition; INSERT INTO part (day) VALUES (1), (0)");
	wait_for($node, "SELECT state = 'idle' AND query LIKE '%VALUES (1), (0)' OR wait_event_type = 'Lock'"
		  . " FROM pg_stat_activity WHERE pid = $writer->{pid}");
	run_in($blocker, 'COMMIT');
	my $rows = $reader->receive;
	$writer->receive;
	is($writer->{error}, '', $add_partition);

	# Until it has the second row, whose number is 2.
	wait_until('the reader', sub {
		my $last = $rows =~ /(\d+)\s*\z/ ? $1 : 0;
		$rows .= "\n" . run_in($reader, sprintf $read, $last);
		return $rows =~ /2/;
	});
	return $rows =~ /1/ ? 'read' : 'lost';
}
my $attach = 'ALTER TABLE part ATTACH PARTITION part_1 FOR VALUES IN (1); COMMIT';
is(is_read("BEGIN; CREATE TABLE part_1 (LIKE part); $attach"), 'lost', 'ATTACH: a row of a later transaction is lost');
is(is_read("BEGIN; CREATE TABLE part_1 (LIKE part); LOCK TABLE part; $attach"), 'read',
	'... with the parent locked it is read');
is(is_read('CREATE TABLE part_1 PARTITION OF part FOR VALUES IN (1)'), 'read',
	'... and in one that was created as a partition');

# A partition that comes with rows, whose numbers are behind the readers' positions
run_in($quiet, q{CREATE TABLE full_1 (id bigint GENERATED BY DEFAULT AS IDENTITY, day int);
INSERT INTO full_1 (day) SELECT 2 FROM generate_series(1, 1000);
INSERT INTO part (day) SELECT 0 FROM generate_series(1, 2000)});
my $last = run_in($quiet, 'SELECT max(id) FROM part WHERE ' . below('part'));
run_in($quiet, 'ALTER TABLE full_1 ALTER id DROP IDENTITY; ALTER TABLE part ATTACH PARTITION full_1 FOR VALUES IN (2)');
my $unread = "SELECT count(*) FROM part WHERE id > $last AND ${\ below('part')}";
is(run_in($quiet, $unread), 0, 'of 1,000 rows that are attached none is read');
run_in($quiet, 'ALTER TABLE part DETACH PARTITION full_1; CREATE TABLE part_2 PARTITION OF part FOR VALUES IN (2);'
	  . ' INSERT INTO part (day) SELECT day FROM full_1');
is(run_in($quiet, $unread), 1000, '... of those that are inserted through the parent, all are');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
