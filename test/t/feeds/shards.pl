# A feed over two servers, each of which has some of the rows.  Sessions insert on both by
# two-phase commit, in Citus' order of steps: the one where a transaction began commits between
# the phases, its log says what the second one is to be, and that may come late.  Servers are
# killed between the phases, with their clocks stepped back.
#
# The protocol of doc/citus.md: 1. the least watermark of all servers, or an error; 2. wait
# until what is prepared on any of them now is not any more; 3. read below it, in new
# statements.  It misses no row; without its second step rows are missed.  There is no guard,
# which would refuse the rows whose ids come from the other server.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use FeedWriters;
use Watchdog;

my ($east, $west) = map { new_feed_node($_, 'max_prepared_transactions = 20') } 'east', 'west';
my @nodes = ($east, $west);
my $insert = 'INSERT INTO outbox DEFAULT VALUES';
foreach my $node (@nodes)
{
	start_with_fake_clock($node);
	$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE TABLE log (gid text PRIMARY KEY);
$insert});
}
my $load = FeedWriters->new_load;

# What the page asks each server in step 1.
my ($ask) = slurp_file('doc/citus.md') =~ /(SELECT least\(w, id\) .*?) \$q\$/;

sub least_watermark
{
	my ($least) = sort map { run_in($_, $ask) } @_;
	return $least;
}

sub wait_for_prepared
{
	my ($session) = @_;
	my $known = run_in($session, 'SELECT array_agg(gid) FROM pg_prepared_xacts');
	my $ended = "SELECT NOT EXISTS (SELECT FROM pg_prepared_xacts WHERE gid = ANY ('$known'))";
	return wait_until('the second phases', sub { $known eq '' || run_in($session, $ended) eq 't' });
}

# The sessions of a reader, which is given nothing where a server is down.
my @sessions;

sub read_rows
{
	my ($last, $second_step) = @_;
	my @rows;
	my $is_up = eval {
		@sessions = map { connect_to($_, 'reader') } @nodes unless @sessions;
		my $bound = least_watermark(@sessions);
		wait_for_prepared($_) foreach $second_step ? @sessions : ();
		my $read = "SELECT id FROM outbox WHERE id > '$last' AND id < '$bound'";
		@rows = sort map { split /\n/, run_in($_, $read) } @sessions;
		1;
	};
	die $@ unless $is_up || $@ =~ $server_down;
	@sessions = () unless $is_up;
	return $is_up ? join "\n", @rows : '';
}

# Returns the id of the first row that is elsewhere; it was generated at home.
sub first_phase
{
	my ($home, $other, $gid, $rows, $end) = @_;
	run_in($_, 'BEGIN') foreach $home, $other;
	my $id = run_in($home, "$insert; SELECT uuidv7_feed_id()");
	run_in($other, "INSERT INTO outbox VALUES ('$id')");
	foreach (2 .. $rows)
	{
		pause(10);
		run_in($_, $insert) foreach $home, $other;
	}
	run_in($other, "PREPARE TRANSACTION '$gid'");
	run_in($home, "INSERT INTO log VALUES ('$gid')");
	run_in($home, $end);
	return $id;
}

sub second_phase
{
	my ($home, $other, $gid) = @_;
	my $committed = run_in($home, "SELECT count(*) FROM log WHERE gid = '$gid'");
	my $end = $committed ? 'COMMIT' : 'ROLLBACK';
	return eval { run_in($other, "$end PREPARED '$gid'"); 1 } || $@ =~ /^42704/ || die $@;
}

# Where a server is killed, a later call ends the transaction as its log says.
my $unfinished;

sub write_on_both
{
	my ($home, $other_node, $gid) = @_;
	my $other = connect_to($other_node, 'writer');
	if (!defined $unfinished)
	{
		$unfinished = $gid;
		first_phase($home, $other, $gid, 1 + rand 3, rand() < 0.85 ? 'COMMIT' : 'ROLLBACK');
		pause(rand() < 0.2 ? 100 : 2);
	}
	second_phase($home, $other, $unfinished);
	undef $unfinished;
	return;
}

$load->reader('the protocol', $nodes[0], sub { read_rows($_[1], 1) });
$load->reader('without its second step', $nodes[0], sub { read_rows($_[1], 0) });
foreach my $n (1 .. 6)
{
	my ($home, $other) = $n % 2 ? @nodes : reverse @nodes;
	$load->writer("writer $n", $home, sub { write_on_both($_[0], $other, "writer $n, $_[1]") },
		survives => $server_down);
}

# A second phase that comes long after one of the servers was killed, and after rows of other
# transactions have passed it.
my %behind = map { $_->name => 0 } @nodes;

sub check_late_second_phase
{
	my ($home, $other, $victim) = @_;
	my $name = $home->name . ' commits, ' . $victim->name . ' is killed';
	$load->wait_for_passes('the protocol', 20);
	my @held = map { connect_to($_, 'held') } $home, $other;
	my $id = first_phase(@held, $name, 1, 'COMMIT');
	end_incarnation($victim, 'SIGKILL');
	set_clock_offset($victim, '-' . ++$behind{ $victim->name });
	begin_incarnation($victim);

	my ($later) = reverse sort map { $_->safe_psql('postgres', "$insert RETURNING id") } @nodes;
	wait_until("$name: others pass", sub { $load->last_seen('without its second step') gt $later });
	cmp_ok($load->last_seen('the protocol'), 'lt', $id, "$name: nothing passes the prepared row");
	@held = map { connect_to($_, 'held') } $home, $other;
	second_phase(@held, $name);
	wait_until("$name: it is read", sub { $load->last_seen('the protocol') gt $later });
	return;
}

check_late_second_phase($east, $west, $east);
check_late_second_phase($east, $west, $west);
check_late_second_phase($west, $east, $east);
check_late_second_phase($west, $east, $west);
$load->end_writers;
my $committed = join "\n", map { $_->safe_psql('postgres', 'SELECT id FROM outbox') } @nodes;
my ($greatest) = reverse sort split /\n/, $committed;
$load->wait_for_reader('the protocol', $greatest);
$load->end_readers;
$load->check('the protocol', $committed);
$load->check('without its second step', $committed, 4);
$_->stop foreach @nodes;
done_testing();
