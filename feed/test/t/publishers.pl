# A subscriber of two publishers, and its readers.  By a number that rows get on arrival, below
# the subscriber's watermark: the apply workers draw it in their own transactions, in the initial
# copy, for prepared transactions, and from 16 on while the publisher's transaction is not over.
# Or by a position per publisher, below the watermark that this has stored.  Both see each row
# exactly once, in ascending order; without the watermark rows are missed.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;

my @recipe = map { $_->{sql} } examples('doc/servers.md');
my ($stored, $update) = map { /(CREATE TABLE stored_watermark.*?)INSERT.*(UPDATE.*?;)/s } @recipe;
my ($create, $by_arrival) = map { /(CREATE TABLE reading.*?)(SELECT \*.*?) LIMIT/s } @recipe;
my ($by_publisher) = slurp_file('doc/servers.md') =~ /^```\n(SELECT \*\s+FROM reading[^`]*?);/m or die;
foreach my $read ($by_arrival, $by_publisher)
{
	$read =~ s/SELECT \*(.*?)(\w+) > 0/SELECT lpad($2::text, 19, '0')$1$2 > \$1/s or die;
}
my %naively = (arrival => $by_arrival =~ s/ AND arrival < \S+//r, north => $by_publisher =~ s/ AND id < \(.*?\)//r);

my ($north, $south, $subscriber) =
  map { new_node($_, $_ eq 'subscriber' ? '' : 'wal_level = logical', allows_streaming => 'logical') }
  'north', 'south', 'subscriber';

# The south sends its transactions while they last, to a worker of its own for each.
my $streamed = $north->pg_version >= 16;
my %with = (north => 'two_phase = true', south => $streamed ? 'streaming = parallel' : '');
$south->append_conf('postgresql.conf', 'debug_logical_replication_streaming = immediate') if $streamed;
$subscriber->append_conf('postgresql.conf', q{
max_worker_processes = 20
max_logical_replication_workers = 12
wal_retrieve_retry_interval = 100ms
});
$subscriber->append_conf('postgresql.conf', 'max_parallel_apply_workers_per_subscription = 6') if $streamed;

my $insert = 'INSERT INTO reading (value) VALUES (1)';
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	$publisher->start;
	$publisher->safe_psql('postgres', qq{
CREATE EXTENSION fast_feed;
CREATE TABLE reading (server text DEFAULT '$name', id bigint GENERATED ALWAYS AS IDENTITY UNIQUE, value integer,
	PRIMARY KEY (server, id));
SELECT fast_feed.enable('reading', 'id');
CREATE TABLE gate_$name (n int);
$stored
INSERT INTO stored_watermark VALUES ('$name', 0);
CREATE PUBLICATION $name FOR TABLE reading, stored_watermark, gate_$name;
INSERT INTO reading (value) SELECT generate_series(1, 1000)});
}
$subscriber->start;
$subscriber->safe_psql('postgres', qq{
CREATE EXTENSION fast_feed;
$create
$stored
CREATE TABLE gate_north (n int);
CREATE TABLE gate_south (n int)});

# Those by arrival read the initial copy as well.
my $load = FeedWriters->new_load;
$load->reader('by arrival', $subscriber, $by_arrival, from => 0);
$load->reader('by arrival, naively', $subscriber, $naively{arrival}, from => 0);
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	my $with = $with{$name} ? "WITH ($with{$name})" : '';
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION $name"
		  . " CONNECTION '${\ $publisher->connstr} dbname=postgres' PUBLICATION $name $with");
}
wait_for($subscriber, "SELECT count(*) = 6 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel");
$load->reader($_, $subscriber, $by_publisher =~ s/north/$_/gr, from => 0) foreach 'north', 'south';
$load->reader('north, naively', $subscriber, $naively{north}, from => 0);
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	my $store = $update =~ s/(name = )'outbox'/$1'$name'/r =~ s/'outbox'/'reading'/r;
	$load->writer("updater $name", $publisher, sub { run_in($_[0], $store); pause(5) });
	$load->writer("writer $_ $name", $publisher, sub {
		my ($session) = @_;
		run_in($session, 'BEGIN');
		foreach (0 .. rand 4)
		{
			run_in($session, $insert);
			pause(10);
		}
		run_in($session, rand() < 0.85 ? 'COMMIT' : 'ROLLBACK');
	}) foreach 1, 2;
}

# A row of another transaction on that side, seen by one reader.
sub overtake
{
	my ($publisher, $reader, $column) = @_;
	my $id = $publisher->safe_psql('postgres', "$insert RETURNING id");
	my $row = "FROM reading WHERE id = $id AND server = '${\ $publisher->name}'";
	wait_for($subscriber, "SELECT count(*) = 1 $row");
	$load->wait_for_reader($reader, $subscriber->safe_psql('postgres', "SELECT lpad($column\::text, 19, '0') $row"));
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
	overtake($publisher == $north ? $south : $north, 'by arrival, naively', 'arrival');
	run_in($gate, 'COMMIT');
	run_in($late, 'COMMIT') if $is_open;
}
my $late = connect_to($north, 'late');
run_in($late, "BEGIN; $insert; PREPARE TRANSACTION 'late'");
wait_for($subscriber, 'SELECT count(*) = 1 FROM pg_prepared_xacts');
overtake($south, 'by arrival, naively', 'arrival');
run_in($late, "COMMIT PREPARED 'late'");
run_in($late, "BEGIN; $insert");
overtake($north, 'north, naively', 'id');
run_in($late, 'COMMIT');

# With a last watermark of each, and what comes by that.
$load->end_writers;
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	$publisher->safe_psql('postgres', $update =~ s/(name = )'outbox'/$1'$name'/r =~ s/'outbox'/'reading'/r);
	$publisher->wait_for_catchup($name);
}
$load->end_readers;

my $arrived = $subscriber->safe_psql('postgres', "SELECT lpad(arrival::text, 19, '0') FROM reading");
$load->check('by arrival', $arrived);
$load->check('by arrival, naively', $arrived, 3);
foreach my $publisher ($north, $south)
{
	my $name = $publisher->name;
	my $committed = $publisher->safe_psql('postgres', "SELECT lpad(id::text, 19, '0') FROM reading");
	$load->check($name, $committed);
	$load->check("$name, naively", $committed, 1) if $publisher == $north;
}
$subscriber->safe_psql('postgres', "DROP SUBSCRIPTION $_") foreach 'north', 'south';
$_->stop foreach $north, $south, $subscriber;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP/, $_->name . ': no PANIC, and no failed assertion')
  foreach $north, $south, $subscriber;
done_testing();
