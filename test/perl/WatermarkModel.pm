# A model of the watermark's protocol, of which test/perl/StateSearch.pm goes
# through every state that its interleavings reach.
#
# Names are those of the code: "last" is last_ns; first_ns that of a writer's element of
# in_flight; the prepared count is "prepared"; advance is fuuid_instance_advance_to().
#
# A state is a string of bytes, one for each variable.  A step of an actor is
# atomic; between two of them any other actor can take any number of its own.
# Memory is that of one processor: which barriers the code needs is not seen here.
# Nor are several databases; subtransactions; snapshots of a logical slot; resets, which
# are alone.
#
# A transaction's number, its xid, is a bit; the next one has the next bit.  A snapshot
# is the set of those that had completed, always with the lowest bit, which is nobody's:
# xmax is above the highest, and who is missing below was running.
#
# Commit and rollback are the same here.  The promise is about ids that can still
# become visible, and after either none of the transaction's can, so the smallest
# of them is all that has to be known of a transaction.
#
# The clock is not a variable: each reading is any of the configuration's.  That
# includes a clock that stands still or steps backwards, and a reading that is old
# when it is used.
#
# A step that makes no difference before another one is taken together with that one.
# Who reads the latest id and exchanges it does both at once, unless it publishes in
# between; and who finds it exchanged begins again.  A transaction is given its number
# when it ends, or another one that is given a greater number.  A statement's snapshot is
# taken just before a transaction completes, or else when the call begins.

package WatermarkModel;

use strict;
use warnings;

use Exporter qw(import);
use List::Util qw(min max uniqnum);
use StateSearch;

our @EXPORT = qw(explore);

# The protocol: the order of steps, and what else makes it sound.  A mutation
# replaces some of it.
my %design = (
	generate => [qw(publish exchange)],
	commit => [qw(complete clear)],
	prepare => [qw(lock count prepare clear)],    # the number of prepared ones counts
	finish => [qw(complete release)],
	read => [qw(advance first_ns prepared_count compare scan note snapshot decide)],    # prepared_ended is compared, and noted

	republishes => 1,              # where what it has published is too large
	advances => 1,              # the reader, the latest id to its clock
	notes_count => 'read',         # before the scan; or 'latest'
	compares => 'both',            # of two snapshots; or only 'xmax', or who was 'running'
	compares_own => 1,             # the snapshot of the reader's own watermark
	compares_kept => 1,            # those of the ones that are kept
	prepared_ended => 0);          # after a start, when the number of prepared ones is 1

# Shared memory; the numbers of transactions; what every reading of the clock is above;
# and, for the checks, the watermark that counts for later ids.  The watermarks that
# are kept follow, the newest first, each with its snapshot.
use constant { LAST => 0, PREPARED_COUNT => 1, PREPARED_ENDED => 2, NEXT_NUMBER => 3, COMPLETED => 4 };
use constant { CLOCK_FROM => 5, PROMISED => 6 };
my @shared_names = ('last', 'prepared_count', 'prepared_ended', 'next number', 'completed', 'clock from', 'promised');

# A writer.
use constant { PC => 0, TRANSACTION => 1, IDS => 2, NEXT => 3, FIRST_NS => 4, NUMBER => 5, PENDING => 6 };
my @writer_names = ('has a transaction', 'ids left', 'next', 'first_ns', 'number', 'pending id');
use constant { READY => 0, PUBLISH => 1, PUBLISH_OLD => 2, EXCHANGE => 3, COMMIT => 4, PREPARE => 6 };

# A prepared transaction: its lock in memory, and on disk.
use constant { LOCK => 1, SAVED => 2, PREPARED_NUMBER => 3, PREPARED_ID => 4 };
my @lock_names = ('lock', 'saved', 'number', 'pending id');

