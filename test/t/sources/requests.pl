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

my $node    = start_faulty_node('requests');
my %is_there = map { $_ => 1 } available_sources($node);

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

# A request that is repeated is shown once, with how often.
sub counted
{
	my (@requests) = @_;
	my @counted;
	foreach my $request (@requests)
	{
		if (@counted && $counted[-1]{request} eq $request)
		{
			$counted[-1]{times}++;
		}
		else
		{
			push @counted, { request => $request, times => 1 };
		}
	}
	return join ', ', map { "$_->{request}*$_->{times}" } @counted;
}

sub requests_of
{
	my ($session, $statement) = @_;
	$session->query_safe('SELECT requests_made()');
	$session->query_safe($statement);
	return $session->query_safe('SELECT requests_made()');
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
foreach my $source (grep { $is_there{$_} } 'getrandom', 'urandom', 'openssl')
{
	my $session = RawSession->start($node, 'SET fast_uuid.vdso = off', "SELECT inject_fault('')");
	my $first   = 1;
	my ($refills, $bytes) = (0, 0);
	foreach my $size (sort { $a <=> $b } keys %uuids_of_buffer)
	{
		my $uuids    = $uuids_of_buffer{$size};
		my @expected = $first && $source ne 'getrandom' ? $seeded : ();
		foreach my $fetch (fetches($uuids, $size))
		{
			push @expected,
				$source eq 'openssl' ? requests_of_openssl($fetch)
			  : $source eq 'urandom' ? "read $fetch"
			  :                        "getrandom $fetch";
			$refills++;
			$bytes += $fetch;
		}
		my $name = "$source, buffer of $size bytes, $uuids UUIDs";
		$session->query_safe("SET fast_uuid.buffer_size = $size");
		my $call = "SELECT count(uuidv7_fast('$source')) FROM generate_series(1, $uuids)";
		is(requests_of($session, $call), counted(@expected), "$name: the requests");
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
my $on      = 'SET fast_uuid.vdso = on; ';
my $off     = 'SET fast_uuid.vdso = off; ';
my $growing = join ', ', map { "%s $_*1" } 64, 128, 256, 512, 1024, 2048;
my $fetched = "$growing, %s 4096*100";
is( requests_of($session, $array),
	'mmap 144*1, ' . $fetched =~ s/%s/vdso/gr,
	'getrandom through the vDSO');
is(requests_of($session, $off . $array), $fetched =~ s/%s/getrandom/gr, 'by system calls');
is(requests_of($session, $on . $array), $fetched =~ s/%s/vdso/gr, 'through the vDSO again');

# The generator's seed, and what a benchmark measures
my $pseudorandom = "SELECT cardinality(uuidv7_fast_array(100000, 'xorshift128+'))";
is(requests_of($session, $off . $pseudorandom), 'getrandom 16*1', 'xorshift128+: its state');
is(requests_of($session, "SET fast_uuid.seed = 1; $pseudorandom"), '', 'nothing with a seed');
my $requests = requests_of($session, 'SELECT count(*) FROM fast_uuid_benchmark(1)');
foreach my $call ('getrandom', 'read', 'vdso', $is_there{openssl} ? 'rand' : ())
{
	my %sizes = map { $_ => 1 } $requests =~ /$call (\d+)\*/g;
	my $measured = join ' ', grep { $_ > 16 } sort { $a <=> $b } keys %sizes;
	is($measured, '64 256 1024', "fast_uuid_benchmark(): the sizes of $call that it names");
}
$session->quit;

stop_faulty_node($node);
done_testing();
