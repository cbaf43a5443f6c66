# The commands of OrderWorld.pm: which is next, and those that do not generate
# themselves but have a say in the order.  A command is [session, kind, arguments].

package OrderCommands;

use strict;
use warnings;

use OrderCalls;
use OrderModel qw(max min);
use RandomHistory;

our @ISA = ('OrderCalls');

my ($ms, $s) = (1_000_000, 1_000_000_000);

my %values = (
	ordering          => [ 'session', 'instance' ],
	required_ordering => [ 'session', 'instance' ],
	max_clock_lead    => [ -1, -1, 0, 1, 5, 1000, 3_600_000 ],
	source            => [ 'openssl', 'getrandom', 'urandom', 'xorshift128+' ],
	buffer_size       => [ 0, 8, 16, 64, 4096 ]);

# How likely each kind is, while a transaction is idle, open, or failed.
my %weights = (
	single    => [ 12, 10, 1 ],
	shift     => [ 2,  2,  0 ],
	array     => [ 5,  4,  0 ],
	list      => [ 5,  4,  0 ],
	limited   => [ 3,  3,  0 ],
	broken    => [ 2,  1,  0 ],
	in_vain   => [ 2,  2,  0 ],
	in_order  => [ 4,  3,  0 ],
	at        => [ 1,  1,  0 ],
	wrong     => [ 2,  1,  1 ],
	parallel  => [ 1,  1,  0 ],
	declare   => [ 1,  14, 0 ],
	fetch     => [ 3,  40, 1 ],
	set       => [ 8,  10, 1 ],
	control   => [ 16, 10, 10 ],
	reset     => [ 4,  3,  0 ],
	observe   => [ 2,  2,  0 ],
	watermark => [ 2,  2,  0 ],
	clock     => [ 12, 12, 2 ],
	reconnect => [ 2,  1,  1 ]);

# The kinds of this world: some are missing, so that they do not stand in the way of
# what the others show.
sub kinds
{
	my ($self, $random) = @_;
	my $always = qr/^(single|set|control|clock|declare|fetch)$/;
	$self->{kinds} //= [ grep { $self->{has}{$_} // 1 and /$always/ || chance($random, 70) } sort keys %weights ];
	return @{ $self->{kinds} };
}

sub choose
{
	my ($self, $random) = @_;
	my $number  = $random->(scalar @{ $self->{sessions} });
	my $session = $self->{sessions}[$number];
	my $column  = { idle => 0, open => 1, failed => 2 }->{ $session->{state}{status} };
	my $kind    = one_of($random, map { ($_) x $weights{$_}[$column] } $self->kinds($random));
	my $choose  = "choose_$kind";
	return [ $number, $kind, $self->$choose($random, $session) ];
}

sub perform
{
	my ($self, $command) = @_;
	my ($number, $kind, @arguments) = @$command;
	my $do = "do_$kind";
	$self->{acting} = $number;
	$self->$do($self->{sessions}[$number], @arguments);
	delete $self->{sessions}[$number]{first_ns} if $self->{sessions}[$number]{state}{status} eq 'idle';
	$self->check_stats($self->{sessions}[$number]);
	return;
}

