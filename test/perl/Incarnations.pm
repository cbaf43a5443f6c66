# A server's incarnations: how one ends, and how the next begins.

package Incarnations;

use strict;
use warnings;

use Exporter qw(import);
use FakeClock;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(end_incarnation begin_incarnation);

# end_incarnation($node, WAY): 'fast', 'immediate', or 'SIGKILL' of the postmaster
sub end_incarnation
{
	my ($node, $way) = @_;
	return $way eq 'SIGKILL' ? $node->kill9 : $node->stop($way);
}

# Start the server, with the clock that was set for it.  After SIGKILL of the
# postmaster that fails until its children have noticed.
sub begin_incarnation
{
	my ($node) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$node->{_pid} = undef;
		return if start_with_fake_clock($node, keep_clock => 1, fail_ok => 1);
		usleep(20_000);
	}
	BAIL_OUT('the server does not start');
	return;
}

1;
