# A server whose clock the test knows to the nanosecond, by
# test/modules/preload_known_clock.c.

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
	append_to_file($file, pack 'Qq2', (0) x 3);
	open my $handle, '+<', $file or die "could not open: $!";
	binmode $handle;
	my $self = bless { file => $handle, name => $file }, $class;
	$self->start($node);
	return $self;
}

# Start it with the clock that it had.
sub start
{
	my ($self, $node) = @_;
	local $ENV{LD_PRELOAD}       = getcwd() . '/test/modules/preload_known_clock.so';
	local $ENV{KNOWN_CLOCK_FILE} = $self->{name};
	$node->start;
	return;
}

sub fields
{
	my ($self) = @_;
	sysseek($self->{file}, 0, SEEK_SET);
	sysread($self->{file}, my $fields, 16) == 16 or die "could not read: $!";
	return unpack 'Qq', $fields;
}

sub write
{
	my ($self, @fields) = @_;
	sysseek($self->{file}, 0, SEEK_SET);
	syswrite($self->{file}, pack 'Qq', @fields) == 16 or die "could not write: $!";
	return;
}

# Put it to a time; where it stands still.
sub put
{
	my ($self, $ns) = @_;
	$self->write($ns, 0);
	return;
}

# A step, or time that passes.  Returns what it shows then.
sub step
{
	my ($self, $ns) = @_;
	my ($now, $reading) = $self->fields;
	$self->write($now + $ns, $reading);
	return $now + $ns;
}

# Each reading moves it by so many nanoseconds.
sub move
{
	my ($self, $ns) = @_;
	my ($now) = $self->fields;
	$self->write($now, $ns);
	return;
}

# From now on reading it fails with an errno; 0: no longer; below 0: it shows a second
# before 1970.
sub fail
{
	my ($self, $how) = @_;
	sysseek($self->{file}, 16, SEEK_SET);
	syswrite($self->{file}, pack 'q', $how) == 8 or die "could not write: $!";
	return;
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

# What it shows.
sub now
{
	my ($self) = @_;
	return ($self->fields)[0];
}

1;
