# What examples/README.md says of stores without an adapter, whose SQL is made by hand.  Marten's draws
# numbers first: moved beside writers that commit late, with a reader that stopped at gaps before,
# and one below a stored mark.  In Emmett's order numbers do not ascend.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;
use Watchdog;

my $node = start_node('stores');
my %page = map { $_->{extension} => $_->{sql} } examples('examples/README.md');
my ($dba, $session) = map { connect_to($node, $_) } 'dba', 'session';

# The steps of mt_quick_append_events(), which draws before its first INSERT into mt_events
my $quick = q{
CREATE OR REPLACE FUNCTION mt_quick_append_events(stream text, count int) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
	event_version bigint := (SELECT version FROM mt_streams WHERE id = stream);
	seq bigint;
BEGIN
	IF event_version IS NULL THEN
		event_version := 0;
		INSERT INTO mt_streams VALUES (stream, 0);
	END IF;
	FOR i IN 1 .. count LOOP
		seq := nextval('mt_events_sequence');
		PERFORM pg_sleep(0.01 * random());
		INSERT INTO mt_events VALUES (seq, stream, event_version + i);
	END LOOP;
	UPDATE mt_streams SET version = event_version + count WHERE id = stream;
	RETURN seq;
END $$};
run_in($dba, $_) foreach
	'CREATE TABLE mt_streams (id text PRIMARY KEY, version bigint)',
	'CREATE TABLE mt_events (seq_id bigint PRIMARY KEY, stream_id text REFERENCES mt_streams, version bigint,'
	  . ' UNIQUE (stream_id, version))',
	'CREATE SEQUENCE mt_events_sequence OWNED BY mt_events.seq_id',
	'CREATE TABLE mt_event_progression (name text PRIMARY KEY, last_seq_id bigint, last_updated timestamptz)',
	$quick;
my $let_know = 'INSERT INTO mt_events SELECT FROM mt_events WHERE false';

sub append
{
	my ($stream, $count) = @_;
	return "SELECT lpad(mt_quick_append_events('$stream', $count)::text, 19, '0')";
}

sub events
{
	my ($condition) = @_;
	return "SELECT lpad(seq_id::text, 19, '0') FROM mt_events WHERE $condition ORDER BY seq_id LIMIT 50";
}

# By gaps: up to the first number that is missing.  Then from there by the watermark.
my $load = FeedWriters->new_load;
$load->reader('gaps', $node, sub {
	my ($reader, $last) = @_;
	return run_in($reader, events("seq_id > $last AND seq_id < fast_feed.watermark('mt_events')")) if -e $load->file('moved');
	return run_in($reader, "SELECT lpad(seq_id::text, 19, '0')"
		  . " FROM (SELECT seq_id, row_number() OVER (ORDER BY seq_id) AS n FROM mt_events WHERE seq_id > $last) AS e"
		  . " WHERE seq_id = $last + n ORDER BY seq_id");
}, from => 0);
$load->wait_for_reader('gaps', run_in($dba, append('first', 20)));

sub writer
{
	my ($name, $work) = @_;
	return $load->writer($name, $node, sub {
		my ($writer, $number) = @_;
		$work->($writer, "$name $$ $number");
		pause(20);
		run_in($writer, rand() < 0.8 ? 'COMMIT' : 'ROLLBACK');
	}, survives => qr/^(?:23505|40P01|23514 new row for relation "mt_events" could be missed)/);
}

# Some append to the same stream; and those that have drawn when enable() is called fail.
foreach (1 .. 5)
{
	writer('quick', sub {
		run_in($_[0], 'BEGIN');
		run_in($_[0], append(rand() < 0.3 ? 'stream ' . int rand 20 : "$_[1] $_", 1 + int rand 3)) foreach 0 .. rand 2;
	});
}
wait_until('numbers', sub { run_in($dba, 'SELECT last_value FROM mt_events_sequence') > 300 });
run_in($dba, $quick =~ s/nextval/fast_feed.next/r);

# It can be in a deadlock with them, as they lock streams, too.
my $enable = q{SELECT fast_feed.enable('mt_events', 'seq_id')};
wait_until('enable()', sub { eval { run_in($dba, $enable); 1 } || ($@ =~ /^40P01/ ? 0 : die $@) });
my $moved = run_in($dba, 'SELECT last_value FROM mt_events_sequence');
append_to_file($load->file('moved'), '');

