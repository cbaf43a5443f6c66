# A feed on a subscriber of two publishers, by a column that only the subscriber has.  Its
# apply workers generate the default in their own transactions: in the initial copy, for
# prepared transactions, and from 16 on while the publisher's transaction is not over.
# Sessions write on both sides; the reader by that column below the watermark sees each
# row exactly once, in ascending order.  One without the watermark misses rows, and one
# by the publishers' ids does, even below it.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;
use Watchdog;

my $rounds = 3;
my $copied = 1000;    # rows of each publisher before it has a subscriber
my $files  = PostgreSQL::Test::Utils::tempdir();
my ($enough, $stop) = ("$files/enough", "$files/stop");
my %other = (north => 'south', south => 'north');
my $prepared = 'max_prepared_transactions = 5';
my %node = map { $_ => new_feed_node($_, $prepared, allows_streaming => 'logical') } 'north', 'south', 'subscriber';
my $streamed = $node{north}->pg_version >= 16;

my $table = 'TABLE outbox (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), site text';
foreach my $site (sort keys %other)
{
	$node{$site}->append_conf('postgresql.conf', 'debug_logical_replication_streaming = immediate') if $streamed && $site eq 'south';
	$node{$site}->start;
	$node{$site}->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE $table DEFAULT '$site');
CREATE TABLE gate_$site (n int);
CREATE PUBLICATION $site FOR TABLE outbox, gate_$site;
INSERT INTO outbox SELECT FROM generate_series(1, $copied)});
}
my $subscriber = $node{subscriber};
$subscriber->append_conf('postgresql.conf', "max_worker_processes = 20\nmax_logical_replication_workers = 12\n"
	  . ($streamed ? "max_parallel_apply_workers_per_subscription = 6\n" : ''));
$subscriber->start;
$subscriber->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE $table, arrived uuid NOT NULL UNIQUE DEFAULT uuidv7_feed_id());
${\ guard('outbox', 'arrived')};
ALTER TABLE outbox ENABLE ALWAYS TRIGGER zz_guard;
CREATE TABLE gate_north (n int);
CREATE TABLE gate_south (n int)});

sub reader
{
	my ($name, $column, $below) = @_;
	return follow($subscriber, $name, "$files/$name", $stop,
		sub { run_in($_[0], "SELECT $column FROM outbox WHERE $column > '$_[1]' $below ORDER BY $column") });
}

# Wait until a reader has seen a row, or one beyond it.
sub wait_for_reader
{
	my ($name, $key) = @_;
	wait_until("the reader $name", sub { last_seen("$files/$name") ge $key });
	return;
}

my @readers = (reader('arrived', 'arrived', 'AND arrived < uuidv7_feed_watermark()'),
	reader('naively', 'arrived', ''), reader('by id', 'id', 'AND id < uuidv7_feed_watermark()'));
my %with = (north => 'two_phase = true', south => $streamed ? 'streaming = parallel' : 'streaming = false');
$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION $_ CONNECTION \$\$" . $node{$_}->connstr('postgres') . "\$\$ PUBLICATION $_ WITH ($with{$_})")
  foreach sort keys %other;
$subscriber->poll_query_until('postgres', "SELECT count(*) = 4 AND bool_and(srsubstate = 'r') FROM pg_subscription_rel")
  or BAIL_OUT('no initial copy');
my $changed = 'SELECT arrived FROM outbox ORDER BY id LIMIT 1';
my $before  = $subscriber->safe_psql('postgres', $changed);

my $insert = 'INSERT INTO outbox DEFAULT VALUES RETURNING id';
sub write_transaction
{
	my ($session) = @_;
	run_in($session, 'BEGIN');
	foreach (0 .. rand 4)
	{
		run_in($session, $insert);
		pause(10);
	}
	run_in($session, rand() < 0.85 ? 'COMMIT' : 'ROLLBACK');
	return;
}
my @writers = map {
	my $session = connect_to($node{$_}, 'writer');
	in_background("writer on the $_", sub { write_transaction($session) until -e $enough; $session->quit });
} ('north', 'south') x 2;