# The reader: the statement's snapshot, and the smallest id of those that have completed
# since; its watermark so far (0: none), and the snapshot that it takes itself.
use constant { CALLS => 1, SNAPSHOT => 2, UNSEEN => 3, WATERMARK => 4, AT_COUNT => 5, TAKEN => 6 };
my @reader_names = ('calls left', 'snapshot', 'unseen id', 'watermark', 'prepared_count', 'taken');

# The search at hand: not passed as arguments, because that would slow it down.
my (%config, %protocol);
my (@kept, @writers, %prepared_of, @prepared, $reader, @read, %read_at);    # where their variables are; the reader's steps

sub min_nonzero
{
	my ($one, $other) = @_;
	return $one && $other ? min($one, $other) : $one || $other;
}

# What changes with the latest id: nobody can exchange the one before any more.
sub last_becomes
{
	my ($last) = @_;
	return () if $last == $v[LAST];
	return (LAST, $last,
		map { $v[ $_ + PC ] == EXCHANGE ? ($_ + PC, READY, $_ + NEXT, 0) : $v[ $_ + PC ] == PUBLISH ? ($_ + PC, PUBLISH_OLD) : () }
		  @writers);
}

sub exchange
{
	my ($writer, $id, $publishes) = @_;
	becomes(
		last_becomes($id),
		$writer + IDS, $v[ $writer + IDS ] - 1,
		$writer + NEXT, $publishes ? $id : 0,
		$writer + PC, $publishes ? PUBLISH : READY,
		$writer + PENDING, min_nonzero($v[ $writer + PENDING ], $id));
	return $id < $v[PROMISED] && breaks("the id $id is generated below the watermark");
}

# What follows from the latest id as it is now, and whatever the clock tells.
sub generate
{
	my ($writer) = @_;
	my ($pc, $next, $first_ns) = @v[ map { $writer + $_ } PC, NEXT, FIRST_NS ];
	my $publishes_first = $protocol{generate}[0] eq 'publish';

	return exchange($writer, $next, 0) if $pc == EXCHANGE;
	if ($pc == PUBLISH || $pc == PUBLISH_OLD)
	{
		my $goes_on = $publishes_first && $pc == PUBLISH;
		return becomes($writer + FIRST_NS, $next, $goes_on ? ($writer + PC, EXCHANGE) : ($writer + PC, READY, $writer + NEXT, 0));
	}
	return unless $v[ $writer + IDS ];
	foreach my $id (uniqnum(map { max($_ + $v[CLOCK_FROM], $v[LAST] + 1) } @{ $config{clock} }))
	{
		my $publishes = !$first_ns || $protocol{republishes} && $first_ns > $id;
		$publishes && $publishes_first
		  ? becomes($writer + NEXT, $id, $writer + PC, PUBLISH)
		  : exchange($writer, $id, $publishes);
	}
	return;
}

# A transaction completes.  The snapshot that the reader has does not know that, nor one
# that it takes just before.
sub completes
{
	my ($number, $id, @changes) = @_;
	push @changes, COMPLETED, $v[COMPLETED] | $number;
	return becomes(@changes, $reader + UNSEEN, min_nonzero($v[ $reader + UNSEEN ], $id)) if $v[ $reader + SNAPSHOT ];
	becomes(@changes);
	becomes(@changes, $reader + SNAPSHOT, $v[COMPLETED], $reader + UNSEEN, $id) if $v[ $reader + CALLS ];
	return;
}

# The writer has no transaction any more.
sub without_transaction
{
	my ($writer) = @_;
	return map { ($writer + $_, 0) } PC, TRANSACTION, IDS, NEXT, NUMBER, PENDING;
}

