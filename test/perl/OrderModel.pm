# What statements of several sessions must give, computed from what the documents say of
# keys and feeds, the watermark, the guard, the leads and the upper bound: each nanosecond,
# and each reading of the clock.  One statement is over before the next begins, so nothing here
# knows of shared memory or locks.

package OrderModel;

use strict;
use warnings;

use Exporter qw(import);

our @EXPORT = qw(%clock %prepared begin_server begin_session end_session statement commit
  prepare finish take take_array take_for_feed observe_for_feed guard set_bound
  reset_feed watermark count_ended stats);

use constant { MS => 1_000_000, SECOND => 1_000_000_000, CHUNK => 256 };

# The clock: what it shows, and by how much each reading moves it.
our %clock = (ns => 0, move => 0);

# Of the instance: the feed's latest nanosecond, its largest lead, the transactions with feed
# ids that have ended, those that had a number, the sessions; and what outlives it.
my ($last, $largest, %ended, $completed, @sessions);
my ($incarnation, $resets, %bound) = (0, 0);
our %prepared;

# Does the statement at hand wait for the clock?
my $waits;

sub later
{
	my ($one, $other) = @_;
	return $one > $other ? $one : $other;
}

# Division without the remainder.  In floating point, a lead beyond 104 days can be rounded up.
sub whole
{
	use integer;
	my ($ns, $unit) = @_;
	return $ns / $unit;
}

sub reading
{
	my $ns = $clock{ns};
	$clock{ns} += $clock{move};
	return $ns;
}

sub begin_server
{
	($last, $largest, $completed, $resets, @sessions) = (0) x 4;
	%ended = ();
	$incarnation++;
	return;
}

sub begin_session
{
	my ($database) = @_;

	# The limit of the lead; how deep in a transaction, and whether that has failed; the
	# latest key; the upper bound that is known, and the latest feed id.
	my $session = { database => $database, limit => -1, level => 0, failed => 0 };
	@$session{qw(last covered latest)} = (0) x 3;
	push @sessions, $session;
	return $session;
}

sub end_transaction
{
	my ($session) = @_;
	$ended{ $session->{database} }++ if delete $session->{published};
	$completed++ if delete $session->{has_number};
	delete @$session{qw(first given)};
	return;
}

# Or roll back: for what is generated that is the same.
sub commit
{
	my ($session) = @_;
	@$session{qw(level failed)} = (0, 0);
	return end_transaction($session);
}

sub prepare
{
	my ($session, $name) = @_;
	$prepared{$name} = { ns => $session->{published}, database => $session->{database} };
	return commit($session);
}

# By any session of the database.
sub finish
{
	my ($name) = @_;
	$completed++;
	delete $prepared{$name};
	return;
}

# statement(SESSION, \&gives): the rows of what a statement gives, or its error, "SQLSTATE
# message|detail", after which the transaction is what an error leaves of it.  Where it waits
# for the clock, an empty list: nobody knows how often the clock is read meanwhile, so such a
# statement is not to be run, and changes nothing.
sub statement
{
	my ($session, $gives) = @_;
	my @before = ($last, $largest, $resets, {%$session}, {%clock}, {%bound});
	$waits = 0;
	my @rows;
	my $error = eval { @rows = $gives->(); 1 } ? '' : $@ =~ s/\n\z//r;
	if ($waits)
	{
		($last, $largest, $resets) = @before;
		%$session = %{ $before[3] };
		%clock = %{ $before[4] };
		%bound = %{ $before[5] };
		return;
	}
	$session->{failed} = 1 if $error ne '' && $session->{level};
	end_transaction($session)
	  if $session->{level} == 0 || $session->{level} == 1 && $session->{failed};
	return ($error, @rows);
}

sub end_session
{
	my ($session) = @_;
	end_transaction($session);
	@sessions = grep { $_ != $session } @sessions;
	return;
}

# Generating

sub require_lead
{
	my ($session, $lead) = @_;
	my $limit = $session->{limit};
	return if $limit < 0 || $lead < MS || $lead <= $limit * MS;
	die '55000 embedded time would be ahead of the clock by more than "fast_uuid.max_clock_lead"'
	  . '|The clock is ' . whole($lead, MS) . ' ms behind the latest UUID; '
	  . "the limit is $limit ms.\n";
}

# The nanoseconds of as many keys as a reading of the clock serves, at most so many.
sub take
{
	my ($session, $most) = @_;
	my $ns = reading();
	my $latest = $session->{last};
	($ns, $most) = ($latest + 1, 1) if $latest >= $ns;
	$session->{last} = $ns + $most - 1;
	return $ns .. $session->{last};
}

sub take_array
{
	my ($session, $count) = @_;
	my @ns;
	push @ns, take($session, $count - @ns < CHUNK ? $count - @ns : CHUNK) while @ns < $count;
	return @ns;
}

# To take part in the order of the feed.
sub join_feed
{
	my ($session) = @_;
	return $session->{joined}++;
}

# The nanosecond of the next feed id.
sub reserve
{
	my ($session) = @_;
	my $ns = reading();
	$ns = reading() unless join_feed($session);

	# Another reading tells whether the clock is behind.
	my $latest = $last;
	my $next = later($ns, $latest + 1);
	$session->{published} //= $next;
	if ($latest - $ns + 1 >= MS)
	{
		$ns = reading();
		$largest = later($largest, $latest - $ns);
		require_lead($session, $latest - $ns + 1);
	}
	return $last = $next;
}

