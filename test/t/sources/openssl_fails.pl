# RAND_bytes fails in an existing session, with and without getrandom.

use strict;
use warnings;

use Errno qw(EPERM);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('openssl', preload => 1);
if (!grep { $_ eq 'openssl' } sources())
{
	$node->stop;
	plan skip_all => 'this build is without OpenSSL';
}

check_fault($node, 'openssl', 'RAND_bytes without a reason', 'rand 0', 'OpenSSL could not generate random bytes: error code 0.');
check_fault($node, 'openssl', 'RAND_bytes', 'rand 2', 'OpenSSL could not generate random bytes: error retrieving entropy.');
check_fault($node, 'openssl', 'no generator', 'rand none', 'OpenSSL could not generate random bytes: unable to fetch drbg.');

my $shown = "SELECT available, implementation, reason FROM fast_uuid_sources() WHERE name = 'openssl'";
my $session = session_of($node);
$session->query_safe("SELECT inject_fault('rand none')");
is($session->query_safe($shown), 'f||OpenSSL could not generate random bytes: unable to fetch drbg.', 'without a generator it is not available');
$session->quit;

# OpenSSL's queue of errors: ours do not stay, others' are not ours.
$session = session_of($node);
check_working($session, 'openssl', 'before, openssl works');
is($session->query_safe('SELECT queue_openssl_error(); SELECT openssl_error_queued()'), "t\nt", 'another error is queued');
check_working($session, 'openssl', 'that is no error of ours');
is($session->query_safe('SELECT openssl_error_queued()'), 'f', 'nor is it left for the server to find');
$session->query_safe("SELECT queue_openssl_error(), inject_fault('rand 0')");
like(outcome($session, "SELECT uuidv7_fast('openssl')"),
	qr/^58000.*\|OpenSSL could not generate random bytes: error code 0\.$/, 'nor is it taken for our reason');
$session->query_safe("SELECT inject_fault('rand 2')");
like(outcome($session, "SELECT uuidv7_fast('openssl')"), qr/^58000/, 'with two errors queued it fails');
is($session->query_safe('SELECT openssl_error_queued()'), 'f', 'neither is left for the server to find');
like($session->query_safe($shown), qr/^f\|/, 'with two errors queued it is not available');
is($session->query_safe('SELECT openssl_error_queued()'), 'f', 'neither is left for the server to find');
$session->quit;

# xorshift128+ takes its seed from any strong source, and fails with the last.
SKIP:
{
	my ($code, $out, $err) = $node->psql('postgres', 'SELECT getrandom_fault(0)');
	skip 'no seccomp filter can be installed here', 1 if $code != 0;
	my $no_getrandom = 'SELECT getrandom_fault(' . EPERM . ')';

	$session = session_of($node, 'SET fast_uuid.vdso = off');
	$session->query_safe($no_getrandom);
	check_working($session, 'xorshift128+', 'without getrandom xorshift128+ is seeded all the same');
	$session->query_safe("SELECT inject_fault('rand 2')");
	check_working($session, 'xorshift128+', 'once seeded it needs no other source');
	check_working($session, 'urandom',      'without getrandom and RAND_bytes urandom works');
	$session->quit;

	$session = session_of($node, 'SET fast_uuid.vdso = off');
	$session->query_safe("$no_getrandom; SELECT inject_fault('rand 2')");
	my $unseeded = '58000|could not get random bytes from entropy source "xorshift128+"'
	  . "|Could not read the kernel's random number generator: Operation not permitted.";
	is(outcome($session, "SELECT uuidv7_fast('xorshift128+')"), $unseeded, 'without both it has no seed, and fails')
	  foreach 1 .. 2;
	$session->query_safe('SET fast_uuid.seed = 42');
	check_working($session, 'xorshift128+', 'with a seed of its own it works');
	$session->query_safe('RESET fast_uuid.seed');
	is(outcome($session, "SELECT uuidv7_fast('xorshift128+')"), $unseeded, 'without one it fails again');
	$session->query_safe("SELECT getrandom_fault(0)");
	check_working($session, 'xorshift128+', 'with getrandom back it works');
	$session->quit;
}

$session = undef;
stop_faulty_node($node);

done_testing();
