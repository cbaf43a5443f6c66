# The feed's order under fire: sessions generate in every way, each keeps what its
# client has received, and in the middle of it the server is killed, stopped at once
# or shut down, and begins again with another clock.  No feed id or position of a later
# incarnation is smaller than one that any client received before, or that is in a row.
#
#   FAST_UUID_DURABLE_CYCLES=200   that many incarnations instead of 6
#   TEST_SEED=N                    the same steps of the clock again

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

use lib 'test/perl';
use DurableNode;
use FakeClock;
use RandomSeed;

require_fake_clock();

my $cycles = $ENV{FAST_UUID_DURABLE_CYCLES} // 6;

new_durable_node();
$node->safe_psql('postgres', 'CREATE ROLE nobody LOGIN; CREATE TABLE made (id uuid DEFAULT uuidv7_feed_id(), position bigint DEFAULT uuidv7_feed_position())');

# Sessions: a statement, as often as an incarnation may last; what comes before.
my %sessions = (
	'single'      => [ 'SELECT uuidv7_feed_id()', 'SET default_transaction_read_only = on; SET ROLE nobody' ],
	'positions'   => [ 'SELECT uuidv7_feed_position()' ],
	'many'        => [ 'SELECT uuidv7_feed_id() FROM generate_series(1, 300)' ],
	'committed'   => [ 'INSERT INTO made DEFAULT VALUES RETURNING id' ],
	'uncommitted' => [ 'INSERT INTO made SELECT FROM generate_series(1, 3) RETURNING position', 'BEGIN' ]);
my $directory = PostgreSQL::Test::Utils::tempdir();
foreach my $name (keys %sessions)
{
	my ($statement, $before) = @{ $sessions{$name} };
	append_to_file("$directory/$name.sql", ($before // 'SELECT') . ";\n" . "$statement;\n" x 50_000);
}

my ($greatest) = ids($generate);
$node->stop;

# Step the clock, from the greatest time that it or a value had.
my $latest;

sub step_clock
{
	my $step = rand() < 0.5 ? rand() : -rand(3600);
	set_clock_offset($node, sprintf('%+.3f', $latest + $step - time()));
	$latest += $step if $step > 0;
	return $step;
}

# The smallest and the greatest value of a session, how many, and how many are not
# greater than the one before.
sub received
{
	my ($name) = @_;
	my ($smallest, $largest, $count, $violations, $previous) = (undef, 0, 0, 0, 0);
	open(my $file, '<', "$directory/$name.out") or die "could not open: $!";
	while (my $value = <$file>)
	{
		# A line that the server's end cut off was not received.
		next unless $value =~ /^(?:[0-9a-f]{8}-.{27}|\d{19})\n/;
		my ($ns) = nanoseconds($value);
		$violations++ if $ns <= $previous;
		$previous = $ns;
		$smallest = $ns if !defined $smallest || $ns < $smallest;
		$largest  = $ns if $ns > $largest;
		$count++;
	}
	close $file;
	return ($smallest, $largest, $count, $violations);
}

my $seed = seed_random();
my ($total, $began, @problems) = (0, time());
foreach my $cycle (1 .. $cycles)
{
	# However many steps the one before it took.
	srand($seed + $cycle);

	# The last incarnation ends so that nothing of the server's stays.
	my $way = ('fast', 'immediate', 'SIGKILL')[ ($cycles - $cycle) % 3 ];
	$latest = $greatest / 1e9;
	my $step = step_clock();
	begin_incarnation($node);

	# A row counts although its client may not have received it any more.
	my ($row) = reverse nanoseconds($node->safe_psql('postgres', 'SELECT max(id::text) FROM made; SELECT max(position) FROM made; TRUNCATE made'));
	$greatest = $row if ($row // 0) > $greatest;
	my @running = map {
		IPC::Run::start(
			[ 'psql', '-XqAt', '-d', $node->connstr('postgres'), '-f', "$directory/$_.sql" ],
			'<', '/dev/null', '>', "$directory/$_.out", '2>', "$directory/$_.err",
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default))
	} sort keys %sessions;

	# Until each has received something, and the clock was stepped some times.
	my $steps = 0;
	do
	{
		usleep(100_000);
		step_clock();
	} while ++$steps < 3 || grep { !-s "$directory/$_.out" } keys %sessions;
	end_incarnation($node, $way);
	foreach my $running (@running)
	{
		eval { IPC::Run::finish($running); 1 } or BAIL_OUT("a session does not end: $@");
	}

	my ($smallest, $largest, $count, $violations) = (undef, $greatest, 0, 0);
	foreach my $name (keys %sessions)
	{
		my @received = received($name);
		$smallest = $received[0] if !defined $smallest || $received[0] < $smallest;
		$largest  = $received[1] if $received[1] > $largest;
		$count += $received[2];
		$violations += $received[3];
	}
	ok($smallest > $greatest && !$violations, sprintf('%d, clock stepped by %+.3f s, %d values until %s', $cycle, $step, $count, $way))
	  or diag("received before: $greatest, then: $smallest; in sessions out of order: $violations");
	$greatest = $largest;
	$total += $count;
}
diag(sprintf('%d incarnations, %d values, %.1f s per incarnation', $cycles, $total, (time() - $began) / $cycles));

done_testing();