sub choose_set
{
	my ($self, $random) = @_;
	my $name  = one_of($random, 'ordering', 'ordering', 'max_clock_lead', grep { $self->{has}{$_} // 1 } sort keys %values);
	my $value = chance($random, 20) ? undef : one_of($random, @{ $values{$name} });
	return ($name, $value, one_of($random, 'SET', 'SET LOCAL', 'set_config'), $random->(2));
}

sub do_set
{
	my ($self, $session, $name, $value, $how, $local) = @_;
	my $state = $session->{state};
	$local = $how eq 'SET LOCAL' if $how ne 'set_config' || !defined $value;
	my $refused = $state->refuses('SET');
	my $sql = !defined $value ? ($local ? "SET LOCAL fast_uuid.$name TO DEFAULT" : "RESET fast_uuid.$name")
	  : $how eq 'set_config' ? "SELECT set_config('fast_uuid.$name', '$value', " . ($local ? 'true)' : 'false)')
	  : "$how fast_uuid.$name = '$value'";
	$self->run($session, $sql, $refused);
	$state->set($name, $value, $local) unless $refused;
	return;
}

sub choose_control { my (undef, $random, $session) = @_; return $session->{state}->choose_control($random, 30) }

sub do_control
{
	my ($self, $session, $verb, $name) = @_;
	my $named   = $verb =~ /SAVEPOINT|RELEASE|TO/;
	my $refused = $session->{state}->refuses($verb, $name);
	return $self->end_holding($session, 'COMMIT') if $verb eq 'COMMIT' && $session->{state}{status} eq 'open';
	$self->run($session, $verb . ($named ? " $name" : ''), $refused);
	$session->{state}->control($verb, $name) unless $refused;
	return;
}

sub choose_reset { return }

sub do_reset
{
	my ($self, $session) = @_;
	my $refused = $session->{state}->refuses('SELECT');
	$self->run($session, 'SELECT fast_uuid_reset_ordering()', $refused);
	return if $refused;
	$self->{model}->reset($session->{order}, $self->ordering($session));
	return;
}

# A UUID of another server, or generator, ahead of the clock by this.
sub choose_observe
{
	my (undef, $random) = @_;
	my $ahead = one_of($random, -$s, 1, 500_000, 999_999, $ms, 5 * $ms, 900 * $ms, 1001 * $ms, 3600 * $s);
	return ($ahead, $random->(1 << 20), $random->(2));
}

sub do_observe
{
	my ($self, $session, $ahead, $fraction, $ours) = @_;
	my $ns = $self->{clock}->now + $ahead;
	$fraction = int((($ns % $ms) << 20) / $ms) if $ours;
	my $unix_ms = ($ns - $ns % $ms) / $ms;
	my $id = sprintf '%08x-%04x-7%03x-%04x-ffffffffffff', $unix_ms >> 16, $unix_ms & 0xFFFF, $fraction >> 8,
	  0x8000 | ($fraction & 0xFF) << 6 | 0x3F;

	# The last nanosecond whose UUID is not greater.
	$ns += int((($fraction + 1) * $ms + (1 << 20) - 1) / (1 << 20)) - 1 - $ns % $ms;
	my $sql     = "SELECT fast_uuid_observe('$id')";
	my $refused = $session->{state}->refuses('SELECT');
	return $self->run($session, $sql, $refused) if $refused;
	my ($clock, $state) = $self->query($session, $sql);
	my $error = OrderModel::refuses_to_observe($clock, $self->in_force($session, 'max_clock_lead'), $ns);
	differs('outcome: observe', "$sql: " . ($state || 'no error'))
	  if $state ne '' && $state ne '22023' || $error == ($state eq '' ? 1 : 0);
	$self->{model}->observe($session->{order}, $self->ordering($session), $id, $ns) if !$state;
	$session->{state}->fail if $state;
	$self->tally('observe', $state);
	return;
}

# No later value of the instance is below the watermark, nor is one of a transaction
# that has not ended; and while there is none, nothing else holds it back.
sub choose_watermark { return }

sub do_watermark
{
	my ($self, $session) = @_;
	my $sql     = 'SELECT uuidv7_fast_watermark()';
	my $refused = $session->{state}->refuses('SELECT');
	return $self->run($session, $sql, $refused) if $refused;
	my ($clock, $state, $watermark) = $self->query($session, $sql);
	differs('outcome: watermark', "$sql: $state") if $state;
	$self->{model}->raise_to_clock($clock);
	my $instance = $self->{model}{instance};
	my $ns       = OrderWorld::ns_of($watermark);
	my @open = grep { $_->{state}{status} ne 'idle' } @{ $self->{sessions} };
	disagrees('watermark: held back', "watermark $watermark, but no transaction goes on")
	  if !@open && $ns <= $instance->{last}[0];
	foreach my $first (grep { defined } map { $_->{first_ns} } grep { $_->{state}{status} eq 'open' } @open)
	{
		disagrees('watermark: beyond', "watermark $watermark, but a transaction goes on that has $first") if $ns > $first;
	}
	$instance->{above} = $watermark if $watermark gt $instance->{above};
	return;
}

# The clock: a step in either direction, or how much each reading moves it.
sub choose_clock
{
	my (undef, $random) = @_;
	my $size = one_of($random, 1, 300, 300_000, $ms - 1, $ms, 5 * $ms, $s, $s + 1, 60 * $s, 3600 * $s, 86_400 * $s);
	return one_of($random, 0, 1) ? ('step', $size)
	  : chance($random, 15) ? ('move', one_of($random, 0, 0, 1, 50, 3000, 400_000, -50))
	  : ('step', one_of($random, $size, -$size));
}

sub do_clock
{
	my ($self, undef, $how, $ns) = @_;
	my $shows = $self->{clock}->$how($ns);
	$self->log($how eq 'move' ? "each reading moves the clock by $ns ns" : "clock: $ns ns $how, it shows $shows");
	return;
}

sub choose_reconnect { my (undef, $random) = @_; return one_of($random, 'session', 'instance') }

sub do_reconnect
{
	my ($self, undef, $ordering) = @_;
	$self->connect_session($self->{acting}, $ordering);
	$self->log("session $self->{acting}: a new one, with fast_uuid.ordering = $ordering from the connection");
	return;
}

1;
