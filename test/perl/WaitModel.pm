# A model of uuidv7_feed_wait() and a reader in its loop, of which
# test/perl/StateSearch.pm goes through every state.  The promise: where nothing is
# left to do, no row that is visible has not been delivered; no timeout helps.
#
# It begins where test/perl/WatermarkModel.pm ends: a transaction publishes and
# exchanges in one step, and nothing is prepared.  Where the code needs a barrier, a step
# that takes effect later stands for its lack.  A snapshot is the set of transactions
# that had completed, a bit each.

package WaitModel;

use strict;
use warnings;

use Exporter qw(import);
use List::Util qw(max min);
use StateSearch;

our @EXPORT = qw(explore_wait);

# What each kind of transaction has, and the last of its steps.
my %kinds = (
	row => { id => 1, number => 1, row => 1 },
	rollback => { id => 1, number => 1 },
	generates => { id => 1 },              # and writes nothing
	without_ids => { number => 1 });

my %design = (
	end => [qw(complete clear count look)],

	# The wait; a watermark that it keeps; then a statement, and its watermark.
	reader => [qw(enter check scan keep begin scan decide)],
	counts => 'all',        # or only those that have a 'number'
	again => 1,             # reads again where it was given a row
	forgets => 1);          # the statement's watermark, before it waits again

# Shared memory.
use constant { ENDED => 0, LAST => 1, COMPLETED => 2, KEPT => 3, KEPT_TAKEN => 4, LISTED => 5, WOKEN => 6 };
my @shared_names = ('ended', 'last', 'completed', 'kept', 'kept: snapshot', 'listed', 'woken');

use constant { PC => 0, FIRST_NS => 1, ID => 2, DELIVERED => 3 };
my @writer_names = ('first_ns', 'id', 'delivered');

use constant { SEEN => 1, EQUAL => 2, NS => 3, SNAPSHOT => 4, GIVEN => 5, GIVEN_SNAPSHOT => 6 };
my @reader_names = ('seen', 'nothing has ended', 'watermark', 'snapshot', 'given', 'given to');

# The search at hand.  A writer's number is a bit, and where its variables are the key.
my (%protocol, %kind_of, %steps_of, %bit_of, $reader, $asleep);

sub writer_steps
{
	my ($writer) = @_;
	my $step = $steps_of{$writer}[ $v[$writer] ] // return;
	my @after = ($writer, $v[$writer] + 1);

	return becomes(@after, LAST, $v[LAST] + 1, $writer + ID, $v[LAST] + 1, $writer + FIRST_NS, $v[LAST] + 1) if $step eq 'generate';
	return becomes(@after, COMPLETED, $v[COMPLETED] | $bit_of{$writer}) if $step eq 'complete';
	return becomes(@after, $writer + FIRST_NS, 0) if $step eq 'clear';
	return becomes(@after, ENDED, $v[ENDED] + 1) if $step eq 'count';
	return becomes(@after, $v[LISTED] ? (LISTED, 0, WOKEN, 1) : ());
}

# The greatest of the watermarks that are right: they know of no end that the snapshot
# does not know of.
sub bound
{
	my ($snapshot) = @_;
	my @right = map { $_->[0] } grep { !($_->[1] & ~$snapshot) } [ @v[ $reader + NS, COMPLETED ] ], [ @v[ KEPT, KEPT_TAKEN ] ];
	return max(0, @right);
}

sub keeps
{
	my $ns = $v[ $reader + NS ];
	$ns = max($ns, $v[KEPT]) if $v[KEPT_TAKEN] == $v[COMPLETED];
	return (KEPT, $ns, KEPT_TAKEN, $v[COMPLETED]);
}

