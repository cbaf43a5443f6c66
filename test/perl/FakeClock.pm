# A server whose clock the test sets, by test/modules/preload_clock_offset.c.

package FakeClock;

use strict;
use warnings;

use Cwd qw(getcwd);
use Exporter qw(import);
use Fcntl qw(O_CREAT O_WRONLY);
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(start_with_fake_clock set_clock_offset stop_clock);

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

# $node->start, with a right clock.
sub start_with_fake_clock
{
	my ($node) = @_;
	set_clock_offset($node, 0);
	local $ENV{LD_PRELOAD}        = getcwd() . '/test/modules/preload_clock_offset.so';
	local $ENV{CLOCK_OFFSET_FILE} = $node->basedir . '/clock_offset';
	return $node->start;
}

1;
