# A server whose clock the test sets, by test/modules/preload_clock_offset.c; how one
# incarnation of it ends, and how the next begins.

package FakeClock;

use strict;
use warnings;

use Cwd qw(getcwd);
use Exporter qw(import);
use Fcntl qw(O_CREAT O_WRONLY);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(start_with_fake_clock set_clock_offset stop_clock end_incarnation
  begin_incarnation);

sub set_clock
{
	my ($node, $ahead, $stands_at) = @_;
	sysopen(my $file, $node->basedir . '/clock_offset', O_CREAT | O_WRONLY)
	  or die "could not open: $!";
	syswrite($file, pack('q2', 1e9 * $ahead, 1e9 * $stands_at)) == 16
	  or die "could not write: $!";
	close($file);
	return;
}

# Seconds ('+0', '-3600') that the clock of the node, existing sessions included, differs
# from the true time.
sub set_clock_offset
{
	my ($node, $seconds) = @_;
	return set_clock($node, $seconds, 0);
}

# It stands still at a second since 1970.
sub stop_clock
{
	my ($node, $second) = @_;
	return set_clock($node, 0, $second);
}

# $node->start, with the clock that was set last if keep_clock => 1, else with a right one.
sub start_with_fake_clock
{
	my ($node, %params) = @_;
	set_clock_offset($node, 0) unless delete $params{keep_clock};
	local $ENV{LD_PRELOAD}        = getcwd() . '/test/modules/preload_clock_offset.so';
	local $ENV{CLOCK_OFFSET_FILE} = $node->basedir . '/clock_offset';
	return $node->start(%params);
}

# end_incarnation($node, WAY): 'fast', 'immediate', or 'SIGKILL' of the postmaster
sub end_incarnation
{
	my ($node, $way) = @_;
	return $way eq 'SIGKILL' ? $node->kill9 : $node->stop($way);
}

# Start the server, with the clock that was set for it.  After SIGKILL of the postmaster that
# fails until its children have noticed.
sub begin_incarnation
{
	my ($node) = @_;

	foreach (1 .. 10 * $PostgreSQL::Test::Utils::timeout_default)
	{
		$node->{_pid} = undef;
		return if start_with_fake_clock($node, keep_clock => 1, fail_ok => 1);
		usleep(20_000);
	}
	die 'the server does not start';
	return;
}

1;
