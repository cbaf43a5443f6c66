# Durable order under fire: sessions generate in every way, each keeps what its
# client has received, and in the middle of it the server is killed, stopped at once
# or shut down, and begins again with another clock.  No UUID of a later incarnation is
# smaller than one that any client received before, or that is in a row.
#
#   FAST_UUID_DURABLE_CYCLES=200   that many incarnations instead of 6
#   TEST_SEED=N                    the same steps of the clock again

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

use lib 'test/perl';
use FakeClock;
use RandomSeed;

require_fake_clock();

my $cycles = $ENV{FAST_UUID_DURABLE_CYCLES} // 6;

my $node = PostgreSQL::Test::Cluster->new('fire');
$node->init;
start_with_fake_clock($node);
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	$node->stop;
	plan skip_all => 'durable order requires PostgreSQL 17';
}
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE nobody LOGIN;
CREATE TABLE made (id uuid);
});

# Sessions: a statement, as often as an incarnation may last; what comes before.
my %sessions = (
	'single'      => [ 'SELECT uuidv7_fast()', 'SET default_transaction_read_only = on; SET ROLE nobody' ],
	'arrays'      => [ 'SELECT unnest(uuidv7_fast_array(300))' ],
	'sets'        => [ 'SELECT uuidv7_fast_set(300)' ],
	'committed'   => [ 'INSERT INTO made SELECT uuidv7_fast() RETURNING id' ],
	'uncommitted' => [ 'INSERT INTO made SELECT uuidv7_fast_set(3) RETURNING id', 'BEGIN' ]);
my $directory = PostgreSQL::Test::Utils::tempdir();
foreach my $name (keys %sessions)
{
	my ($statement, $before) = @{ $sessions{$name} };
	append_to_file("$directory/$name.sql", "SET fast_uuid.ordering = 'durable';\n" . ($before // 'SELECT') . ";\n" . "$statement;\n" x 50_000);
}

my $greatest = $node->safe_psql('postgres', "SET fast_uuid.ordering = 'durable'; SELECT uuidv7_fast()");
$node->stop;

sub seconds_of
{
	my ($id) = @_;
	return hex($id =~ s/^(.{8})-(.{4}).*/$1$2/r) / 1000;
}

# Step the clock, from the greatest time that it or a UUID had.
my $latest;

sub step_clock
{
	my $step = rand() < 0.5 ? rand() : -rand(3600);
	set_clock_offset($node, sprintf('%+.3f', $latest + $step - time()));
	$latest += $step if $step > 0;
	return $step;
}

# The smallest and the greatest UUID of a session, how many, and how many are not
# greater than the one before.
sub received
{
	my ($name) = @_;
	my ($smallest, $largest, $count, $violations, $previous) = (undef, '', 0, 0, '');
	open(my $file, '<', "$directory/$name.out") or die "could not open: $!";
	while (my $id = <$file>)
	{
		# A line that the server's end cut off was not received.
		next unless $id =~ /^[0-9a-f]{8}-.{27}\n/;
		$violations++ if $id le $previous;
		$previous = $id;
		$smallest = $id if !defined $smallest || $id lt $smallest;
		$largest  = $id if $id gt $largest;
		$count++;
	}
	close $file;
	chomp($smallest, $largest);
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
	$latest = seconds_of($greatest);
	my $step = step_clock();
	begin_incarnation($node);

	# A row counts although its client may not have received the UUID any more.
	my $row = $node->safe_psql('postgres', 'SELECT id FROM made ORDER BY id DESC LIMIT 1; TRUNCATE made');
	$greatest = $row if $row gt $greatest;
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
		$smallest = $received[0] if !defined $smallest || $received[0] lt $smallest;
		$largest  = $received[1] if $received[1] gt $largest;
		$count += $received[2];
		$violations += $received[3];
	}
	ok($smallest gt $greatest && !$violations, sprintf('%d, clock stepped by %+.3f s, %d UUIDs until %s', $cycle, $step, $count, $way))
	  or diag("received before: $greatest, then: $smallest; in sessions out of order: $violations");
	$greatest = $largest;
	$total += $count;
}
diag(sprintf('%d incarnations, %d UUIDs, %.1f s per incarnation', $cycles, $total, (time() - $began) / $cycles));

done_testing();
