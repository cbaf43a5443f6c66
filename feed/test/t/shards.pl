# A feed over two servers, each of which has some of the rows.  Sessions insert on both by
# two-phase commit, in Citus' order of steps: the one where a transaction began, which numbers its
# rows, commits between the phases, its log says what the other one is to be, and that may come
# late.  Servers are killed between the phases.  Rows of each origin have a feed of their own.
#
# The protocol of examples/citus: 1. the watermark of the origin; 2. wait until what is prepared on
# any server now is not any more; 3. read below it, in new statements.  It misses no row; without
# its second step rows are missed.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use Watchdog;

my @nodes = map { start_node($_) } 'east', 'west';
my ($east, $west) = @nodes;

# Which both the writers there and the rows that come from there stand on
my %insert = map { $_->name => "INSERT INTO outbox (origin) VALUES ('${\ $_->name}')" } @nodes;
foreach my $node (@nodes)
{
	$node->safe_psql('postgres', qq{
CREATE TABLE numbers (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
SELECT fast_feed.enable('numbers', 'number');
CREATE TABLE outbox (origin text, id bigint DEFAULT fast_feed.next('numbers_number_seq'), PRIMARY KEY (origin, id));
CREATE TABLE log (gid text PRIMARY KEY)});
}
my $load = FeedWriters->new_load;

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
	my ($origin, $last, $second_step) = @_;
	my @rows;
	my $is_up = eval {
		@sessions = map { connect_to($_, 'reader') } $origin, grep { $_ != $origin } @nodes unless @sessions;
		my $bound = run_in($sessions[0], "SELECT fast_feed.watermark('numbers')");
		wait_for_prepared($_) foreach $second_step ? @sessions : ();
		my $read = "SELECT lpad(id::text, 19, '0') FROM outbox"
		  . " WHERE origin = '${\ $origin->name}' AND id > '$last' AND id < $bound";
		@rows = sort map { split /\n/, run_in($_, $read) } @sessions;
		1;
	};
	die $@ unless $is_up || $@ =~ $server_down;
	@sessions = () unless $is_up;
	return $is_up ? join "\n", @rows : '';
}

# Returns the number of the first row that is elsewhere; it was drawn at home.
sub first_phase
{
	my ($home, $other, $origin, $gid, $rows, $end) = @_;
	my $number;
	run_in($_, 'BEGIN') foreach $home, $other;
	foreach (1 .. $rows)
	{
		my $drawn = run_in($home, "$insert{$origin}; SELECT lpad(fast_feed.next('numbers_number_seq')::text, 19, '0')");
		run_in($other, "INSERT INTO outbox VALUES ('$origin', '$drawn')");
		$number //= $drawn;
		pause(10);
	}
	run_in($other, "PREPARE TRANSACTION '$gid'");
	run_in($home, "INSERT INTO log VALUES ('$gid')");
	run_in($home, $end);
	return $number;
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
	my ($home, $other_node, $origin, $gid) = @_;
	my $other = connect_to($other_node, 'writer');
	if (!defined $unfinished)
	{
		$unfinished = $gid;
		first_phase($home, $other, $origin, $gid, 1 + rand 3, rand() < 0.85 ? 'COMMIT' : 'ROLLBACK');
		pause(rand() < 0.2 ? 100 : 2);
	}
	second_phase($home, $other, $unfinished);
	undef $unfinished;
	return;
}

foreach my $node (@nodes)
{
	my $origin = $node->name;
	my ($other) = grep { $_ != $node } @nodes;
	$load->reader($origin, $node, sub { read_rows($node, $_[1], 1) }, from => 0);
	$load->reader("$origin, without the second step", $node, sub { read_rows($node, $_[1], 0) }, from => 0);
	$load->writer("writer $_ $origin", $node,
		sub { write_on_both($_[0], $other, $origin, "writer $_ $origin, $_[1]") }, survives => $server_down)
	  foreach 1 .. 3;
}

# A second phase that comes long after one of the servers was killed, and after rows of other
# transactions have passed it.
sub check_late_second_phase
{
	my ($home, $other, $victim) = @_;
	my $origin = $home->name;
	my $name = "$origin commits, " . $victim->name . ' is killed';
	$load->wait_for_passes($origin, 20);
	my @held = map { connect_to($_, 'held') } $home, $other;
	my $number = first_phase(@held, $origin, $name, 1, 'COMMIT');
	$victim->stop('immediate');
	$victim->start;

	my $later = $home->safe_psql('postgres', "$insert{$origin} RETURNING lpad(id::text, 19, '0')");
	$load->wait_for_reader("$origin, without the second step", $later);
	cmp_ok($load->last_seen($origin), 'lt', $number, "$name: nothing passes the prepared row");
	@held = map { connect_to($_, 'held') } $home, $other;
	second_phase(@held, $name);
	$load->wait_for_reader($origin, $later);
	return;
}

check_late_second_phase($east, $west, $east);
check_late_second_phase($east, $west, $west);
check_late_second_phase($west, $east, $east);
check_late_second_phase($west, $east, $west);
$load->end_writers;
my %committed;
foreach my $origin (map { $_->name } @nodes)
{
	my $rows = "SELECT lpad(id::text, 19, '0') FROM outbox WHERE origin = '$origin'";
	$committed{$origin} = join "\n", map { $_->safe_psql('postgres', $rows) } @nodes;
	my ($greatest) = reverse sort split /\n/, $committed{$origin};
	$load->wait_for_reader($origin, $greatest);
}
$load->end_readers;
foreach my $origin (sort keys %committed)
{
	$load->check($origin, $committed{$origin});
	$load->check("$origin, without the second step", $committed{$origin}, 2);
}
$_->stop foreach @nodes;
unlike(slurp_file($_->logfile), qr/PANIC|TRAP/, $_->name . ': no PANIC, and no failed assertion') foreach @nodes;
done_testing();