$load->reader('daemon', $node, sub {
	my ($reader, $last) = @_;
	my $mark = run_in($reader, $page{marten});
	my @all;
	while ((my $some = run_in($reader, events("seq_id > $last AND seq_id <= $mark"))) ne '')
	{
		push @all, $some;
		$last = substr($some, -19);
		pause(5);
	}
	return join "\n", @all;
}, from => 0);
$load->reader('naive', $node, sub { run_in($_[0], events("seq_id > $_[1]")) }, from => 0);

# The rich mode, which draws all numbers first, in a transaction that lets readers know; and what
# starts a stream.
foreach my $way ([ 'next', 'BEGIN', 'fast_feed.next' ], [ 'nextval', "BEGIN; $let_know", 'nextval' ])
{
	my ($name, $begin, $draw) = @$way;
	writer($name, sub {
		run_in($_[0], $begin);
		my @numbers = split /\n/, run_in($_[0], "SELECT $draw('mt_events_sequence') FROM generate_series(1, 3)");
		pause(20);
		run_in($_[0], "INSERT INTO mt_streams VALUES ('$_[1]', 3)");
		run_in($_[0], "INSERT INTO mt_events VALUES ($numbers[$_], '$_[1]', $_)") foreach 0 .. 2;
	});
}
writer('start', sub {
	run_in($_[0], "BEGIN; INSERT INTO mt_streams VALUES ('$_[1]', 1)");
	run_in($_[0], "INSERT INTO mt_events VALUES (nextval('mt_events_sequence'), '$_[1]', 1)");
});
wait_until('events of each way', sub { run_in($dba, "SELECT count(*) || string_agg(DISTINCT substring(stream_id FROM '^[a-z]+'), ' ')"
	  . " FROM mt_events WHERE seq_id > $moved") =~ /^\d{4,}next nextval quick start stream$/ });
$load->end_writers;
$load->commit_late($node, append('late', 1), append('after', 1), 'naive');
$load->end_readers;
my $committed = run_in($dba, q{SELECT lpad(seq_id::text, 19, '0') FROM mt_events});
$load->check($_, $committed) foreach 'gaps', 'daemon';
$load->check('naive', $committed, 1);

# As shipped
run_in($dba, $quick);
my @refused = ('23514', 'could be missed by readers');
refused($session, append('first', 1), @refused, 'what draws by nextval() first is refused');
run_in($session, "BEGIN; $let_know");
run_in($session, $_) foreach append('first', 3), 'COMMIT';
my $number = run_in($session, q{SELECT fast_feed.next('mt_events_sequence')});
refused($session, "INSERT INTO mt_events VALUES ($number, 'first', 99)", @refused,
	'what next() has drawn in another transaction is refused');

# Emmett: an append has its transaction ID, and waits for its stream, while another overtakes it.
run_in($dba, $_) foreach
	'CREATE SEQUENCE emt_global_message_position',
	q{CREATE TABLE emt_messages (stream_id text, transaction_id xid8 DEFAULT pg_current_xact_id(), partition text DEFAULT 'a',
		global_position bigint DEFAULT nextval('emt_global_message_position')) PARTITION BY LIST (partition)},
	q{CREATE TABLE emt_messages_a PARTITION OF emt_messages FOR VALUES IN ('a')},
	$page{emmett};
run_in($session, 'BEGIN; SELECT pg_current_xact_id()');
run_in($dba, q{INSERT INTO emt_messages VALUES ('early')});
run_in($session, $_) foreach q{INSERT INTO emt_messages VALUES ('late')}, 'COMMIT';

# In batches of one message
foreach my $way ([ 'transaction_id < pg_snapshot_xmin(pg_current_snapshot())', 'transaction_id, global_position', 'late' ],
	[ q{global_position < fast_feed.watermark('emt_messages')}, 'global_position', 'early late' ])
{
	my ($below, $order, $expected) = @$way;
	my ($last, @read) = (0);
	while ((my $row = run_in($dba, "SELECT stream_id || ' ' || global_position FROM emt_messages"
			  . " WHERE $below AND global_position > $last ORDER BY $order LIMIT 1")) ne '')
	{
		(my $stream, $last) = split / /, $row;
		push @read, $stream;
	}
	is("@read", $expected, "Emmett, by $order: $expected");
}

$node->stop;
done_testing();
