# A model of the order of an instance and of its reset, of which test/perl/StateSearch.pm
# goes through every state that its interleavings reach.
#
# A step of an actor is atomic; between two of them any other actor can take any number
# of its own.  That one read stands before another one where the code has a barrier
# between them is seen here as the order of two steps.
#
# The clock was wrong: it showed FAR, and so do the latest id and those of the sessions.
# It is right when a reset is begun ("right_from"): from then on a reading is NOW, of
# which there is only one, as on a clock that stands still; before, it is either.  That
# includes a reading that is old when it is used.
#
# The promise: an id of a call that began after the resets had returned is not FAR; nor
# is, under durable order, the upper bound; between two resets ids ascend, in a session and
# among all of the instance; and under durable order none is beyond the upper bound.

package ResetModel;

use strict;
use warnings;

use Exporter qw(import);
use List::Util qw(max);
use StateSearch;

our @EXPORT = qw(explore_reset);

use constant { NOW => 20, FAR => 100 };

# The protocol: the order of steps, and what else makes it sound.  A mutation replaces
# some of it.  To "begin" and to "end" a reset are one increment of the epoch each: it
# counts those that have begun, and those that go on.  To "mark" one is an increment
# that does not say that it goes on.
my %design = (
	reset => [qw(lock begin exchange end bound)],
	generate => [qw(clock word epoch exchange)],
	tag => 'its own',           # or 'the same', for each reset
	looks_again => 1,           # at the epoch, where the exchange has failed
	reads_clock_again => 1,     # where the epoch is another one
	forgets => 'all',           # of its own latest id and of that of session order; or 'none'
	forgets_while => 1,         # one goes on, at each look
	first_epoch => 0,           # what a session takes for known before its first entry; or 'present'
	checks_under_lock => 1);    # durable order: that the epoch is the one of the reservation

# Shared memory, and on disk; for the checks, how many resets have returned, and the
# greatest id since the latest reset.
use constant { LAST => 0, BEGUN => 1, GOING_ON => 2, LOCKED => 3, UPPER_BOUND => 4, RETURNED => 5, GREATEST => 6 };
my @shared_names = ('last', 'begun', 'going on', 'locked', 'upper_bound', 'returned', 'greatest');

# A session: its reading of the clock, what it has seen, the epoch that it knows, its
# latest id, and up to where it knows the upper bound, in that epoch.  For the checks: what
# was promised when the call began, and at its latest call.
use constant { PC => 0, CALLS => 1, SESSION_ORDER => 2, ENTERED => 3, CLOCK => 4, SEEN => 5, OWN_EPOCH => 6, LATEST => 7 };
use constant { COVERED => 8, COVERED_EPOCH => 9, RESERVED => 10, BEGAN => 11, ABOVE => 12, BEGAN_LATEST => 13, RETURNED_LATEST => 14 };
my @session_names = (
	'calls left', 'session order', 'entered', 'clock', 'seen', 'own epoch', 'latest', 'covered', 'covered epoch',
	'reserved', 'began', 'greatest when it began', 'latest when it began', 'epoch of the latest');
my @call = (SESSION_ORDER, CLOCK, SEEN, RESERVED, BEGAN, ABOVE, BEGAN_LATEST);

# A reset: what it has taken for the word.
use constant { TAG => 1 };

my (%config, %protocol, @sessions, @resets);

# The epoch is a number that never comes again: with each reset more have begun, and of
# those that go on there are fewer with each end.
sub epoch
{
	return $v[BEGUN] * 8 + $v[GOING_ON];
}

# For the checks: where a call is between two resets, a number for that; 0: nowhere.
sub between_resets
{
	my $begun = grep { $v[ $_ + PC ] } @resets;
	return $begun == $v[RETURNED] ? $begun + 1 : 0;
}

sub readings
{
	my $begun = grep { $v[ $_ + PC ] } @resets;
	return $begun >= $config{right_from} ? (NOW) : (NOW, FAR);
}

