# A session that speaks the frontend/backend protocol itself, so that a test can
# put any setting into the startup packet and see every error and notice.

package RawSession;

use strict;
use warnings;

use IO::Select;
use IO::Socket::UNIX;
use PostgreSQL::Test::Utils;

# connect(NODE, KEY => VALUE...): of the server's owner in database postgres, if the keys,
# which go into the startup packet, name no other "user" or "database".  Where the server
# refuses, the session has only {error}.
sub connect
{
	my ($class, $node, @parameters) = @_;
	my %parameters = (user => scalar(getpwuid $>), database => 'postgres', @parameters);
	my $self = bless { error => '', notices => [] }, $class;
	$self->{socket} = IO::Socket::UNIX->new($node->host . '/.s.PGSQL.' . $node->port)
	  or die "could not connect: $!";

	# version 3.0 of the protocol
	my $packet = pack('N', 3 << 16);
	$packet .= "$_\0$parameters{$_}\0" foreach sort keys %parameters;
	$self->{socket}->print(pack('N', 5 + length $packet) . "$packet\0");
	$self->{socket}->flush;
	$self->until_ready;
	return $self;
}

# start(NODE, STATEMENT...): a session that has run these.
sub start
{
	my ($class, $node, @statements) = @_;
	my $self = $class->connect($node);
	$self->query_safe($_) foreach @statements;
	return $self;
}

# The type of the next message, and its body; '' where the server has closed the connection.
sub message
{
	my ($self) = @_;
	my $body = '';
	my $got = $self->{socket}->read(my $header, 5) // 0;
	return ('', '') if $got < 5;
	my ($type, $length) = unpack 'a N', $header;
	$got = $self->{socket}->read($body, $length - 4) // 0 if $length > 4;
	return $got < $length - 4 ? ('', '') : ($type, $body);
}

# The fields of an error or notice, by their letters.
sub fields
{
	my ($body) = @_;
	return { map { substr($_, 0, 1) => substr($_, 1) } grep { length } split /\0/, $body };
}

# Collect rows (of one column) until the server waits for a query; the first error
# stands in {error} as "SQLSTATE message|detail|hint", the server's process in {pid}.
sub until_ready
{
	my ($self) = @_;
	my @rows;
	$self->{error} = '';
	while (1)
	{
		my ($type, $body) = $self->message;
		$self->{closed} = 1 if $type eq '';
		last if $type =~ /^Z?$/;
		if ($type eq 'E' && $self->{error} eq '')
		{
			my $fields = fields($body);
			$self->{error} = "$fields->{C} " . join('|', map { $fields->{$_} // '' } qw(M D H));
		}
		$self->{pid} = unpack('N', $body) if $type eq 'K';
		push @{ $self->{notices} }, fields($body)->{M} if $type eq 'N';
		if ($type eq 'D')
		{
			my ($columns, $length) = unpack 'n N', $body;
			my $is_null = !$columns || $length == 0xFFFFFFFF;
			push @rows, $is_null ? '' : substr $body, 6, $length;
		}
	}
	return @rows;
}

# Run statements, and do not wait for what comes of them.
sub send
{
	my ($self, $sql) = @_;
	return $self->{closed} ? undef : $self->flood($sql, 1);
}

# Run a statement so often, and read nothing.
sub flood
{
	my ($self, $sql, $times) = @_;
	my $message = 'Q' . pack('N', 5 + length $sql) . "$sql\0";
	$self->{socket}->print($message x $times);
	return $self->{socket}->flush;
}

# Run statements in a pipeline: by the extended protocol, with one Sync for all of them.
sub pipeline
{
	my ($self, @statements) = @_;
	foreach my $sql (@statements)
	{
		my %messages = (P => "\0$sql\0" . pack('n', 0), B => "\0\0" . pack('n3', 0, 0, 0),
			E => "\0" . pack('N', 0));
		$self->{socket}->print($_ . pack('N', 4 + length $messages{$_}) . $messages{$_})
		  foreach qw(P B E);
	}
	$self->{socket}->print('S' . pack('N', 4));
	$self->{socket}->flush;
	return $self->receive;
}

# Has something come of them?
sub has_answer
{
	my ($self) = @_;
	return IO::Select->new($self->{socket})->can_read(0);
}

# What has: rows as lines.
sub receive
{
	my ($self) = @_;
	return join "\n", $self->until_ready unless $self->{closed};
	$self->{error} ||= 'closed';
	return '';
}

sub query
{
	my ($self, $sql) = @_;
	$self->send($sql);
	return $self->receive;
}

# What came of statements: "value ROWS" or the SQLSTATE of the error.
sub outcome
{
	my ($self, $sql) = @_;
	my $rows = $self->query($sql);
	return $self->{error} eq '' ? "value $rows" : substr($self->{error}, 0, 5);
}

# The rows of what must succeed; else the test ends.
sub query_safe
{
	my ($self, $sql) = @_;
	my $rows = $self->query($sql);
	die "$sql: $self->{error}\n" if $self->{error} ne '';
	return $rows;
}

# Anonymous memory of the server's process, in kB.
sub memory
{
	my ($self) = @_;
	my ($kb) = slurp_file("/proc/$self->{pid}/status") =~ /^RssAnon:\s+(\d+) kB/m
	  or die "no RssAnon in /proc\n";
	return $kb;
}

# Ask the server's process to end.
sub leave
{
	my ($self) = @_;
	$self->{socket}->print('X' . pack('N', 4)) unless $self->{closed};
	return $self->{socket}->flush;
}

# Returns when it has ended.
sub quit
{
	my ($self) = @_;
	$self->leave;
	1 while ($self->message)[0] ne '';
	return $self->{socket}->close;
}

1;
