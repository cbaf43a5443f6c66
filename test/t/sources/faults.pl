# A source that fails, in each way that it can, raises 58000 with the reason; no other source
# takes its place, and the session continues.

use strict;
use warnings;

use Errno qw(EACCES EAGAIN EINTR EIO EMFILE ENOENT ENOMEM ENOSYS EPERM);
use POSIX qw(mkfifo);
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node    = start_faulty_node('faults');
my @sources = available_sources($node);

# How many of so many calls fail.
$node->safe_psql(
	'postgres', q{
CREATE TABLE made (n int, id uuid);
CREATE FUNCTION failures(calls int, source text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
	failed int := 0;
BEGIN
	FOR i IN 1..calls LOOP
		BEGIN
			PERFORM uuidv7_fast(source);
		EXCEPTION WHEN system_error THEN
			failed := failed + 1;
		END;
	END LOOP;
	RETURN failed;
END $$});

# What stands in for /dev/urandom
my $plain_file = $node->basedir . '/plain_file';
append_to_file($plain_file, join('', map { chr(32 + $_ % 95) } 1 .. 100_000));
my $pipe = $node->basedir . '/pipe';
mkfifo($pipe, 0600) or die "could not make a pipe: $!";

# The system's words for an errno, as they end a sentence.
sub message
{
	local $! = $_[0];
	return "$!.";
}

# The faults (see preload_faults.c), the source that they concern, the detail of its error;
# vdso: the setting; first_use: only where the source has not been used before.
my @faults;

sub add_fault
{
	my ($source, $fault, $detail, %more) = @_;
	push @faults, { source => $source, fault => $fault, detail => $detail, vdso => 'on', %more };
	return;
}

my $no_request = "Could not read the kernel's random number generator: ";
my $not_seeded = "The kernel's random number generator is not seeded yet.";
foreach my $vdso ('off', 'on')
{
	add_fault('getrandom', "getrandom $_", $no_request . message($_), vdso => $vdso)
	  foreach EPERM, ENOSYS, EINTR;
	add_fault($_, 'getrandom ' . EAGAIN, $not_seeded, vdso => $vdso, first_use => 1)
	  foreach @sources;
}

my $device = '"/dev/urandom"';
add_fault('urandom', "path $plain_file.missing", "Could not open file $device: " . message(ENOENT));
add_fault('urandom', "open $_", "Could not open file $device: " . message($_))
  foreach EACCES, EMFILE;
add_fault('urandom', "path $_", "$device is not a character device.")
  foreach $plain_file, $pipe, '/dev';
add_fault('urandom', 'path /dev/zero', "$device is not the kernel's random device.");
add_fault('urandom', 'fstat ' . EIO, "Could not stat file $device: " . message(EIO));
add_fault('urandom', 'end', "$device returned no data.");
add_fault('urandom', "read $_", "Could not read file $device: " . message($_)) foreach EIO, EINTR;
add_fault('urandom', 'short 3,then ' . EIO, "Could not read file $device: " . message(EIO));

my $with_openssl = grep { $_ eq 'openssl' } @sources;
if ($with_openssl)
{
	my $no_bytes = 'OpenSSL could not generate random bytes: ';
	add_fault('openssl', 'rand 0', "${no_bytes}error code 0.");
	add_fault('openssl', 'rand 2', "${no_bytes}error retrieving entropy.");

	# It takes its seed from any strong source: also from the server's, which is OpenSSL, or
	# the device where the server is built without.  Its reason is the first one's.
	add_fault('xorshift128+', 'rand 2,open ' . EACCES . ',getrandom ' . EPERM,
		$no_request . message(EPERM), vdso => 'off', first_use => 1);
}

# A session that fetches every UUID's random bits by themselves, so that nothing buffered
# hides a fault.
sub start_session
{
	my ($fault) = @_;
	return RawSession->start($node, 'SET fast_uuid.buffer_size = 0',
		"SET fast_uuid.vdso = $fault->{vdso}");
}

sub inject
{
	my ($session, $fault) = @_;
	$session->query_safe("SELECT inject_fault('$fault')");
	return;
}

# The statement fails, because the source does.
sub check_error
{
	my ($session, $fault, $statement, $name) = @_;
	is($session->query($statement), '', "$name: no value");
	my $message = "could not get random bytes from entropy source \"$fault->{source}\"";
	is($session->{error}, "58000 $message|$fault->{detail}|",
		"$name: an error that names the source and the reason");
	return;
}

# What a source was asked for so far.
sub refills
{
	my ($session, @names) = @_;
	my $names = join "','", @names;
	return $session->query_safe(
		"SELECT string_agg(refills::text, ' ' ORDER BY name) FROM fast_uuid_sources()"
		  . " WHERE name IN ('$names')");
}

sub open_descriptors
{
	my ($session) = @_;
	my @files = glob("/proc/$session->{pid}/fd/*");
	return scalar @files;
}

# What fast_uuid_sources() says of a source now
sub check_listed
{
	my ($session, $source, $expected, $name) = @_;
	is( $session->query_safe(
			'SELECT concat(available, CASE WHEN NOT available THEN implementation END,'
			  . " ' ', reason) FROM fast_uuid_sources() WHERE name = '$source'"),
		$expected, "$name: fast_uuid_sources() says so, and why");
	return;
}

# The fault is there when the source is first used.
sub check_first_use
{
	my ($fault) = @_;
	my $source  = $fault->{source};
	my $name    = "$source, $fault->{fault}, first use";
	my $session = start_session($fault);
	inject($session, $fault->{fault});
	check_error($session, $fault, "SELECT uuidv7_fast('$source')", $name) foreach 1 .. 2;
	check_listed($session, $source, "f $fault->{detail}", "$name: it fails");
	unlike(refills($session, @sources), qr/[1-9]/, "$name: no source is drawn from");
	inject($session, '');
	check_working($session, $source, "$name: the session uses it afterwards");
	$session->quit;
	return;
}

# The fault strikes a source that has worked before.
sub check_later_use
{
	my ($fault) = @_;
	my $source  = $fault->{source};
	my $name    = "$source, $fault->{fault}";
	my @others  = grep { $_ ne $source } @sources;
	my $call    = "uuidv7_fast('$source')";
	my $session = start_session($fault);
	check_working($session, $_, "$name: before, $_ works") foreach @sources;
	my $before = refills($session, @sources);

	inject($session, $fault->{fault});
	check_error($session, $fault, "SELECT $_", "$name: $_")
	  foreach $call, "uuidv7_fast_array(1000, '$source')",
	  "uuidv7_fast(interval '1 hour', '$source')", "uuidv7_fast_at(now(), '$source')";
	is(refills($session, @sources), $before, "$name: no source is drawn from in its place");
	check_listed($session, $source, "f $fault->{detail}", "$name: it fails");

	# After the first errors, until caches are warm, nothing is left of one.
	$session->query_safe("SELECT failures(1000, '$source')");
	my ($open, $memory) = (open_descriptors($session), $session->memory);
	my $thousands = $session->query_safe("SELECT failures(5000, '$source')");
	is($thousands, 5000, "$name: thousands of errors");
	is(open_descriptors($session), $open, "$name: no descriptor is left open");
	my $growth = $session->memory - $memory;
	cmp_ok($growth, '<', 512, "$name: memory stays (grew by $growth kB)");

	check_working($session, $_, "$name: $_ works meanwhile") foreach @others;
	inject($session, '');
	check_listed($session, $source, 't ', "$name: it is back");
	check_working($session, $source, "$name: the source works again afterwards");

	# In the middle of a statement, when 499 rows have been made
	my $of_others = refills($session, @others);
	$before = refills($session, $source);
	check_error($session, $fault,
		"INSERT INTO made SELECT n, $call FROM generate_series(1, 1000) AS n"
		  . " WHERE n <> 500 OR inject_fault('$fault->{fault}')",
		"$name: an insert of many rows");
	is(refills($session, $source) - $before, 499, "$name: the fault came in the middle of it");
	is(refills($session, @others), $of_others, "$name: no other source stepped in");
	inject($session, '');
	is($session->query_safe('SELECT count(*) FROM made'), 0, "$name: none of its rows stays");

	# What was buffered before the fault is good.
	$session->query_safe('SET fast_uuid.buffer_size = 4096');
	check_working($session, $source, "$name: with a buffer");
	inject($session, $fault->{fault});
	$before = refills($session, $source);
	my $failed = $session->query_safe("SELECT failures(1000, '$source')");
	ok($failed > 1000 - 512 && $failed < 1000,
		"$name: what was buffered is handed out ($failed of 1000 fail)");
	is($session->query_safe("SELECT failures(9, '$source')"), 9, "$name: and nothing after that");
	is(refills($session, $source), $before, "$name: nothing was fetched");
	inject($session, '');
	check_working($session, $source, "$name: the buffer is filled again afterwards");
	$session->quit;
	return;
}

foreach my $fault (@faults)
{
	check_first_use($fault);
	check_later_use($fault) unless $fault->{first_use};
}

# What is no fault: an interrupted request, one that delivers less, a descriptor that the
# server can free, no memory for the vDSO's state, which the system call does not need.
my %no_fault = (
	getrandom => [ 'getrandom ' . EINTR . ' 5', 'short 3', 'mmap ' . ENOMEM ],
	urandom   => [ 'short 3', 'open ' . EMFILE . ' 1' ]);
foreach my $source (sort keys %no_fault)
{
	foreach my $fault (@{ $no_fault{$source} })
	{
		foreach my $vdso ('on', 'off')
		{
			my $session = start_session({ vdso => $vdso });
			$session->query_safe('SET fast_uuid.buffer_size = 4096');
			inject($session, $fault);
			check_working($session, $source, "$source works in spite of $fault, vdso $vdso");
			$session->quit;
		}
	}
}

# The limit of interruptions is one fill's, not the session's.
foreach my $fault ([ 'getrandom', 'getrandom', 'on' ], [ 'getrandom', 'getrandom', 'off' ],
	[ 'urandom', 'read', 'on' ])
{
	my ($source, $call, $vdso) = @$fault;
	my $session = start_session({ vdso => $vdso });
	foreach my $fill (1 .. 3)
	{
		inject($session, "$call " . EINTR . ' 60');
		like($session->outcome("SELECT uuidv7_fast('$source')"),
			qr/^value/, "$source, vdso $vdso, interrupted 60 times: fill $fill");
	}
	$session->quit;
}

# Where nothing can be known of the kernel's seed, the others work; a seed needs no kernel.
foreach my $errno (EPERM, ENOSYS)
{
	my $session = start_session({ vdso => 'off' });
	inject($session, "getrandom $errno");
	check_working($session, $_, "without getrandom ($errno) $_ works")
	  foreach grep { $_ ne 'getrandom' } @sources;
	$session->quit;
}
my $seeded = start_session({ vdso => 'on' });
inject($seeded, 'rand 2,getrandom ' . EAGAIN);
$seeded->query_safe("SET fast_uuid.seed = '42'");
check_working($seeded, 'xorshift128+', 'a seeded xorshift128+ needs no kernel');
$seeded->query_safe('RESET fast_uuid.seed');
is($seeded->outcome("SELECT uuidv7_fast('xorshift128+')"), '58000', 'without the seed it fails');
$seeded->quit;

# No memory for an array is an error; what a UUID needs is there from the start.
foreach my $source (@sources)
{
	my $session = RawSession->start($node, "SET fast_uuid.buffer_size = '64kB'");
	inject($session, 'malloc 1000000');
	my $array = "SELECT cardinality(uuidv7_fast_array(3000000, '$source'))";
	is($session->outcome($array), '53200', "$source: no memory for a large array");
	check_working($session, $source, "$source: the session continues");
	inject($session, '');
	is($session->outcome($array), 'value 3000000', "$source: with memory it is made");
	$session->quit;
}

# OpenSSL's queue of errors: ours do not stay, others' are not ours.
SKIP:
{
	my $queue   = 'SELECT openssl_error(true)';
	my $queued  = 'SELECT openssl_error(false)';
	my $session = start_session({ vdso => 'on' });
	skip 'the server, or this build, is without OpenSSL', 1
	  if !$with_openssl || $session->outcome($queued) eq 'XX000';
	is($session->query_safe($queue), 't', 'an error is queued');
	check_working($session, 'openssl', 'that is no error of ours');
	is($session->query_safe($queued), 'f', 'nor is it left for the server to find');
	$session->query_safe($queue);
	inject($session, 'rand 0');
	$session->query("SELECT uuidv7_fast('openssl')");
	like($session->{error}, qr/error code 0/, 'nor is it taken for our reason');
	inject($session, 'rand 2');
	foreach my $call ("uuidv7_fast('openssl')", 'name FROM fast_uuid_sources()')
	{
		$session->query("SELECT $call");
		is($session->query_safe($queued), 'f', "$call leaves no error for the server to find");
	}
	$session->quit;
}

stop_faulty_node($node);
done_testing();
