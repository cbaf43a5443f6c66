# A kernel whose random number generator is not seeded yet: no source delivers
# by it, none waits for it, and all work once it is.

use strict;
use warnings;

use Errno qw(EAGAIN ENOSYS EPERM);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('unseeded', preload => 1);
my ($code, $out, $err) = $node->psql('postgres', 'SELECT getrandom_fault(0)');
if ($code != 0)
{
	$node->stop;
	plan skip_all => "no seccomp filter can be installed here: $err";
}

my $not_seeded = "The kernel's random number generator is not seeded yet.";
my $refilled   = "SELECT sum(refills) FROM fast_uuid_sources()";

# The error of a source in a session of such a kernel.
sub refusal
{
	my ($source, $why) = @_;
	return "58000|could not get random bytes from entropy source \"$source\"|$why";
}

# In a session that has asked no source yet.  start and stop: SQL expressions
# that bring the fault and lift it; settings: SQL for the session.
sub check
{
	my ($name, $source, $why, %fault) = @_;
	my $session = session_of($node, $fault{settings});
	$session->query_safe("SELECT $fault{start}");
	is(outcome($session, "SELECT uuidv7_fast('$source')"), refusal($source, $why), "$name: $source fails") foreach 1 .. 2;
	is($session->query_safe("SELECT coalesce(reason, 'none') FROM fast_uuid_sources() WHERE name = '$source'"),
		$why, "$name: the reason why $source is not available");
	is($session->query_safe($refilled), 0, "$name: no source is drawn from");
	$session->query_safe("SELECT $fault{stop}");
	check_working($session, $source, "$name: $source works afterwards");
	$session->quit;
	return;
}

foreach my $vdso ('on', 'off')
{
	foreach my $source (sources())
	{
		check(
			"vdso $vdso, getrandom would wait", $source, $not_seeded,
			settings => "SET fast_uuid.vdso = $vdso",
			start    => 'getrandom_fault(' . EAGAIN . ')',
			stop     => 'getrandom_fault(0)');
	}
}

# The seed of a user needs no kernel.
my $session = session_of($node);
$session->query_safe('SELECT getrandom_fault(' . EAGAIN . "); SET fast_uuid.seed = '42'");
check_working($session, 'xorshift128+', 'a seeded xorshift128+ needs no kernel');
$session->quit;

# Where getrandom is forbidden nothing is known of the seed, and the others work.
foreach my $errno (EPERM, ENOSYS)
{
	$session = session_of($node, 'SET fast_uuid.vdso = off');
	$session->query_safe("SELECT getrandom_fault($errno)");
	check_working($session, $_, reason($errno) . ": $_ works") foreach grep { $_ ne 'getrandom' } sources();
	$session->quit;
}

stop_faulty_node($node);
done_testing();