# A step of the sequence that ends a transaction, which has this number, for its session.
sub end_transaction
{
	my ($writer, $sequence, $step, $number, @changes) = @_;
	my $name = $protocol{$sequence}[$step];
	my ($id, $first_ns) = @v[ $writer + PENDING, $writer + FIRST_NS ];
	my $prepared = $prepared_of{$writer};

	push @changes, $writer + FIRST_NS, 0 if $name eq 'clear';

	# A mutation that has cleared the first_ns already still gets a value that would do.
	push @changes, $prepared + LOCK, $first_ns || $id if $name eq 'lock';
	push @changes, PREPARED_COUNT, $v[PREPARED_COUNT] + 1 if $name eq 'count';
	push @changes, $prepared + PC, 1, $prepared + SAVED, $v[ $prepared + LOCK ],
	  $prepared + PREPARED_NUMBER, $number, $prepared + PREPARED_ID, $id if $name eq 'prepare';

	# Its number is of no account any more: nobody's will do.
	push @changes, $writer + PENDING, 0, $writer + IDS, 0, $writer + NUMBER, 1 if $name eq 'prepare' || $name eq 'complete';
	push @changes, $step < $#{ $protocol{$sequence} }
	  ? ($writer + PC, ($sequence eq 'commit' ? COMMIT : PREPARE) + $step + 1)
	  : without_transaction($writer);
	return $name eq 'complete' ? completes($number, $id, @changes) : becomes(@changes);
}

# Which number a transaction has that is about to end, and what changes if it is given
# it now: perhaps after another.
sub numbers
{
	my ($writer) = @_;
	my ($number, $next) = @v[ $writer + NUMBER, NEXT_NUMBER ];
	return [$number] if $number;
	return (
		[ $next, $writer + NUMBER, $next, NEXT_NUMBER, 2 * $next ],
		map { [ 2 * $next, $writer + NUMBER, 2 * $next, NEXT_NUMBER, 4 * $next, $_ + NUMBER, $next ] }
		  grep { $_ != $writer && $v[ $_ + TRANSACTION ] && !$v[ $_ + NUMBER ] } @writers);
}

sub writer_steps
{
	my ($writer) = @_;
	my ($pc, $number, $id) = @v[ map { $writer + $_ } PC, NUMBER, PENDING ];

	return end_transaction($writer, 'prepare', $pc - PREPARE, $number) if $pc >= PREPARE;
	return end_transaction($writer, 'commit', $pc - COMMIT, $number) if $pc >= COMMIT;
	generate($writer);
	return if $pc != READY || !$id;
	foreach my $numbers (numbers($writer))
	{
		end_transaction($writer, 'commit', 0, @$numbers);
		end_transaction($writer, 'prepare', 0, @$numbers) if $prepared_of{$writer};
	}
	return;
}

# Another session finishes a prepared transaction.
sub finish_steps
{
	my ($prepared) = @_;
	my $step = $v[ $prepared + PC ] or return;
	my @goes_on = $step < @{ $protocol{finish} } ? ($prepared + PC, $step + 1) : ($prepared + PC, 0, $prepared + SAVED, 0);
	return becomes($prepared + LOCK, 0, @goes_on) if $protocol{finish}[ $step - 1 ] eq 'release';
	return completes(
		@v[ $prepared + PREPARED_NUMBER, $prepared + PREPARED_ID ],
		$prepared + PREPARED_NUMBER, 0, $prepared + PREPARED_ID, 0, @goes_on);
}

# The number after the greatest one that has completed.
sub xmax
{
	my ($snapshot) = @_;
	return 1 << length sprintf '%b', $snapshot;
}

# Does the statement's snapshot know of all that had completed when the other was taken?
sub is_right
{
	my ($taken, $snapshot) = @_;
	my $xmax = xmax($snapshot);
	return 0 if $protocol{compares} ne 'running' && xmax($taken) > $xmax;
	return $protocol{compares} eq 'xmax' || !($taken & ~$snapshot & $xmax - 1);
}