# A look at the epoch, before the next step.
sub look
{
	my ($session, $step, @changes) = @_;
	my $same = epoch() == $v[ $session + OWN_EPOCH ] && !($protocol{forgets_while} && $v[GOING_ON]);

	return becomes($session + PC, $step, @changes) if $same;
	push @changes, $session + OWN_EPOCH, epoch();
	push @changes, $session + LATEST, 0 if $protocol{forgets} eq 'all';
	return becomes($session + PC, $step, @changes) unless $protocol{reads_clock_again};
	becomes($session + PC, $step, @changes, $session + CLOCK, $_) foreach readings();
	return;
}

# The id is handed out, below that upper bound, and the next call can begin.
sub returns
{
	my ($session, $id, $upper_bound, @changes) = @_;
	my $began = $v[ $session + BEGAN ];
	my $in_session = $v[ $session + SESSION_ORDER ];
	my $left = $v[ $session + CALLS ] - 1;
	my $now = between_resets();

	# After a reset what a session has from before its first entry does not count.
	my $counts = $began && $began == $now && ($v[ $session + ENTERED ] || !$v[BEGUN]);

	push @changes, map { ($session + $_, 0) } @call;
	push @changes, $session + PC, 0, $session + CALLS, $left, $session + RETURNED_LATEST, $counts ? $now : 0;
	push @changes, map { ($session + $_, 0) } OWN_EPOCH, LATEST, COVERED, COVERED_EPOCH unless $left;
	push @changes, GREATEST, max($id, $v[GREATEST]) if $began && $began == $now && !$in_session;
	becomes(@changes);

	# A session that generates under session order alone is nobody's concern.
	return if $in_session && !$v[ $session + ENTERED ];
	return breaks("the id $id continues from before the resets") if $id >= FAR && $began > $config{right_from};
	return unless $began && $began == $now;
	breaks("the id $id is not greater than $v[ $session + ABOVE ], which had been returned") if !$in_session && $id <= $v[ $session + ABOVE ];
	breaks("the id $id is not greater than the session's latest")
	  if $v[ $session + RETURNED_LATEST ] == $now && $id <= $v[ $session + BEGAN_LATEST ];
	breaks("the id $id is beyond the upper bound $upper_bound") if $config{durable} && !$in_session && $id > $upper_bound;
	return;
}

sub begin_call
{
	my ($session) = @_;
	foreach my $in_session (0 .. ($config{session_order} ? 1 : 0))
	{
		my $began = between_resets();
		my @changes = (
			$session + SESSION_ORDER, $in_session, $session + BEGAN, $began, $session + BEGAN_LATEST, $v[ $session + LATEST ],
			$session + ABOVE, $began ? $v[GREATEST] : 0);

		# The first entry.
		push @changes, $session + ENTERED, 1 unless $in_session;
		push @changes, $session + OWN_EPOCH, epoch()
		  if !$in_session && !$v[ $session + ENTERED ] && $protocol{first_epoch} eq 'present';
		becomes(@changes, $session + CLOCK, $_, $session + PC, 1) foreach readings();
	}
	return;
}

