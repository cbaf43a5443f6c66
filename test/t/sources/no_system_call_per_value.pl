# What a backend asks of the kernel while it makes 100,000 values, seen by
# strace: system calls grow with refills, or not at all, never with values.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use lib 'test/perl';
use Watchdog;

plan skip_all => 'strace is not installed, or may not trace here'
  unless eval { IPC::Run::run([ 'strace', '-f', '-o', '/dev/null', 'true' ], '>&', \my $output) };

my $node = PostgreSQL::Test::Cluster->new('traced');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
$node->stop;

# One trace file for each process of the server.
my $trace  = $node->basedir . '/trace';
my $server = IPC::Run::start(
	[
		'strace', '-f', '-ff', '--seccomp-bpf', '-e', 'trace=getrandom,openat,close,exit_group', '-o', $trace,
		'postgres', '-D', $node->data_dir
	],
	'<', \undef, '>', $node->logfile, '2>&1');
END { IPC::Run::signal($server, 'QUIT') if defined $server }
wait_until_up($node);

# Trace of a new backend that makes this many values under these settings.
sub trace_of_session
{
	my ($count, $settings) = @_;
	my ($pid) = split /\n/,
	  $node->safe_psql('postgres',
		"$settings; SELECT pg_backend_pid(); SELECT count(uuidv7_fast()) FROM generate_series(1, $count)");
	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		my $lines = -e "$trace.$pid" ? slurp_file("$trace.$pid") : '';
		return $lines if $lines =~ /^\+\+\+ exited/m;
		usleep(100_000);
	}
	BAIL_OUT("the trace of backend $pid does not end");
}

sub count_calls
{
	my ($lines, $pattern) = @_;
	return scalar(() = $lines =~ /^$pattern/mg);
}

# Fills that hand out this many words: 8 words at first, doubling to 512.
sub refills
{
	my ($words) = @_;
	my ($fills, $size) = (0, 8);
	while ($words > 0)
	{
		$words -= $size;
		$size *= 2 if $size < 512;
		$fills++;
	}
	return $fills;
}

# Calls to getrandom that 99,000 values more cause.  A server makes some at
# the start of every session.
sub growth
{
	my ($settings) = @_;
	return count_calls(trace_of_session(100_000, $settings), 'getrandom\(')
	  - count_calls(trace_of_session(1_000, $settings), 'getrandom\(');
}

# Is the function among the symbols of the vDSO that the kernel mapped here?
sub vdso_has_getrandom
{
	my ($start, $end) = slurp_file('/proc/self/maps') =~ /^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$/m
	  or return 0;
	my $image;
	open(my $memory, '<:raw', '/proc/self/mem') or return 0;
	sysseek($memory, hex($start), 0);
	sysread($memory, $image, hex($end) - hex($start));
	close($memory);
	return $image =~ /__(vdso|kernel)_getrandom/;
}

my $refills_more = refills(100_000) - refills(1_000);

SKIP:
{
	skip 'this kernel has no getrandom in its vDSO', 1 unless vdso_has_getrandom();
	# The kernel may reseed its own generator in the meantime.
	cmp_ok(growth("SET fast_uuid.source = 'getrandom'"),
		'<=', 2, 'getrandom through the vDSO: no system call for values or refills');
}
is(growth("SET fast_uuid.source = 'getrandom'; SET fast_uuid.vdso = off"),
	$refills_more, 'getrandom with fast_uuid.vdso off: one system call for each refill');
is(growth("SET fast_uuid.source = 'getrandom'; SET fast_uuid.vdso = off; SET fast_uuid.buffer_size = 0"),
	99_000, 'getrandom without vDSO and buffer: one system call for each value');
is(growth("SET fast_uuid.source = 'openssl'"), 0, 'openssl: no getrandom after the first fills');
is(growth("SET fast_uuid.source = 'xorshift128+'"), 0, 'xorshift128+: no getrandom after the seed');

my $lines = trace_of_session(100_000, "SET fast_uuid.source = 'urandom'");
is(count_calls($lines, 'openat\([^\n]*"/dev/urandom"'), refills(100_000), 'urandom: one open for each refill');

my %open;
foreach my $line (split /\n/, $lines)
{
	$open{$1} = 1 if $line =~ m{^openat\(.*"/dev/urandom".* = (\d+)$};
	delete $open{$1} if $line =~ m{^close\((\d+)\)};
}
is(join(',', sort keys %open), '', 'urandom: no descriptor is left open');

system_or_bail('pg_ctl', '-D', $node->data_dir, '-m', 'fast', 'stop');
IPC::Run::finish($server);
undef $server;
done_testing();
