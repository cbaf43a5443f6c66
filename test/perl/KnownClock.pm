# A server whose clock the test knows to the nanosecond, by
# test/modules/preload_known_clock.c; and the nanoseconds in UUIDs.

package KnownClock;

use strict;
use warnings;

use Cwd qw(getcwd);
use Fcntl qw(SEEK_SET);
use PostgreSQL::Test::Utils;

# The clock of a node, which is started with it.
sub new
{
	my ($class, $node) = @_;
	my $file = $node->basedir . '/clock';
	append_to_file($file, pack 'Qq3', (0) x 4);
	open my $handle, '+<:raw', $file or die "could not open: $!";
	my $self = bless { file => $handle, name => $file }, $class;
	$self->start($node);
	return $self;
}

# Start it with the clock that it had.
sub start
{
	my ($self, $node) = @_;
	local $ENV{LD_PRELOAD} = getcwd() . '/test/modules/preload_known_clock.so';
	local $ENV{KNOWN_CLOCK_FILE} = $self->{name};
	$node->start;
	return;
}

sub write
{
	my ($self, $at, $bytes) = @_;
	sysseek($self->{file}, $at, SEEK_SET);
	syswrite($self->{file}, $bytes) == length $bytes or die "could not write: $!";
	return;
}

# Put it to a time.  There it stands still, or each reading moves it by so many nanoseconds.
sub put
{
	my ($self, $ns, $move) = @_;
	return $self->write(0, pack 'Qq', $ns, $move // 0);
}

# What it shows.
sub now
{
	my ($self) = @_;
	sysseek($self->{file}, 0, SEEK_SET);
	sysread($self->{file}, my $now, 8) == 8 or die "could not read: $!";
	return unpack 'Q', $now;
}

# A step, or time that passes.
sub step
{
	my ($self, $ns) = @_;
	return $self->write(0, pack 'Q', $self->now + $ns);
}

# From now on reading it fails with an errno; 0: no longer; below 0: it shows a second
# before 1970.
sub fail
{
	my ($self, $how) = @_;
	return $self->write(16, pack 'q', $how);
}

# The clock that nobody can set stands still at a nanosecond; 0: it goes on.
sub stop_monotonic
{
	my ($self, $ns) = @_;
	return $self->write(24, pack 'q', $ns);
}

# The nanosecond of a UUID that this extension has generated.
sub ns_of
{
	my ($id) = @_;
	my ($high, $low) = unpack 'Q> Q>', pack 'H*', $id =~ s/-//gr;
	my $fraction = ($high & 0xFFF) << 8 | ($low >> 54 & 0xFF);
	return ($high >> 16) * 1_000_000 + ($fraction * 1_000_000 + (1 << 20) - 1 >> 20);
}

# A UUID of a nanosecond, with the fraction that this extension stores, and what follows it.
sub uuid_of
{
	my ($ns, $rest) = @_;
	my $sub_ns = $ns % 1_000_000;
	my $fraction = int(($sub_ns << 20) / 1_000_000);
	my $high = sprintf '%012x7%03x', ($ns - $sub_ns) / 1_000_000, $fraction >> 8;
	my $low = sprintf '%016x', 1 << 63 | ($fraction & 255) << 54 | $rest;
	return "$high$low" =~ s/^(.{8})(....)(....)(....)/$1-$2-$3-$4-/r;
}

1;
