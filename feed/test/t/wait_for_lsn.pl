# A standby without a stored watermark: by the page, the watermark and an LSN of the primary, and
# WAIT FOR on the standby, which here cascades.  Beside writers that commit late its reader gets
# each committed row exactly once, in ascending order.  Then the parts: where a commit, a crash or
# a fail-over comes in between, it misses no row; with an LSN of an earlier statement, or without
# the timeline, it does.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;

my $primary = new_node('primary', 'max_connections = 40', allows_streaming => 1);
plan skip_all => 'WAIT FOR came with PostgreSQL 19' if $primary->pg_version->major < 19;

my $page = slurp_file('doc/servers.md') =~ s/^-- .*\n//mgr;
my ($take, $wait, $read) = $page =~ /^```\n(SELECT fast_feed[^`]*?) \\gset\n+(WAIT FOR.*?;)\n(.*?;)\n```$/ms or die;
$wait =~ s/10 s/$PostgreSQL::Test::Utils::timeout_default s/ or die;
$read =~ s{\*}{lpad(CAST(id AS text), 19, '0')} or die;
my $insert = "INSERT INTO outbox (way) VALUES ('x')";
my $returning = "$insert RETURNING lpad(id::text, 19, '0')";

$primary->start;
$primary->safe_psql('postgres', 'CREATE EXTENSION fast_feed;' . table('outbox'));
my $above = $primary;
my ($heir, $standby) = map {
	my $node = PostgreSQL::Test::Cluster->new($_);
	$above->backup('copy');
	$node->init_from_backup($above, 'copy', has_streaming => 1);
	$node->append_conf('postgresql.conf', 'wal_retrieve_retry_interval = 100ms');
	$node->start;
	$above = $node;
} 'heir', 'standby';

# What the statement on the primary returns, by name.
sub take
{
	my ($session) = @_;
	my %taken;
	@taken{qw(upto lsn timeline_id)} =
	  split ' ', run_in($session, "SELECT upto || ' ' || lsn || ' ' || timeline_id FROM ($take) AS taken");
	return %taken;
}

# Statements of the standby's with them, for a reader at this position.
sub with
{
	my ($sql, $position, %taken) = @_;
	$sql =~ s/:'?(\w+)'?/'$taken{$1}'/g;
	return $sql =~ s/id > 0/id > '$position'/r;
}
sub run_with
{
	my ($session, @with) = @_;
	return run_in($session, with(@with));
}

my $load = FeedWriters->new_load;
my $on_primary;
$load->reader('standby', $standby, sub {
	my ($session, $position) = @_;
	$on_primary //= connect_to($primary, 'watermark');
	my %taken = take($on_primary);
	run_with($session, $wait, $position, %taken);
	return run_with($session, $read, $position, %taken);
}, from => 0);
$load->reader('naively', $standby, "SELECT lpad(id::text, 19, '0') FROM outbox WHERE id > \$1 ORDER BY id", from => 0);
foreach my $n (1 .. 6)
{
	$load->writer("writer $n", $primary, sub {
		my ($session, $number) = @_;
		run_in($session, 'SET synchronous_commit = ' . (rand() < 0.5 ? 'on' : 'off'));
		write_transaction($session, "$n $number", $insert, in_savepoints($insert));
	});
}
$load->wait_for_passes('standby', 30);
$load->commit_late($primary, $returning, $returning, 'naively');
$load->end_writers;
my $writer = connect_to($primary, 'writer');
finish_prepared($writer) while run_in($writer, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
my %taken = take($writer);
run_with(connect_to($standby, 'last'), $wait, 0, %taken);
$load->end_readers;
my $committed = $primary->safe_psql('postgres', "SELECT lpad(id::text, 19, '0') FROM outbox");
$load->check('standby', $committed);
$load->check('naively', $committed, 1);

# Two rows of which the second is committed first, and the session that has the other; when
# the standby has the second.
sub two_rows
{
	my ($node) = @_;
	my $late = connect_to($node, 'late');
	my $first = run_in($late, "BEGIN; $returning");
	my $second = $node->safe_psql('postgres', $returning);
	wait_for($standby, "SELECT count(*) = 1 FROM outbox WHERE id = '$second'");
	return ($late, $first, $second);
}
my $reader = connect_to($standby, 'reader');
my $position = $load->last_seen('standby');

# The first commit comes after an LSN, and is not replayed yet.
my ($late, $first, $second) = two_rows($primary);
my %before = take($writer);
run_with($reader, $wait, 0, %before);
run_in($reader, 'SELECT pg_wal_replay_pause()');
wait_for($standby, "SELECT pg_get_wal_replay_pause_state() = 'paused'");
run_in($late, 'COMMIT');
my %after = take($writer);
is(run_with($reader, "$wait $read", $position, %after, lsn => $before{lsn}), "success\n$second",
	'the LSN of an earlier statement: a row is missed');
$reader->send(with("$wait $read", $position, %after));
$standby->safe_psql('postgres', 'SELECT pg_wal_replay_resume()');
is($reader->receive, "success\n$first\n$second", '... and by one of the same none');

# The primary crashes.
$position = $second;
%after = take($writer);
$primary->stop('immediate');
$primary->start;
($late, $first, $second) = two_rows($primary);
is(run_with($reader, "$wait $read", $position, %after), 'success', 'after a crash: no later number is below it');
run_in($late, 'COMMIT');
$writer = connect_to($primary, 'writer');
%after = take($writer);
is(run_with($reader, "$wait $read", $position, %after), "success\n$first\n$second", '... and then they are read');

# The standby's upstream is promoted without what the primary has written last, gives its
# numbers again, and writes beyond that LSN.
$position = $second;
$heir->safe_psql('postgres', q{ALTER SYSTEM SET primary_conninfo = ''});
$heir->reload;
wait_for($heir, 'SELECT count(*) = 0 FROM pg_stat_wal_receiver');
run_in($writer, "INSERT INTO outbox (way) SELECT 'x' FROM generate_series(1, 1000)");
%after = take($writer);
$primary->stop('immediate');
$heir->promote;
$heir->safe_psql('postgres', q{SELECT pg_logical_emit_message(false, '', repeat('x', 1000000))});
($late, $first, $second) = two_rows($heir);
is(run_with($reader, "$wait $read" =~ s/AND :timeline_id = \(.*?\)//sr, $position, %after),
	"success\n$second", 'the LSN of another timeline: a row is missed');
is(run_with($reader, "$wait $read", $position, %after), 'success', '... and none by the page');
run_in($late, 'COMMIT');
%after = take(connect_to($heir, 'writer'));
is(run_with($reader, "$wait $read", $position, %after), "success\n$first\n$second", 'then they are read');
$_->stop foreach $standby, $heir;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP/, $_->name . ': no PANIC, and no failed assertion')
  foreach $primary, $heir, $standby;
done_testing();
