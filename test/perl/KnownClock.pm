# A server whose clock the test knows to the nanosecond, by
# test/modules/preload_known_clock.c.

package KnownClock;

use strict;
use warnings;

use Cwd qw(getcwd);
use Fcntl qw(SEEK_SET);
use PostgreSQL::Test::Utils;

# The clock of a node, which is started with it; %more: what set() takes.
sub new
{
	my ($class, $node, %more) = @_;
	my $file = $node->basedir . '/clock';
	append_to_file($file, pack 'q3', (0) x 3);
	open my $handle, '+<', $file or die "could not open: $!";
	binmode $handle;
	my $self = bless { file => $handle }, $class;
	$self->set(%more);
	local $ENV{LD_PRELOAD}       = getcwd() . '/test/modules/preload_known_clock.so';
	local $ENV{KNOWN_CLOCK_FILE} = $file;
	$node->start;
	return $self;
}

sub fields
{
	my ($self) = @_;
	sysseek($self->{file}, 0, SEEK_SET);
	sysread($self->{file}, my $fields, 16) == 16 or die "could not read: $!";
	return unpack 'q2', $fields;
}

sub write
{
	my ($self, @fields) = @_;
	sysseek($self->{file}, 0, SEEK_SET);
	syswrite($self->{file}, pack 'q2', @fields) == 16 or die "could not write: $!";
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

# What else there is of it, as the module says.
my %place = (now => 0, fails => 2);

sub set
{
	my ($self, %values) = @_;
	foreach my $name (keys %values)
	{
		sysseek($self->{file}, 8 * $place{$name}, SEEK_SET);
		syswrite($self->{file}, pack 'q', $values{$name}) == 8 or die "could not write: $!";
	}
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

# What it shows.
sub now
{
	my ($self) = @_;
	return ($self->fields)[0];
}

1;
