# Each request to the kernel and to OpenSSL, as strace sees it: its size, its flags,
# how many there are, and that fast_uuid_sources() says the same.  64 bytes at first, twice as many each time, up to fast_uuid.buffer_size;
# without a buffer 8 for each value; and before the first one of a source, a look at
# whether it works.

use strict;
use warnings;

use Cwd qw(getcwd);
use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use lib 'test/perl';
use Watchdog;

plan skip_all => 'strace is not installed, or may not trace here'
  unless eval { IPC::Run::run([ 'strace', '-f', '-o', '/dev/null', 'true' ], '>&', \my $output) };

my $node = PostgreSQL::Test::Cluster->new('requests');
$node->init;
$node->append_conf('postgresql.conf', "jit = off\nautovacuum = off\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $openssl = $node->safe_psql('postgres', "SELECT available FROM fast_uuid_sources() WHERE name = 'openssl'") eq 't';
$node->stop;

# One trace file for each process of the server.
my $trace = $node->basedir . '/trace';
my $server;
{
	local $ENV{LD_PRELOAD} = getcwd() . '/test/modules/preload_rand_sizes.so';
	$server = IPC::Run::start(
		[
			'strace', '-f', '-ff', '--seccomp-bpf', '-e', 'trace=getrandom,openat,read,close,exit_group', '-o', $trace,
			'postgres', '-D', $node->data_dir
		],
		'<', \undef, '>', $node->logfile, '2>&1');
}
END { IPC::Run::signal($server, 'QUIT') if defined $server }
wait_until_up($node);

# What a backend asks for while it runs each of these statements, as "CALL SIZE
# FLAGS" lines, with what came back if that was less; and what the statements return.
sub requests_of
{
	my (@statements) = @_;
	my $mark = sub { "SELECT pg_read_file('mark_$_[0]', 0, 1, true) IS NOT NULL;\n" };
	my ($pid, @rows) = split /\n/,
	  $node->safe_psql('postgres', "SELECT pg_backend_pid(); SELECT uuidv7_fast_min(now()) IS NULL;\n" . join('', map { $mark->($_) . "$statements[$_];\n" } 0 .. $#statements)
		  . $mark->('end'));
	my $lines = '';
	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$lines = -e "$trace.$pid" ? slurp_file("$trace.$pid") : '';
		last if $lines =~ /^\+\+\+ exited/m;
		usleep(100_000);
	}
	my (undef, @parts) = split /^openat\(.*"[.\/]*mark_\w+".*\n/m, $lines;
	pop @parts;
	BAIL_OUT("the trace of backend $pid is not whole") if @parts != @statements;
	return ([ map { [ requests_in($_) ] } @parts ], grep { $_ ne 'f' } @rows);
}

sub requests_in
{
	my ($lines) = @_;
	my (@requests, %device);
	foreach (split /\n/, $lines)
	{
		if (/^getrandom\((.*), (\d+), (\w+)\) += (.*)$/)
		{
			push @requests, "getrandom $2 $3" . ($4 eq $2 ? '' : " = $4");
		}
		elsif (m{^openat\(AT_FDCWD, "/dev/urandom", (\S+)\) += (\d+)$})
		{
			$device{$2} = 1;
			push @requests, "open $1";
		}
		elsif (/^read\((\d+), .*, (\d+)\) += (.*)$/)
		{
			push @requests, "read $2" . ($3 eq $2 ? '' : " = $3") if $device{$1};
		}
		elsif (/^close\((\d+)\)/)
		{
			push @requests, 'close' if delete $device{$1};
		}
		elsif (/"(RAND_bytes \d+)"/)
		{
			push @requests, $1;
		}
	}
	return @requests;
}

# Bytes of each fetch that hands out so many values with this buffer size.
sub fetches
{
	my ($values, $buffer) = @_;
	my ($limit, $size, @fetches) = (int($buffer / 8) || 1, 8);
	while ($values > 0)
	{
		my $words = $size < $limit ? $size : $limit;
		push @fetches, 8 * $words;
		$values -= $words;
		$size *= 2;
	}
	return @fetches;
}

# How a fetch of a size looks: in a process's first, whether the kernel is seeded is asked.
my $seeded = 'getrandom 0 GRND_NONBLOCK';
my %fetch = (
	getrandom => sub { "getrandom $_[0] GRND_NONBLOCK" },
	urandom   => sub { ('open O_RDONLY|O_NONBLOCK|O_CLOEXEC', $_[1] ? $seeded : (), "read $_[0]", 'close') },
	# Whole blocks of 16 bytes.
	openssl   => sub { ($_[1] ? $seeded : (), map { "RAND_bytes $_" } grep { $_ } ($_[0] - $_[0] % 16, $_[0] % 16 ? 16 : 0)) });

my @buffers = ([ 4096, 3000 ], [ 65536, 17_000 ], [ 100, 50 ], [ 72, 30 ], [ 64, 30 ], [ 24, 10 ], [ 15, 5 ], [ 8, 5 ], [ 7, 5 ], [ 0, 5 ]);
foreach my $source ('getrandom', 'urandom', $openssl ? 'openssl' : ())
{
	my $stats = "SELECT refills, bytes FROM fast_uuid_sources() WHERE name = '$source'";
	my ($requests, @rows) = requests_of(
		'SET fast_uuid.vdso = off',
		map {
			my ($buffer, $values) = @$_;
			("SET fast_uuid.buffer_size = $buffer", "SELECT count(uuidv7_fast('$source')) FROM generate_series(1, $values)", $stats)
		} @buffers);
	my ($refills, $bytes) = (0, 0);
	foreach my $i (0 .. $#buffers)
	{
		my ($buffer, $values) = @{ $buffers[$i] };
		my @fetches = fetches($values, $buffer);
		my @own     = @{ $requests->[ 3 * $i + 2 ] };
		# What OpenSSL asks for at its first use is its own affair.
		@own = grep { /^RAND|$seeded/ } @own if $source eq 'openssl' && $i == 0;
		is_deeply(\@own,
			[ map { $fetch{$source}->($fetches[$_], $i == 0 && $_ == 0) } 0 .. $#fetches ],
			"$source, buffer of $buffer bytes: each request for $values values");
		$refills += @fetches;
		$bytes += $_ foreach @fetches;
		is($rows[ 2 * $i + 1 ], "$refills|$bytes", "$source, buffer of $buffer bytes: counted by fast_uuid_sources()");
	}
}

# Every function asks alike, with and without a buffer.
my %values = (
	"uuidv7_fast('urandom')"             => 1,
	"uuidv7_fast_array(300, 'urandom')"  => 300,
	"uuidv7_fast_set(300, 'urandom')"    => 300,
	"uuidv7_fast(interval '0', 'urandom')" => 1,
	"uuidv7_fast_at(now(), 'urandom')"   => 1);
foreach my $call (sort keys %values)
{
	foreach my $buffer (0, 512)
	{
		my ($requests) = requests_of("SET fast_uuid.buffer_size = $buffer", "SELECT $call");
		my @fetches = fetches($values{$call}, $buffer);
		is_deeply($requests->[1], [ map { $fetch{urandom}->($fetches[$_], $_ == 0) } 0 .. $#fetches ],
			"$call, buffer of $buffer bytes: the same requests");
	}
}

# The generator's seed, and what a benchmark measures.
my ($requests) = requests_of(
	'SET fast_uuid.vdso = off', "SELECT cardinality(uuidv7_fast_array(100000, 'xorshift128+'))",
	"SET fast_uuid.seed = '1'", "SELECT uuidv7_fast('xorshift128+')", 'SELECT count(*) FROM fast_uuid_benchmark(1)');
is_deeply($requests->[1], ['getrandom 16 GRND_NONBLOCK'], 'xorshift128+: 16 bytes for its state, once');
is_deeply($requests->[3], [], 'xorshift128+ with a seed: nothing');
foreach my $call ('getrandom', 'read', $openssl ? 'RAND_bytes' : ())
{
	my %sizes = map { /^$call (\d+)( GRND_NONBLOCK)?$/ && $1 > 16 ? ($1 => 1) : () } @{ $requests->[4] };
	is(join(' ', sort { $a <=> $b } keys %sizes), '64 256 1024', "fast_uuid_benchmark(): the sizes of $call that it names");
}

# Without a system call, or with one for each refill, as fast_uuid_sources() says.
my $says = "SELECT implementation FROM fast_uuid_sources() WHERE name = 'getrandom'";
my $droppable = "SELECT count(*) FROM regexp_matches(pg_read_file('/proc/self/smaps'), '^VmFlags:.* dp( |\$)', 'gn')";
my @rows;
my $hundred = "SELECT cardinality(uuidv7_fast_array(51200, 'getrandom'))";
($requests, @rows) = requests_of($droppable, $says, $droppable, $hundred, $hundred, 'SET fast_uuid.vdso = off', $says, $hundred, $droppable);
my @found = map { scalar @{ $requests->[$_] } } 4, 7;
my ($before, $on, $after, undef, undef, $off, undef, $last) = @rows;
note("getrandom: $on");
like($on, qr/^(vDSO|system call)$/, 'how getrandom is called');
# 100 refills; the kernel may reseed its own generator meanwhile.
cmp_ok(abs($found[0] - ($on eq 'vDSO' ? 0 : 100)), '<=', 2, "fast_uuid_sources() says $on: so it is");
is($off, 'system call', 'fast_uuid.vdso off: fast_uuid_sources() says so');
is($found[1], scalar fetches(51_200, 4096), 'and it is one for each refill');
is($after - $before, $on eq 'vDSO' ? 1 : 0, 'the vDSO has memory of its own, which the kernel wipes for a child');
is($last, $after, 'once');

# Where the kernel has mapped a getrandom, by its name in the image, that is used.
SKIP:
{
	my ($from, $to) = map { hex } slurp_file('/proc/self/maps') =~ /^([0-9a-f]+)-([0-9a-f]+) .*\[vdso\]$/m;
	skip 'no vDSO here, or not for us', 1 if !defined $to || !open(my $memory, '<:raw', '/proc/self/mem');
	my $image = '';
	seek($memory, $from, 0);
	read($memory, $image, $to - $from) == $to - $from or die "could not read the vDSO: $!";
	is($on, $image =~ /__(?:vdso|kernel)_getrandom/ ? 'vDSO' : 'system call', 'getrandom is called in the vDSO where that has it');
}

system_or_bail('pg_ctl', '-D', $node->data_dir, '-m', 'fast', 'stop');
IPC::Run::finish($server);
undef $server;
done_testing();
