# A server whose clock the test sets, by libfaketime; how one incarnation of it ends, and how
# the next begins.

package FakeClock;

use strict;
use warnings;

use Exporter qw(import);
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

our @EXPORT = qw(require_fake_clock fake_clock_installed start_with_fake_clock set_clock_offset
  end_incarnation begin_incarnation);

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
