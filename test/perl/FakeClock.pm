# A server whose clock the test sets, by libfaketime.

package FakeClock;

use strict;
use warnings;

use Exporter qw(import);
use POSIX qw(floor strftime);
use PostgreSQL::Test::Utils;
use Test::More;

our @EXPORT = qw(require_fake_clock fake_clock_installed start_with_fake_clock set_clock_offset freeze_clock freeze_clock_at);

my ($library) = glob('/usr/lib/*/faketime/libfaketime.so.1 /usr/lib*/faketime/libfaketime.so.1');

sub require_fake_clock
{
	plan skip_all => 'libfaketime is not installed' unless defined $library;
	return;
}

sub fake_clock_installed
{
	return defined $library;
}

# Seconds ('+0', '-3600') that the clock of the node, existing sessions included,
# differs from the true time.
sub set_clock_offset
{
	my ($node, $seconds) = @_;
	my $file = $node->basedir . '/faketime';

	# The server must never read a file half written.
	unlink("$file.new");
	append_to_file("$file.new", "$seconds\n");
	rename("$file.new", $file) or die "could not rename: $!";
	return;
}

# Let the clock stand still at this time, such as '2031-02-03 04:05:06'.
sub freeze_clock
{
	my ($node, $time) = @_;
	return set_clock_offset($node, $time);
}

# The same for seconds since 1970, to the millisecond.
sub freeze_clock_at
{
	my ($node, $seconds) = @_;
	my $ms = floor($seconds * 1000 + 0.5);
	return freeze_clock($node, strftime('%Y-%m-%d %H:%M:%S', localtime(floor($ms / 1000))) . sprintf('.%03d', $ms % 1000));
}

# $node->start, with the clock that was set last if keep_clock => 1, else with a
# right one.
sub start_with_fake_clock
{
	my ($node, %params) = @_;
	set_clock_offset($node, '+0') unless delete $params{keep_clock};
	local $ENV{LD_PRELOAD}                   = $library;
	local $ENV{FAKETIME_TIMESTAMP_FILE}      = $node->basedir . '/faketime';
	local $ENV{FAKETIME_NO_CACHE}            = 1;
	local $ENV{FAKETIME_DONT_FAKE_MONOTONIC} = 1;
	return $node->start(%params);
}

1;
