# A feed on a subscriber of two publishers, by a column that only the subscriber has.  Its
# apply workers generate the default in their own transactions: in the initial copy, for
# prepared transactions, and from 16 on while the publisher's transaction is not over.  The
# reader by that column below the watermark sees each row exactly once, in ascending order.
# One without the watermark misses rows, and one by the publishers' ids does, even below it.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;

my $prepared = 'max_prepared_transactions = 5';
my %node = map { $_ => new_feed_node($_, $prepared, allows_streaming => 'logical') }
  'north', 'south', 'subscriber';
my ($north, $south, $subscriber) = @node{qw(north south subscriber)};

# The south sends its transactions while they last, to a worker of its own for each.
my $streamed = $north->pg_version >= 16;
my %with = (north => 'two_phase = true', south => $streamed ? 'streaming = parallel' : '');
$south->append_conf('postgresql.conf', 'debug_logical_replication_streaming = immediate')
  if $streamed;
$subscriber->append_conf('postgresql.conf',
	"max_worker_processes = 20\nmax_logical_replication_workers = 12");
$subscriber->append_conf('postgresql.conf', 'max_parallel_apply_workers_per_subscription = 6')
  if $streamed;

my $insert = 'INSERT INTO outbox DEFAULT VALUES';
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	$publisher->start;
	$publisher->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE TABLE gate_$name (n int);
CREATE PUBLICATION $name FOR TABLE outbox, gate_$name;
INSERT INTO outbox SELECT FROM generate_series(1, 1000)});
}
$subscriber->start;
$subscriber->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE outbox (id uuid PRIMARY KEY,
	arrived uuid NOT NULL UNIQUE DEFAULT uuidv7_feed_id());
${\ guard('outbox', 'arrived')};
ALTER TABLE outbox ENABLE ALWAYS TRIGGER zz_guard;
CREATE TABLE gate_north (n int);
CREATE TABLE gate_south (n int)});

my $load = FeedWriters->new_load;
my $arrived = 'SELECT arrived FROM outbox WHERE arrived > $1';
$load->reader('arrived', $subscriber,
	"$arrived AND arrived < uuidv7_feed_watermark() ORDER BY arrived");
$load->reader('naively', $subscriber, "$arrived ORDER BY arrived");
$load->reader('by id', $subscriber,
	'SELECT id FROM outbox WHERE id > $1 AND id < uuidv7_feed_watermark() ORDER BY id');
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	my $with = $with{$name} ? "WITH ($with{$name})" : '';
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION $name"
		  . " CONNECTION '${\ $publisher->connstr} dbname=postgres' PUBLICATION $name $with");
}
wait_for($subscriber,
	"SELECT count(*) = 4 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel");
foreach my $n (1 .. 4)
{
	$load->writer("writer $n", $n % 2 ? $north : $south, sub {
		my ($session) = @_;
		run_in($session, 'BEGIN');
		foreach (0 .. rand 4)
		{
			run_in($session, $insert);
			pause(10);
		}
		run_in($session, rand() < 0.85 ? 'COMMIT' : 'ROLLBACK');
	});
}

# A row of another transaction on that side, seen by one reader.
sub overtake
{
	my ($publisher, $reader, $column) = @_;
	my $id = $publisher->safe_psql('postgres', "$insert RETURNING id");
	my $row = "FROM outbox WHERE id = '$id'";
	wait_for($subscriber, "SELECT count(*) = 1 $row");
	$load->wait_for_reader($reader, $subscriber->safe_psql('postgres', "SELECT $column $row"));
	return;
}

# Rows that arrive in a transaction which lasts: its worker waits, in the middle of a streamed
# one on the south; it is prepared; or it is one of a publisher that commits late.
my $gate = connect_to($subscriber, 'gate');
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	my $is_open = $streamed && $publisher == $south;
	run_in($gate, "BEGIN; LOCK TABLE gate_$name IN SHARE MODE");
	my $late = connect_to($publisher, 'late');
	run_in($late, "BEGIN; $insert; INSERT INTO gate_$name VALUES (1)");
	run_in($late, 'COMMIT') unless $is_open;
	wait_for($subscriber, 'SELECT count(*) = 1 FROM pg_locks'
		  . " WHERE relation = 'gate_$name'::regclass AND NOT granted");
	overtake($publisher == $north ? $south : $north, 'naively', 'arrived');
	run_in($gate, 'COMMIT');
	run_in($late, 'COMMIT') if $is_open;
}
my $late = connect_to($north, 'late');
run_in($late, "BEGIN; $insert; PREPARE TRANSACTION 'late'");
wait_for($subscriber, 'SELECT count(*) = 1 FROM pg_prepared_xacts');
overtake($south, 'naively', 'arrived');
run_in($late, "COMMIT PREPARED 'late'");
run_in($late, "BEGIN; $insert");
overtake($south, 'by id', 'id');
run_in($late, 'COMMIT');

$load->end_writers;
$_->wait_for_catchup($_->name) foreach $north, $south;
$load->end_readers;

my $committed = $subscriber->safe_psql('postgres', 'SELECT arrived FROM outbox');
$load->check('arrived', $committed);
$load->check('naively', $committed, 3);
$load->check('by id', $subscriber->safe_psql('postgres', 'SELECT id FROM outbox'), 1);
$subscriber->safe_psql('postgres', "DROP SUBSCRIPTION $_") foreach 'north', 'south';
$_->stop foreach $north, $south, $subscriber;
done_testing();