# Is the upper bound beyond this nanosecond?  It is moved, where less than half a second is
# left.  Where others could have begun after another one, ids are reserved again.
sub covers
{
	my ($session, $ns) = @_;
	my $looked = $session->{covered};
	return 1 if $ns + SECOND / 2 <= $looked;

	look_at_clock($session) unless $looked;
	my $now = reading();
	my $bound = $bound{ $session->{database} } //= { ns => 0, of => -1, resets => 0 };
	my $of_others = $bound->{of} != $incarnation;
	my $begins = $bound->{ns} && $of_others && $bound->{ns} >= $ns;
	die '55000 upper bound of feed ids is too far ahead of the clock|It was set by setval() '
	  . 'or pg_upgrade, and is ' . whole($bound->{ns} - $now, MS) . ' ms ahead; '
	  . "the limit is 5000 ms.\n"
	  if $begins && $bound->{of} == 0 && $bound->{ns} > $now + 5 * SECOND;

	# The order passes what others have set, before the bound is this incarnation's.
	$last = later($last, $bound->{ns}) if $of_others;
	$ns = later($ns, $last) if $of_others;
	$session->{covered} = $of_others || $bound->{resets} == $resets ? $bound->{ns} : 0;
	move_bound($session, $ns) if $session->{covered} < $ns + SECOND / 2;
	return $looked && !$begins;
}

# To a second after this, in microseconds.
sub move_bound
{
	my ($session, $ns) = @_;
	my $covered = $session->{covered} = $ns + SECOND - $ns % 1000;
	$bound{ $session->{database} } = { ns => $covered, of => $incarnation, resets => $resets };
	return;
}

# What setval() sets; it gives the transaction a number.
sub set_bound
{
	my ($session, $ns) = @_;
	$bound{ $session->{database} } = { ns => $ns, of => 0, resets => 0 };
	$session->{has_number} = 1;
	return;
}

# Whoever has not looked waits, if the upper bound of others is not far ahead.
sub look_at_clock
{
	my ($session) = @_;
	my $bound = $bound{ $session->{database} };
	my $lead = ($bound ? $bound->{ns} : 0) - reading();
	$waits ||= $lead > 0 && $lead <= 2 * SECOND && $bound->{of} != $incarnation;
	return;
}

sub take_for_feed
{
	my ($session) = @_;
	my $ns = reserve($session);
	$ns = reserve($session) until covers($session, $ns);
	$session->{first} //= $ns;
	return $session->{latest} = $ns;
}

sub require_observable
{
	my ($session, $ns) = @_;
	my $limit = $session->{limit} < 0 ? 1000 : $session->{limit};
	my $lead = later(0, $ns - reading());
	die '22023 observed time is too far ahead of the clock|It is ahead by ' . whole($lead, MS)
	  . " ms; the limit is $limit ms.\n"
	  if $lead >= MS && $lead > $limit * MS;
	return;
}

sub observe_for_feed
{
	my ($session, $ns) = @_;
	join_feed($session);
	require_observable($session, $ns);
	1 until covers($session, $ns);
	$last = later($last, $ns);
	return '';
}

# An INSERT of an id into a feed that is guarded.
sub guard
{
	my ($session, $ns, $relation) = @_;
	my $first = $session->{first};
	return () if defined $first && $ns >= $first && $ns <= $session->{latest};
	die "23514 readers could miss the new row of relation \"$relation\"|Column \"id\" does not"
	  . " have an id that this transaction has generated for a feed.\n";
}

# Whoever resets the feed is alone in it.
sub reset_feed
{
	my ($session) = @_;
	join_feed($session);
	die "25001 cannot reset the order of feed ids in a transaction that has generated some|\n"
	  if $session->{published};
	my $now = reading();
	($last, $largest) = (0, 0);
	$resets++;
	delete $session->{given};
	$session->{latest} = 0;
	move_bound($session, $now);
	return '';
}

# Watching

# The sessions and prepared transactions of a database that hold its watermark back, those
# with the smallest nanosecond; and this.
sub holds_back
{
	my ($database) = @_;
	my @open = grep { $_->{database} eq $database } grep({ defined $_->{published} } @sessions),
	  map({ +{ %$_, published => $_->{ns}, pid => 0 } } grep { defined $_->{ns} } values %prepared);
	my ($first) = sort { $a->{published} <=> $b->{published} } @open;
	return () unless $first;
	my @first = grep { $_->{published} == $first->{published} } @open;
	return ($first->{published}, map { $_->{pid} } @first);
}

# The nanosecond of a watermark.  The transaction's next statements have the same one until a
# transaction with a number ends.
sub watermark
{
	my ($session) = @_;
	my $given = $session->{given};
	join_feed($session);
	return $given->{ns} if $given && $given->{completed} == $completed;
	$last = later($last, reading());
	my ($held) = holds_back($session->{database});
	my $ns = defined $held && $held <= $last ? $held : $last + 1;
	$session->{given} = { ns => $ns, completed => $completed };
	return $ns;
}

# How many transactions with feed ids have ended in the session's database.
sub count_ended
{
	my ($session) = @_;
	my $refused = '25001 cannot execute uuidv7_feed_wait() in a transaction that has';
	die "$refused generated feed ids|\n" if $session->{published};
	die "$refused asked for the watermark|\n" if $session->{given};
	join_feed($session);
	$last = later($last, reading());
	return $ended{ $session->{database} } // 0;
}

# The row of fast_uuid_stats(), in microseconds, where who holds back is one of several at
# times; and the locks that are held.
sub stats
{
	my ($session) = @_;
	my $lead = later(0, $last - reading());
	my $row = join ' ', 'feed', map { whole($_, 1000) } $lead, later($lead, $largest);
	my (undef, @pids) = holds_back($session->{database});
	my $bound = $bound{ $session->{database} };
	$row .= ' (?:' . join('|', @pids) . ')' if @pids;
	$row .= ' ' . $bound->{ns} / 1000 if $bound && $bound->{ns};
	return ($row, 'locks ' . grep { defined $_->{ns} } values %prepared);
}

1;
