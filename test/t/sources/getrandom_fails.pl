# getrandom fails in an existing session, by a seccomp filter: as a system call,
# and where the vDSO has to make one.

use strict;
use warnings;

use Errno qw(EINTR ENOSYS EPERM);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('getrandom');
my ($code, $out, $err) = $node->psql('postgres', 'SELECT getrandom_fault(0)');
if ($code != 0)
{
	$node->stop;
	plan skip_all => "no seccomp filter can be installed here: $err";
}
my $has_vdso = $node->safe_psql('postgres',
	"SELECT implementation = 'vDSO' FROM fast_uuid_sources() WHERE name = 'getrandom'") eq 't';

foreach my $errno (ENOSYS, EPERM, EINTR)
{
	my $why  = "Could not read the kernel's random number generator: " . reason($errno) . '.';
	my $name = reason($errno);
	my %fault = (
		source => 'getrandom',
		stop   => 'getrandom_fault(0)',
		why    => $why,
		# Each of these is a hundred system calls.
		more   => $errno == EINTR ? 1000 : 10_000);

	check_failing(
		$node, "system call, $name", %fault,
		settings => 'SET fast_uuid.vdso = off',
		start    => "getrandom_fault($errno)");
  SKIP:
	{
		skip 'this kernel has no getrandom in its vDSO', 1 unless $has_vdso;
		check_failing($node, "vDSO, $name", %fault, start => "getrandom_fault($errno) AND drop_vdso_state()");
	}
}

# What is no fault: a request that a signal interrupts, or that delivers less.
foreach my $vdso ('off', 'on')
{
	my $session = session_of($node, "SET fast_uuid.vdso = $vdso");
	is(outcome($session, 'SELECT getrandom_fault(' . EINTR . ", 5) AND uuidv7_fast('getrandom') IS NOT NULL"),
		'value true', "vdso $vdso: a request that is interrupted five times is repeated");

	$session->query_safe('SET fast_uuid.buffer_size = 4096; SELECT getrandom_short(3)');
	check_working($session, 'getrandom', "vdso $vdso: a request that delivers 3 bytes is continued");
	$session->quit;
}

stop_faulty_node($node);
done_testing();