# After the steps of "generate" come those of durable order.
sub session_steps
{
	my ($session) = @_;
	my @steps = (@{ $protocol{generate} }, 'lock', 'cover');
	my $step = $v[$session];
	my ($in_session, $entered, $clock, $seen, $latest, $reserved) =
	  @v[ map { $session + $_ } SESSION_ORDER, ENTERED, CLOCK, SEEN, LATEST, RESERVED ];

	return $v[ $session + CALLS ] ? begin_call($session) : () if $step == 0;
	my $name = $steps[$step];
	if ($in_session)
	{
		# After the look the id is taken.
		my $id = max($clock, $latest + 1);
		return look($session, 3) if $step == 1 && $entered;
		return returns($session, $id, 0, $session + LATEST, $id);
	}
	return becomes($session + SEEN, $v[LAST], $session + PC, $step + 1) if $name eq 'word';
	return look($session, $step + 1) if $name eq 'epoch';
	if ($name eq 'exchange')
	{
		my $id = max($clock, max($seen, $latest) + 1);

		# A failed exchange has read the word.
		my $again = $protocol{looks_again} ? $protocol{generate}[1] eq 'word' ? 2 : 1 : $step;
		return becomes($session + SEEN, $v[LAST], $session + PC, $again) if $seen != $v[LAST];
		my @changes = (LAST, $id, $session + LATEST, $id, $session + SEEN, 0);
		return returns($session, $id, $v[UPPER_BOUND], @changes)
		  unless $config{durable} && ($v[ $session + COVERED ] < $id || $v[ $session + COVERED_EPOCH ] != $v[ $session + OWN_EPOCH ]);
		return becomes(@changes, $session + RESERVED, $id, $session + PC, $step + 1);
	}
	return $v[LOCKED] ? () : becomes(LOCKED, 1, $session + PC, $step + 1) if $name eq 'lock';

	# Under the lock.  What does not count is reserved again.
	return becomes(LOCKED, 0, $session + RESERVED, 0, $session + PC, 1)
	  if $protocol{checks_under_lock} && epoch() != $v[ $session + OWN_EPOCH ];
	my $upper_bound = max($v[UPPER_BOUND], $reserved + 1);
	returns($session, $reserved, $upper_bound, LOCKED, 0, UPPER_BOUND, $upper_bound,
		$session + COVERED, $upper_bound, $session + COVERED_EPOCH, $v[ $session + OWN_EPOCH ]);
	return $upper_bound >= FAR && $v[RETURNED] == @resets && breaks("the upper bound is $upper_bound after the resets");
}

sub reset_steps
{
	my ($reset) = @_;
	my $step = $v[$reset];
	my @sequence = grep { $config{durable} || !/^(lock|bound)$/ } @{ $protocol{reset} };
	return if $step == @sequence;
	my $name = $sequence[$step];
	my @changes = ($reset + PC, $step + 1);
	push @changes, GREATEST, 0;
	push @changes, RETURNED, $v[RETURNED] + 1 if $step == $#sequence;

	return $v[LOCKED] ? () : becomes(LOCKED, 1, @changes) if $name eq 'lock';
	return becomes(BEGUN, $v[BEGUN] + 1, GOING_ON, $v[GOING_ON] + 1, $reset + TAG, $v[BEGUN] + 1, @changes) if $name eq 'begin';
	return becomes(BEGUN, $v[BEGUN] + 1, $reset + TAG, $v[BEGUN] + 1, @changes) if $name eq 'mark';
	return becomes(GOING_ON, $v[GOING_ON] - 1, @changes) if $name eq 'end';
	return becomes(LAST, $protocol{tag} eq 'its own' ? $v[ $reset + TAG ] : 1, @changes) if $name eq 'exchange';
	return becomes(UPPER_BOUND, NOW + 1, LOCKED, 0, @changes);
}

# Nobody waits for what does not come.
sub check_end
{
	my @left = grep { $_ } @v[ map({ $_ + CALLS } @sessions), LOCKED ];
	return @left && breaks('nothing can be done, and something is left to do');
}

# explore_reset(\%configuration, MUTATION...): how many states there are.  If the promise
# is broken the search ends with what breaks it, and a shortest way there.
sub explore_reset
{
	my ($config, %mutation) = @_;

	%config = (resets => 2, sessions => [ { calls => 2 }, { calls => 2 } ], right_from => 1, durable => 0, session_order => 0, %$config);
	%protocol = (%design, %mutation);
	@sessions = @resets = ();
	new_model();
	add_variables(\@shared_names, FAR, 0, 0, 0, FAR + 1);
	push @resets, add_actor("reset $_", undef, \&reset_steps, ['tag']) foreach 1 .. $config{resets};
	foreach my $number (1 .. @{ $config{sessions} })
	{
		my %is = (entered => 1, %{ $config{sessions}[ $number - 1 ] });

		# One that has entered has generated the latest id.
		push @sessions, add_actor("session $number", [ @{ $protocol{generate} }, 'lock', 'cover' ], \&session_steps, \@session_names,
			$is{calls}, 0, $is{entered}, 0, 0, 0, FAR);
	}
	return search(\&check_end);
}

1;
