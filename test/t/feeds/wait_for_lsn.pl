# The page's recipe for a standby without a stored row: the watermark and then an LSN of the
# primary, WAIT FOR on the standby, which here cascades.  Beside writers that commit late its
# reader gets each committed row exactly once, in ascending order.  Then each part of it is
# needed: where a commit, a restart or a failover comes in between, it misses no row, and
# without that part it does.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FakeClock;
use FeedWriters;

my $primary = new_feed_node('primary', q{
max_connections = 40
max_prepared_transactions = 60
}, allows_streaming => 1);
plan skip_all => 'WAIT FOR came with PostgreSQL 19' if $primary->pg_version->major < 19;

my $page = slurp_file('doc/replication.md') =~ s/^-- .*\n//mgr;
my ($watermark, $lsn, $wait, $read) =
  $page =~ /^```\n(SELECT least.*?) \\gset\n(.*?) \\gset\n+(WAIT FOR.*?;)\n(.*?;)\n```$/ms or die;
$wait =~ s/10 s/$PostgreSQL::Test::Utils::timeout_default s/ or die;
my ($outbox) = map { $_->{sql} =~ /(CREATE TABLE outbox .*?FUNCTION uuidv7_feed_guard.*?;)/s }
  examples('doc/change-feeds.md');
my $insert = 'INSERT INTO outbox DEFAULT VALUES';
my $insert_returning = "$insert RETURNING id";

start_with_fake_clock($primary);
$primary->safe_psql('postgres', "CREATE EXTENSION fast_uuid; $outbox");
my $above = $primary;
my ($heir, $standby) = map {
	my $node = PostgreSQL::Test::Cluster->new($_);
	$above->backup('copy');
	$node->init_from_backup($above, 'copy', has_streaming => 1);
	$node->append_conf('postgresql.conf', 'wal_retrieve_retry_interval = 100ms');
	$node->start;
	$above = $node;
} 'heir', 'standby';

# What the statements on the primary return, by name.
sub take_lsn
{
	my ($session) = @_;
	my %taken;
	@taken{qw(lsn timeline_id)} =
	  split ' ', run_in($session, "SELECT lsn || ' ' || timeline_id FROM ($lsn) AS taken");
	return %taken;
}
sub take_both
{
	my ($session) = @_;
	return (upto => run_in($session, $watermark), take_lsn($session));
}

# Run a statement of the standby's with them, for a reader at this position.
sub run_with
{
	my ($session, $sql, $position, %taken) = @_;
	$sql =~ s/:'?(\w+)'?/'$taken{$1}'/g;
	return run_in($session, $sql =~ s/'0{8}-[-0]*'/'$position'/r);
}

my $load = FeedWriters->new_load;
my $primary_session;
$load->reader('standby', $standby, sub {
	my ($session, $position) = @_;
	$primary_session //= connect_to($primary, 'watermark');
	my %taken = take_both($primary_session);
	run_with($session, $wait, $position, %taken);
	return run_with($session, $read, $position, %taken);
});
$load->reader('naively', $standby, 'SELECT * FROM outbox WHERE id > $1 ORDER BY id');
foreach my $n (1 .. 6)
{
	$load->writer("writer $n", $primary, sub {
		my ($session, $number) = @_;
		run_in($session, 'SET synchronous_commit = ' . (rand() < 0.5 ? 'on' : 'off'));
		write_transaction($session, "$n $number", $insert, in_savepoints($insert));
	});
}
$load->wait_for_passes('standby', 30);
$load->commit_late($primary, $insert_returning, $insert_returning, 'naively');
$load->end_writers;
my $writer = connect_to($primary, 'writer');
finish_prepared($writer) while run_in($writer, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
my %last = take_lsn($writer);
run_with(connect_to($standby, 'last'), $wait, '', %last);
$load->end_readers;
my $committed = $primary->safe_psql('postgres', 'SELECT id FROM outbox');
$load->check('standby', $committed);
$load->check('naively', $committed, 1);

# Two rows of which the second is committed first, and the session that has the other; when
# the standby has the second.
sub two_rows
{
	my ($node) = @_;
	my $late = connect_to($node, 'late');
	my $first = run_in($late, "BEGIN; $insert_returning");
	my $second = $node->safe_psql('postgres', $insert_returning);
	wait_for($standby, "SELECT count(*) = 1 FROM outbox WHERE id = '$second'");
	return ($late, $first, $second);
}
my $reader = connect_to($standby, 'reader');
my $position = $load->last_seen('standby');

# The first commit comes after an LSN, and is not replayed yet.
my ($late, $first, $second) = two_rows($primary);
my %before = take_lsn($writer);
run_with($reader, $wait, '', %before);
run_in($reader, 'SELECT pg_wal_replay_pause()');
wait_for($standby, "SELECT pg_get_wal_replay_pause_state() = 'paused'");
run_in($late, 'COMMIT');
my %after = take_both($writer);
is(run_with($reader, "$wait $read", $position, %after, %before), "success\n$second",
	'the LSN before the watermark: a row is missed');
$reader->send("$wait $read" =~ s/:'?(\w+)'?/'$after{$1}'/gr =~ s/'0{8}-[-0]*'/'$position'/r);
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
is($reader->receive, "success\n$first\n$second", '... and after it none');

# The primary restarts, and its clock was ahead.
$position = $second;
set_clock_offset($primary, '+3600');
my $unbounded = run_in($writer, 'SELECT uuidv7_feed_watermark()');
%after = take_both($writer);
$primary->stop('immediate');
set_clock_offset($primary, 0);
begin_incarnation($primary);
($late, $first, $second) = two_rows($primary);
is(run_with($reader, "$wait $read", $position, %after, upto => $unbounded),
	"success\n$second", 'a watermark from before a restart: a row is missed');
is(run_with($reader, "$wait $read", $position, %after), 'success', '... and bounded none');
run_in($late, 'COMMIT');

# The standby's upstream is promoted without what the primary has written last, and writes
# beyond that.
$writer = connect_to($primary, 'writer');
%after = take_both($writer);
is(run_with($reader, "$wait $read", $position, %after), "success\n$first\n$second",
	'then they are read');
$position = $second;
$heir->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$heir->reload;
wait_for($heir, 'SELECT count(*) = 0 FROM pg_stat_wal_receiver');
set_clock_offset($primary, '+3600');
run_in($writer, $insert);
%after = take_both($writer);
$primary->stop('immediate');
$heir->promote;
$heir->safe_psql('postgres', q{SELECT pg_logical_emit_message(false, '', repeat('x', 99999))});
($late, $first, $second) = two_rows($heir);
is(run_with($reader, "$wait $read" =~ s/AND :timeline_id = \(.*?\)//sr, $position, %after),
	"success\n$second", 'the LSN of another timeline: a row is missed');
is(run_with($reader, "$wait $read", $position, %after), 'success', '... and none by the page');
run_in($late, 'COMMIT');
%after = take_both(connect_to($heir, 'writer'));
is(run_with($reader, "$wait $read", $position, %after), "success\n$first\n$second",
	'then they are read');
$_->stop foreach $standby, $heir;
done_testing();