# Keep a watermark, with the snapshot taken after it, in the place of the oldest.
# Returned are the greatest one that is right for the statement's snapshot, 0 if there is
# none, and all that are kept then.
sub keep
{
	my ($watermark, $taken, $snapshot) = @_;
	my @kept_ones = map { [ @v[ @kept[ 2 * $_, 2 * $_ + 1 ] ] ] } 0 .. $#kept / 2;
	my @right = map { $_->[0] }
	  grep { !$protocol{compares_kept} || is_right($_->[1], $snapshot) } @kept_ones;
	push @right, $watermark if !$protocol{compares_own} || is_right($taken, $snapshot);
	my $result = max(0, @right);

	if ($taken == $kept_ones[0][1])
	{
		$kept_ones[0][0] = max($watermark, $kept_ones[0][0]);
		return ($result, map { @$_ } @kept_ones);
	}
	return ($result, $watermark, $taken, map { @$_ } @kept_ones[ 0 .. $#kept_ones - 1 ]);
}

# Under a lock.  The next call is in the same snapshot, or in one that it takes.
sub decide
{
	my @changes = map { ($reader + $_, 0) } PC, WATERMARK, TAKEN;
	my ($watermark, @keeps) = keep(@v[ map { $reader + $_ } WATERMARK, TAKEN, SNAPSHOT ]);
	my $left = $v[ $reader + CALLS ] - 1;
	@keeps = (0) x @kept unless $left;
	push @changes, $reader + CALLS, $left, map { ($kept[$_], $keeps[$_]) } 0 .. $#kept;
	push @changes, PROMISED, max($watermark, $v[PROMISED]);
	becomes(@changes) if $left && $v[ $reader + SNAPSHOT ] != $v[COMPLETED];
	becomes(@changes, $reader + SNAPSHOT, 0, $reader + UNSEEN, 0);
	foreach my $id (@v[ $reader + UNSEEN, map({ $_ + PENDING } @writers), map({ $_ + PREPARED_ID } @prepared) ])
	{
		breaks("the id $id is below the watermark $watermark, and had not completed for the snapshot")
		  if $id && $id < $watermark;
	}
	return;
}

sub reader_steps
{
	my ($step, $watermark, $at_count) = @v[ map { $reader + $_ } PC, WATERMARK, AT_COUNT ];
	my ($name, $first_ns) = @{ $read[$step] };
	my @after = ($reader + PC, $step + 1);
	my @scanned = ($reader + AT_COUNT, 0, $reader + PC, $read_at{note} + 1);

	return unless $v[ $reader + CALLS ];
	push @after, $reader + SNAPSHOT, $v[COMPLETED] unless $v[ $reader + SNAPSHOT ];
	return decide() if $name eq 'decide';
	return becomes($reader + TAKEN, $v[COMPLETED], @after) if $name eq 'snapshot';
	return becomes($reader + WATERMARK, min_nonzero($watermark, $v[$first_ns]), @after) if $name eq 'first_ns';
	return becomes($reader + AT_COUNT, $v[PREPARED_COUNT], @after) if $name eq 'prepared_count';
	return becomes($v[PREPARED_ENDED] == $at_count ? @scanned : @after) if $name eq 'compare';
	if ($name eq 'scan')
	{
		my @locks = grep { $_ } map { $v[ $_ + LOCK ] } @prepared;
		return becomes(@locks ? ($reader + WATERMARK, min_nonzero($watermark, min(@locks)), @scanned) : @after);
	}
	return becomes(PREPARED_ENDED, $protocol{notes_count} eq 'read' ? $at_count : $v[PREPARED_COUNT], @scanned) if $name eq 'note';
	foreach my $last (uniqnum(map { max($_ + $v[CLOCK_FROM], $v[LAST]) } @{ $config{clock} }))
	{
		my @advanced = $protocol{advances} ? last_becomes($last) : ();
		becomes(@advanced, $reader + WATERMARK, min_nonzero($watermark, $last + 1), @after);
	}
	return;
}

# A crash.  What is visible remains so, and prepared
# transactions remain, with their locks; the others have completed.  The clock has
# passed what was generated: the order needs that.
sub restart_steps
{
	my ($restarted) = @_;
	return if $v[$restarted];
	my $completed = $v[NEXT_NUMBER] - 1;
	my @changes = (
		$restarted, 1, LAST, 0, PREPARED_COUNT, 1, PREPARED_ENDED, $protocol{prepared_ended},
		CLOCK_FROM, max($v[CLOCK_FROM], $v[LAST]),
		map { ($_, 0) } @kept);
	foreach my $writer (@writers)
	{
		my $begun = grep { $_ } @v[ map { $writer + $_ } PC, NUMBER, PENDING ];
		push @changes, $writer + FIRST_NS, 0;
		push @changes, without_transaction($writer) if $begun && $v[ $writer + TRANSACTION ];
	}
	foreach my $prepared (@prepared)
	{
		$completed &= ~$v[ $prepared + PREPARED_NUMBER ];
		push @changes, $v[ $prepared + PREPARED_ID ]
		  ? ($prepared + PC, 1, $prepared + LOCK, $v[ $prepared + SAVED ])
		  : map { ($prepared + $_, 0) } PC, LOCK, SAVED;
	}
	push @changes, map { ($reader + $_, 0) } PC, SNAPSHOT .. TAKEN;
	return becomes(@changes, COMPLETED, $completed);
}

# When there is nothing left to do, all is done and nothing holds the watermark back.
sub check_end
{
	my @left = grep { $_ } map { @v[ $_ + TRANSACTION, $_ + FIRST_NS, $_ + PC ] } @writers;
	push @left, grep { $_ } map { @v[ $_ + PC, $_ + LOCK ] } @prepared;
	push @left, grep { $_ } @v[ $reader + PC, $reader + CALLS ];
	return @left && breaks('nothing is left to do, and something holds the watermark back');
}

# A writer of one transaction, with up to so many ids, which may be prepared.
sub add_writer
{
	my ($number, $ids) = @_;
	my @steps = ('ready', 'publish', 'publish an old one', 'exchange');
	@steps[ COMMIT .. COMMIT + $#{ $protocol{commit} }, PREPARE .. PREPARE + 3 ] = (@{ $protocol{commit} }, @{ $protocol{prepare} });
	my $writer = add_actor("writer $number", \@steps, \&writer_steps, \@writer_names, 1, $ids);
	push @writers, $writer;
	return unless $config{prepares};
	$prepared_of{$writer} = add_actor("prepared by $number", [ 'none', @{ $protocol{finish} } ], \&finish_steps, \@lock_names);
	push @prepared, $prepared_of{$writer};
	return;
}

# explore(\%configuration, MUTATION...): how many states there are.  If the promise
# is broken the search ends with what breaks it, and a shortest way there.
sub explore
{
	my ($config, %mutation) = @_;

	%config = %$config;
	%protocol = (%design, %mutation);
	@writers = @prepared = ();
	%prepared_of = ();
	new_model();
	add_variables(\@shared_names, 0, 1, $protocol{prepared_ended}, 2, 1);
	@kept = map { (add_variables(["kept $_"]), add_variables(["kept $_: snapshot"])) } 1, 2;

	add_writer($_, $config{ids}[ $_ - 1 ]) foreach 1 .. @{ $config{ids} };

	# The reader skips what never changes.
	@read = grep { @prepared || !/^(prepared_count|compare|scan|note)$/ } @{ $protocol{read} };
	@read = map { $_ eq 'first_ns' ? map { [ 'first_ns', $_ + FIRST_NS ] } @writers : [$_] } @read;
	%read_at = (note => 0, map { $read[$_][0] => $_ } 0 .. $#read);
	$reader = add_actor('reader', [ map { $_->[0] } @read ], \&reader_steps, \@reader_names, 2);

	add_actor('restarted', undef, \&restart_steps, []) if $config{restart};
	return search(\&check_end);
}

1;
