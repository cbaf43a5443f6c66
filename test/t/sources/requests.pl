# What a source is asked for: 64 bytes at first, twice as many each time, up to
# fast_uuid.buffer_size; without a buffer 8 for each UUID.  So there is no request for each
# UUID, and fast_uuid_sources() counts those that there are.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use Faults;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('requests');
my @sources = available_sources($node);

# Bytes of each fetch that hands out so many UUIDs.
sub fetches
{
	my ($uuids, $buffer_size) = @_;
	my $limit = $buffer_size < 8 ? 1 : int($buffer_size / 8);
	my $size  = 8;
	my @fetches;
	while ($uuids > 0)
	{
		my $words = $size < $limit ? $size : $limit;
		push @fetches, 8 * $words;
		$uuids -= $words;
		$size *= 2;
	}
	return @fetches;
}

# OpenSSL is asked for whole blocks of 16 bytes.
sub requests_of_openssl
{
	my ($bytes) = @_;
	my $rest = $bytes % 16;
	my @sizes = grep { $_ > 0 } $bytes - $rest, $rest > 0 ? 16 : 0;
	return map { "rand $_" } @sizes;
}

sub requests_of
{
	my ($session, $statement) = @_;
	$session->query_safe('SELECT requests_made()');
	$session->query_safe($statement);
	my @requests;
	foreach (split /, /, $session->query_safe('SELECT requests_made()'))
	{
		my ($request, $times) = split /\*/;
		push @requests, ($request) x $times;
	}
	return \@requests;
}

# Before the first request of a source that would wait for it, whether the kernel's generator
# is seeded is asked.
my $seeded = 'getrandom 0';
my %uuids_of_buffer = (
	4096  => 3000,
	65536 => 17_000,
	100   => 50,
	72    => 30,
	24    => 10,
	15    => 5,
	7     => 5,
	0     => 5);

# By what each source fetches so many bytes; the seed of xorshift128+ is below.
my %requests_of_source = (
	getrandom => sub { return "getrandom $_[0]" },
	urandom => sub { return "read $_[0]" },
	openssl => \&requests_of_openssl);
foreach my $source (grep { $_ ne 'xorshift128+' } @sources)
{
	my $requests = $requests_of_source{$source};
	ok($requests, "$source: by what it fetches, in this file") or next;
	my $session = RawSession->start($node, 'SET fast_uuid.vdso = off', "SELECT inject_fault('')");
	my $first   = 1;
	my ($refills, $bytes) = (0, 0);
	foreach my $size (sort { $a <=> $b } keys %uuids_of_buffer)
	{
		my $uuids    = $uuids_of_buffer{$size};
		my @expected = $first && $source ne 'getrandom' ? $seeded : ();
		foreach my $fetch (fetches($uuids, $size))
		{
			push @expected, $requests->($fetch);
			$refills++;
			$bytes += $fetch;
		}
		my $name = "$source, buffer of $size bytes, $uuids UUIDs";
		$session->query_safe("SET fast_uuid.buffer_size = $size");
		my $call = "SELECT count(uuidv7_fast('$source')) FROM generate_series(1, $uuids)";
		is_deeply(requests_of($session, $call), \@expected, "$name: the requests");
		my $stats = "SELECT concat(refills, ' ', bytes) FROM fast_uuid_sources()";
		is($session->query_safe("$stats WHERE name = '$source'"),
			"$refills $bytes", "$name: counted by fast_uuid_sources()");
		$first = 0;
	}
	$session->quit;
}

# Through the vDSO there are no system calls, and its state is mapped once, as it says.
my $session = RawSession->start($node, "SELECT inject_fault('')");
my $array   = "SELECT uuidv7_fast_array(512 * 100, 'getrandom')";
my @sizes   = fetches(512 * 100, 4096);
my @by_vdso = map { "vdso $_" } @sizes;
my @by_call = map { "getrandom $_" } @sizes;
is_deeply(requests_of($session, $array), [ 'mmap 144', @by_vdso ], 'getrandom through the vDSO');
$session->query_safe('SET fast_uuid.vdso = off');
is_deeply(requests_of($session, $array), \@by_call, 'by system calls');
$session->query_safe('SET fast_uuid.vdso = on');
is_deeply(requests_of($session, $array), \@by_vdso, 'through the vDSO again');

# The generator's seed, and what a benchmark measures
my $pseudorandom = "SELECT cardinality(uuidv7_fast_array(100000, 'xorshift128+'))";
is_deeply(requests_of($session, $pseudorandom), ['vdso 16'], 'xorshift128+: its state');
$session->query_safe('SET fast_uuid.seed = 1');
is_deeply(requests_of($session, $pseudorandom), [], 'nothing with a seed');
my $requests = requests_of($session, 'SELECT count(*) FROM fast_uuid_benchmark(1)');
my %measured = map { $_ => 1 } @$requests;
foreach my $call ('getrandom', 'read', 'vdso', grep({ $_ eq 'openssl' } @sources) ? 'rand' : ())
{
	# By OpenSSL 8 are a block of 16.
	my @sizes = ($call eq 'rand' ? () : 8, 16, 64, 256, 1024, 4096);
	my $missing = join ' ', grep { !$measured{"$call $_"} } @sizes;
	is($missing, '', "fast_uuid_benchmark(): the sizes of $call that it names");
	my $size   = join '|', 0, @sizes;
	my $others = join ' ', grep { /^$call (?!(?:$size)$)/ } keys %measured;
	is($others, '', "fast_uuid_benchmark(): no others of $call");
}
$session->quit;

stop_faulty_node($node);
done_testing();