# The row of another transaction of that side, seen by one reader.
sub overtake
{
	my ($site, $name, $column) = @_;
	my $id = $node{$site}->safe_psql('postgres', $insert);
	$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM outbox WHERE id = '$id'") or BAIL_OUT('nothing arrives');
	wait_for_reader($name, $subscriber->safe_psql('postgres', "SELECT $column FROM outbox WHERE id = '$id'"));
	return;
}

# Rows that arrive in a transaction which lasts: its worker waits, in the middle of a
# streamed one on the south; it is prepared; or it is one of a publisher that commits late.
my $gate = connect_to($subscriber, 'gate');
my %late = map { $_ => connect_to($node{$_}, 'late') } keys %other;
foreach (1 .. $rounds)
{
	foreach my $site (sort keys %other)
	{
		my $open = $streamed && $site eq 'south';
		run_in($gate, "BEGIN; LOCK TABLE gate_$site IN SHARE MODE");
		run_in($late{$site}, "BEGIN; $insert; INSERT INTO gate_$site VALUES (1)");
		run_in($late{$site}, 'COMMIT') unless $open;
		$subscriber->poll_query_until('postgres', "SELECT count(*) = 1 FROM pg_locks WHERE relation = 'gate_$site'::regclass AND NOT granted")
		  or BAIL_OUT("the worker of the $site does not wait");
		overtake($other{$site}, 'naively', 'arrived');
		run_in($gate, 'COMMIT');
		run_in($late{$site}, 'COMMIT') if $open;
	}
	run_in($late{north}, "BEGIN; $insert; PREPARE TRANSACTION 'late'");
	$subscriber->poll_query_until('postgres', 'SELECT count(*) = 1 FROM pg_prepared_xacts') or BAIL_OUT('nothing is prepared');
	overtake('south', 'naively', 'arrived');
	run_in($late{north}, "COMMIT PREPARED 'late'");

	run_in($late{north}, "BEGIN; $insert");
	overtake('south', 'by id', 'id');
	run_in($late{north}, 'COMMIT');
}
$node{north}->safe_psql('postgres', "UPDATE outbox SET site = 'north, changed' WHERE id = (SELECT id FROM outbox ORDER BY id LIMIT 1)");
append_to_file($enough, '');
is(join("\n", map { $_->() } @writers), '', 'the writers have gone on');
$_->quit foreach $gate, values %late;
$node{$_}->wait_for_catchup($_) foreach sort keys %other;
wait_for_reader('arrived', $subscriber->safe_psql('postgres', 'SELECT arrived FROM outbox ORDER BY arrived DESC LIMIT 1'));
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on');

my $rows = $subscriber->safe_psql('postgres', 'SELECT count(*) FROM outbox');
my $sent = 0;
$sent += $node{$_}->safe_psql('postgres', 'SELECT count(*) FROM outbox') foreach keys %other;
is($rows, $sent, 'the rows of both publishers have arrived');
cmp_ok($rows, '>=', 2 * $copied + 8 * $rounds, "... $rows");
foreach my $column ('arrived', 'id')
{
	my $keys = $subscriber->safe_psql('postgres', "SELECT $column FROM outbox");
	check_readers({ map { $_ => 1 } split /\n/, $keys }, $files,
		$column eq 'id' ? ('by id' => $rounds) : (arrived => 0, naively => 3 * $rounds));
}
is($subscriber->safe_psql('postgres', "SELECT site FROM outbox WHERE arrived = '$before'") =~ /changed/ ? 'changed' : 'lost', 'changed',
	'a change of the publisher leaves the column');
$subscriber->safe_psql('postgres', "DROP SUBSCRIPTION $_") foreach sort keys %other;
$_->stop foreach values %node;
done_testing();
