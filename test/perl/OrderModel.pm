# A model of the order that doc/ordering.md promises, in nanoseconds since 1970.
#
# Whatever a call can tell no more than roughly is an interval, [from, to]: the
# clock of a moment between two readings; a latest value that nobody has seen.
# Where the clock stands still between the readings, everything is exact.

package OrderModel;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT_OK = qw(max min);

my $ms = 1_000_000;
my $s  = 1000 * $ms;

# Those of List::Util compare as floating-point numbers, which have no nanoseconds.
sub max { my $most  = shift; foreach (@_) { $most  = $_ if $_ > $most } return $most }
sub min { my $least = shift; foreach (@_) { $least = $_ if $_ < $least } return $least }

# What is known of one scope: the latest nanosecond, [0, 0] where there is none; the
# smallest UUID that is smaller than the next; the largest lead that a call has found.
sub new_scope
{
	return (last => [ 0, 0 ], above => '', largest => [ 0, 0 ]);
}

sub new
{
	my ($class) = @_;
	return bless { instance => {new_scope()}, sessions => [] }, $class;
}

# A session has generated under the order of the instance (entered), and not since its
# latest reset (stale): 0, 1, or 2, which is nobody's word.
sub new_session
{
	my ($self) = @_;
	my $session = { new_scope(), entered => 0, stale => 0 };
	push @{ $self->{sessions} }, $session;
	return $session;
}

sub forget_session
{
	my ($self, $session) = @_;
	@{ $self->{sessions} } = grep { $_ != $session } @{ $self->{sessions} };
	return;
}

sub lead
{
	my ($last, $clock) = @_;
	return [ max(0, $last->[0] - $clock->[1]), max(0, $last->[1] - $clock->[0]) ];
}

# The latest value does not count any more; with 2, perhaps.
sub forget
{
	my ($scope, $certainty) = @_;
	return unless $certainty;
	$scope->{$_}[0] = 0 foreach 'last', 'largest';
	$certainty == 1 and $scope->{$_}[1] = 0 foreach 'last', 'largest';
	$scope->{above} = '';
	return;
}

# A call finds this lead; one of less than a millisecond need not be noted.
sub look
{
	my ($scope, $lead) = @_;
	$scope->{largest}[0] = max($scope->{largest}[0], $lead->[0]) if $lead->[0] >= $ms;
	$scope->{largest}[1] = max($scope->{largest}[1], $lead->[1]);
	return;
}

# What a session has in mind when it is about to generate, by a call that may not
# come so far ($tries).  There was a reset before all (OrderWorld.pm): at its first entry
# it forgets.
sub arrive
{
	my ($self, $session, $ordering, $tries) = @_;
	forget($session, $session->{stale});
	$session->{stale} = 0;
	return if $ordering eq 'session' || $session->{entered} == 1;
	forget($session, $session->{entered} == 2 || $tries ? 2 : 1);
	$session->{entered} = $tries ? 2 : 1;
	return;
}

# The latest value that the next one has to exceed.
sub latest
{
	my ($self, $session, $ordering) = @_;
	my ($own, $all) = ($session->{last}, $self->{instance}{last});
	return $ordering eq 'session' ? $own : [ max($own->[0], $all->[0]), max($own->[1], $all->[1]) ];
}

# Is the limit exceeded by a value $count nanoseconds after the latest: 0, 1, or 2?
sub exceeds
{
	my ($last, $count, $clock, $limit) = @_;
	return 0 if $limit < 0;
	my @leads  = map { $last->[$_] >= $clock->[ 1 - $_ ] ? $last->[$_] + $count - $clock->[ 1 - $_ ] : 0 } 0, 1;
	my @beyond = map { $_ >= $ms && $_ > $limit * $ms } @leads;
	return $beyond[0] ? 1 : $beyond[1] ? 2 : 0;
}

# The first of the nanoseconds that are reserved next.
sub next_of
{
	my ($last, $clock) = @_;
	return [ max($clock->[0], $last->[0] + 1), max($clock->[1], $last->[1] + 1) ];
}

# Look at the clock before a reservation, whatever comes of it.
sub look_before
{
	my ($self, $session, $ordering, $clock) = @_;
	look($_, lead($_->{last}, $clock)) foreach $session, $ordering eq 'session' ? () : $self->{instance};
	return;
}

# These nanoseconds, from the first on, are taken.
sub reserve
{
	my ($self, $session, $ordering, $first, $count) = @_;
	my $last = [ map { $_ + $count - 1 } @$first ];
	$_->{last} = [@$last] foreach $session, $ordering eq 'session' ? () : $self->{instance};
	return;
}

# Is a UUID of this nanosecond too far ahead for fast_uuid_observe(): 0, 1, or 2?
sub refuses_to_observe
{
	my ($clock, $limit, $ns) = @_;
	return exceeds([ $ns - 1, $ns - 1 ], 1, $clock, $limit < 0 ? 1000 : $limit);
}

sub observe
{
	my ($self, $session, $ordering, $id, $ns) = @_;
	$self->arrive($session, $ordering);
	foreach my $scope ($session, $ordering eq 'session' ? () : $self->{instance})
	{
		if ($ns > $scope->{last}[0])
		{
			$scope->{last} = [ $ns, max($ns, $scope->{last}[1]) ];
		}
		$scope->{above} = $id if $id gt $scope->{above};
	}
	return;
}

# uuidv7_fast_watermark() lets nothing be generated behind the clock.
sub raise_to_clock
{
	my ($self, $clock) = @_;
	my $all = $self->{instance};
	$all->{last} = [ map { max($all->{last}[$_], $clock->[$_]) } 0, 1 ];
	return;
}

# fast_uuid_reset_ordering().
sub reset
{
	my ($self, $session, $ordering) = @_;
	if ($ordering ne 'session')
	{
		forget($self->{instance}, 1);
		foreach my $each (@{ $self->{sessions} })
		{
			$each->{stale} = $each->{entered} if $each->{entered} && $each->{stale} != 1;
		}
	}
	forget($session, 1);
	$session->{stale} = 0;
	return;
}

# What is wrong with a row of fast_uuid_stats(), in microseconds; '': nothing.
sub wrong_stats
{
	my ($self, $scope, $clock, $lead_us, $largest_us) = @_;
	my $lead = lead($scope->{last}, $clock);
	$lead->[0] = 0 if $scope->{stale};
	my $largest = [ max($scope->{stale} ? 0 : $scope->{largest}[0], $lead->[0]), max($scope->{largest}[1], $lead->[1]) ];
	my $differs = sub { $_[0] < int($_[1][0] / 1000) || $_[0] > int($_[1][1] / 1000) };
	return "clock_lead is $lead_us us, not @{[ span($lead) ]} ns" if $differs->($lead_us, $lead);
	return "largest_clock_lead is $largest_us us, not @{[ span($largest) ]} ns" if $differs->($largest_us, $largest);
	return '';
}

sub span
{
	my ($interval) = @_;
	return $interval->[0] == $interval->[1] ? $interval->[0] : "from $interval->[0] to $interval->[1]";
}

1;