# The statement: it is given one row at most.
sub decide
{
	my $snapshot = $v[ $reader + SNAPSHOT ];
	my $given = $v[ $reader + GIVEN ] && $v[ $reader + GIVEN_SNAPSHOT ] == $snapshot;
	my $bound = $given ? $v[ $reader + GIVEN ] : bound($snapshot);
	my ($first) = sort { $v[ $a + ID ] <=> $v[ $b + ID ] }
	  grep { $kind_of{$_}{row} && $bit_of{$_} & $snapshot && !$v[ $_ + DELIVERED ] && $v[ $_ + ID ] < $bound } keys %kind_of;
	my ($begin) = grep { $protocol{reader}[$_] eq 'begin' } 0 .. $#{ $protocol{reader} };
	my @changes = ($reader + NS, 0, $reader + SNAPSHOT, 0, $given ? () : keeps());

	push @changes, $reader + GIVEN, $bound, $reader + GIVEN_SNAPSHOT, $snapshot unless $protocol{forgets};
	push @changes, $first + DELIVERED, 1 if defined $first;
	return becomes(@changes, $reader, defined $first && $protocol{again} ? $begin : 0);
}

sub reader_steps
{
	my $pc = $v[$reader];
	my $step = $protocol{reader}[$pc];
	my $next = $pc + 1;

	if ($pc == $asleep)
	{
		becomes(WOKEN, 0, $reader, 0) if $v[WOKEN];
		return;
	}
	my $equal = $step eq 'check' ? $v[ENDED] == $v[ $reader + SEEN ] ? 1 : 0 : $v[ $reader + EQUAL ];

	# The later one of "enter" and "check" ends the wait, or begins the sleep.
	my $waits = $step =~ /enter|check/ && !grep { /enter|check/ } @{ $protocol{reader} }[ $next .. $#{ $protocol{reader} } ];
	my @changes = ($reader, $waits && $equal ? $asleep : $next);
	push @changes, LISTED, $waits && !$equal ? 0 : 1 if $step eq 'enter' || $waits && !$equal;
	push @changes, WOKEN, 0 if $waits && !$equal;
	push @changes, $reader + EQUAL, $waits ? 0 : $equal;

	return decide() if $step eq 'decide';
	push @changes, $reader + SEEN, $v[ENDED] if $step eq 'check';
	push @changes, $reader + NS, min($v[LAST] + 1, grep { $_ } map { $v[ $_ + FIRST_NS ] } keys %kind_of) if $step eq 'scan';
	push @changes, keeps(), $reader + NS, 0 if $step eq 'keep';
	push @changes, $reader + SNAPSHOT, $v[COMPLETED] if $step eq 'begin';
	return becomes(@changes);
}

sub check_end
{
	my @late = grep { $kind_of{$_}{row} && !$v[ $_ + DELIVERED ] } keys %kind_of;
	return @late && breaks('nothing is left to do, and the row of writer ' . join(', ', map { $bit_of{$_} } @late) . ' is not delivered');
}

# explore_wait(\@kinds of transactions, MUTATION...): as StateSearch's search().
sub explore_wait
{
	my ($transactions, %mutation) = @_;
	my $bit = 1;

	%protocol = (%design, %mutation);
	(%kind_of, %steps_of, %bit_of) = ();
	new_model();
	add_variables(\@shared_names, 1);
	foreach my $name (@$transactions)
	{
		my $kind = $kinds{$name};
		my @end = grep { $_ eq 'complete' ? $kind->{number} : $kind->{id} } @{ $protocol{end} };
		@end = grep { !/count|look/ } @end if !$kind->{ $protocol{counts} } && $protocol{counts} ne 'all';
		my @steps = ($kind->{id} ? 'generate' : (), @end);
		my $writer = add_actor("$name $bit", [ @steps, 'ended' ], \&writer_steps, \@writer_names);
		($kind_of{$writer}, $steps_of{$writer}, $bit_of{$writer}) = ($kind, \@steps, $bit);
		$bit *= 2;
	}
	$asleep = @{ $protocol{reader} };
	$reader = add_actor('reader', [ @{ $protocol{reader} }, 'asleep' ], \&reader_steps, \@reader_names);
	return search(\&check_end);
}

1;
