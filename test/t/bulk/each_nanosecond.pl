# Boundaries inside bulk work, which a clock meets by luck alone: a full second at,
# before and after each boundary of a chunk of 256, in arrays, sets and cursors, with
# a clock that stands still and one that moves; what is generated next; the limit on
# the lead to the nanosecond; and a stream of random bits through buffers of every
# size.  The clock is known, so each nanosecond is.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('boundaries');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000_000_000_000);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $chunk   = 256;
my $second  = 1_800_000_001_000_000_000;
my $session = RawSession->start($node);

# The rows of a statement.
sub rows
{
	my ($sql) = @_;
	return split /\n/, $session->query_safe($sql);
}

# The clock stands at a nanosecond that is later than the latest UUID.
sub begin_at
{
	my ($ns) = @_;
	$clock->put($ns - 1_000_000);
	rows('SELECT fast_uuid_reset_ordering(), uuidv7_fast()');
	$clock->put($ns);
	return;
}

# Ways to have so many UUIDs, one after the other.
my %ways = (
	'array' => sub { return rows("SELECT unnest(uuidv7_fast_array($_[0]))") },
	'set'   => sub { return rows("SELECT uuidv7_fast_set($_[0])") },
	# By fetches that end before, at and after the boundaries of chunks.
	'cursor' => sub {
		my ($left) = @_;
		my @ids;
		rows("BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set($left)");
		foreach my $count (255, 1, 1, 254, 2, $left)
		{
			push @ids, rows("FETCH $count FROM c");
		}
		rows('COMMIT');
		return @ids;
	});

# How far apart two readings are: none, more than a chunk takes, as much, less.
my @moves = (0, 10_000, 256, 100);

# The nanoseconds that $count UUIDs must have from a first reading on: as many as
# $from_one take their time from one reading, if it is later than the latest, and never
# go back.
sub expected
{
	my ($reading, $move, $count, $from_one) = @_;
	my ($last, @ns) = (0);
	while (@ns < $count)
	{
		my $first = $reading > $last ? $reading : $last + 1;
		my $most  = $reading > $last ? $from_one : 1;
		my $take  = $most < $count - @ns ? $most : $count - @ns;
		push @ns, $first .. $first + $take - 1;
		$last = $ns[-1];
		$reading += $move;
	}
	return @ns;
}

foreach my $ordering ('session', 'instance')
{
	rows("SET fast_uuid.ordering = '$ordering'");
	foreach my $way (sort keys %ways)
	{
		# A set reads the clock for each row, an array for each chunk that it has passed.
		my $from_one = $way eq 'array' ? $chunk : 1;
		foreach my $move (@moves)
		{
			my ($wrong, $wrong_next) = ('', '');
			foreach my $count (1, 256, 257, 513)
			{
				# The nanoseconds before the second at which it begins.
				foreach my $before (0, 1, 2, 255, 256, 257, 512, 513)
				{
					begin_at($second - $before);
					$clock->move($move);
					my @ids  = $ways{$way}->($count);
					my @ns   = map { KnownClock::ns_of($_) } @ids;
					my @want = expected($second - $before, $move, $count, $from_one);
					$wrong ||= "$count from $before ns before the second" unless "@ns" eq "@want";

					# Nothing was reserved that was not handed out, and nothing handed out twice.
					my $now  = $clock->now;
					my ($next) = map { KnownClock::ns_of($_) } rows('SELECT uuidv7_fast()');
					$wrong_next ||= "$count from $before ns before the second" unless $next == ($now > $want[-1] ? $now : $want[-1] + 1);
				}
			}
			is($wrong, '', "$ordering, $way, readings $move ns apart: each nanosecond");
			is($wrong_next, '', "$ordering, $way, readings $move ns apart: the next UUID");
		}
	}
}

# An array does not lead a clock that crawls: by what it reserved while that was ahead.
foreach my $ordering ('session', 'instance')
{
	rows("SET fast_uuid.ordering = '$ordering'");
	foreach my $sql ('SELECT max(id::text) FROM unnest(uuidv7_fast_array(400000)) AS id', 'SELECT max(id::text) FROM generate_series(1, 1500), unnest(uuidv7_fast_array(256)) AS id')
	{
		begin_at($second);
		$clock->move(1);
		my ($last) = map { KnownClock::ns_of($_) } rows($sql);
		cmp_ok($last - $clock->now, '<=', 256, "$ordering, a clock that moves by a nanosecond per reading: $sql");
	}
}

# A clock that stands still is led by each UUID; from a millisecond on the limit counts.
my $ms = 1_000_000;
foreach my $ordering ('session', 'instance')
{
	rows("SET fast_uuid.ordering = '$ordering'");
	foreach my $limit (0, 1)
	{
		rows("SET fast_uuid.max_clock_lead = $limit");
		# The greatest lead: of the last of so many.
		my $most = $limit == 0 ? $ms - 1 : $limit * $ms;
		foreach my $way ('array', 'set')
		{
			my $sql = $way eq 'array' ? 'SELECT cardinality(uuidv7_fast_array(%d))' : 'SELECT count(id) FROM (SELECT uuidv7_fast_set(%d) AS id) AS made';
			foreach my $count ($most + 1, $most + 2)
			{
				begin_at($second - 1);
				my $fits = $count == $most + 1;
				is($session->outcome(sprintf $sql, $count), $fits ? "value $count" : '55000', "$ordering, limit of $limit ms: $way of $count");
				next if $fits;
				like($session->{error}, qr/The clock is @{[ $limit || 1 ]} ms behind the latest UUID; the limit is $limit ms\./, 'which says by how much');

				# Nothing that was generated before the error is generated again.
				my ($next) = map { KnownClock::ns_of($_) - $second } rows("SET fast_uuid.max_clock_lead = -1; SELECT uuidv7_fast()");
				ok($next > $most - $chunk && $next <= $most, "$ordering, limit of $limit ms: after the $way the next one comes behind it");
				rows("SET fast_uuid.max_clock_lead = $limit");
			}
		}
	}
}
rows("RESET fast_uuid.max_clock_lead; RESET fast_uuid.ordering; SELECT fast_uuid_reset_ordering() IS NULL");

# The same random bits, whatever the buffer, and the function that takes them.  In
# the largest there are 8192 words; 8, 16, ... 4096 before.
my $count   = 25_000;
my %streams = (
	'single' => "SELECT uuidv7_fast() AS id FROM generate_series(1, $count)",
	'shift'  => "SELECT uuidv7_fast(interval '0') AS id FROM generate_series(1, $count)",
	'array'  => "SELECT unnest(uuidv7_fast_array($count)) AS id",
	'set'    => "SELECT uuidv7_fast_set($count) AS id");
my $unbuffered;
foreach my $way (sort keys %streams)
{
	foreach my $size (0, 7, 8, 72, 4096, 65528, 65536)
	{
		my ($stream) = rows("SET fast_uuid.source = 'xorshift128+'; SET fast_uuid.buffer_size = $size; SET fast_uuid.seed = '42';"
			  . "SELECT concat(count(DISTINCT bits), ' ', md5(string_agg(bits, ''))) FROM (SELECT right(id::text, 14) AS bits FROM ($streams{$way} OFFSET 0) AS made OFFSET 0) AS made");
		$unbuffered //= $stream;
		like($stream, qr/^$count /, "$way, buffer of $size bytes: $count different words");
		is($stream, $unbuffered, "$way, buffer of $size bytes: the same stream");
	}
}

$session->quit;
$node->stop;
done_testing();
