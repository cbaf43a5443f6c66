# A model of the low watermark's protocol, of which test/perl/StateSearch.pm goes
# through every state that its interleavings reach.
#
# A state is a string of bytes, one for each variable.  A step of an actor is
# atomic; between two of them any other actor can take any number of its own.
# Memory is that of one processor: which barriers the code needs is not seen here.
#
# To clear a slot is, in the code, to end the local transaction number that it was
# published for (src/in_flight.c).
#
# Commit and rollback are the same here.  The promise is about ids that can still
# become visible, and after either none of the transaction's can, so the smallest
# of them is all that has to be known of a transaction.
#
# The clock is not a variable: each reading is any of the configuration's.  That
# includes a clock that stands still or steps backwards, and a reading that is old
# when it is used.

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
	commit => [qw(visible clear)],
	prepare => [qw(lock count prepare clear)],    # the generation counts
	finish => [qw(visible release)],
	read => [qw(epoch last slots generation compare scan note decide)],    # none_as_of is compared, and noted
	reset => [qw(odd last baseline even)],

	republishes => 1,                   # where its published value is too large
	worker_publishes_in => 'leader',    # or 'own'
	worker_publishes => 'minimum',      # or 'overwrites'
	leader_publishes => 'minimum',
	leader_clears => 'always',          # or 'own': only what it has published itself
	lock_carries => 'slot',             # or 'published': the leader's own copy
	advances => 1,                      # the reader, the latest id to its clock
	notes_generation => 'read',         # before the scan; or 'latest'
	looks_again => 1,                   # the reader, at the epoch
	baseline => 1,                      # no watermark is below one returned before
	none_as_of => 0);                   # after a start, when the generation is 1

# Shared memory; what every reading of the clock is above; and, for the checks, the
# watermarks that count for later ids and for later watermarks.
use constant {
	LAST       => 0,
	EPOCH      => 1,
	BASELINE   => 2,
	GENERATION => 3,
	NONE_AS_OF => 4,
	CLOCK_FROM => 5,
	PROMISED   => 6,
	RETURNED   => 7,
	RESTARTS   => 8,
	RESET_PC   => 9 };
my @shared_names =
  ('last', 'epoch', 'baseline', 'generation', 'none_as_of', 'clock from', 'promised', 'returned', 'restarts left', 'reset');

# A writer, or a parallel worker.
use constant { PC => 0, TRANSACTIONS => 1, IDS => 2, SEEN => 3, NEXT => 4, PUBLISHED => 5, SLOT => 6, PENDING => 7 };
my @writer_names = ('transactions left', 'ids left', 'seen', 'next', 'published', 'slot', 'pending id');
use constant { READY => 0, PUBLISH => 1, EXCHANGE => 2, ENDED => 3, COMMIT => 4, PREPARE => 8 };

# A prepared transaction: its lock in memory, and on disk.
use constant { LOCK => 1, SAVED => 2, PREPARED_ID => 3 };
my @prepared_names = ('lock', 'saved', 'pending id');

# A reader; what it has found as the latest id, and its watermark so far (0: none).
use constant { CALLS => 1, AT_EPOCH => 2, FOUND => 3, WATERMARK => 4, AT_GENERATION => 5 };
my @reader_names = ('calls left', 'epoch', 'found', 'watermark', 'generation');

# The search at hand: not passed as arguments, because that would slow it down.
my (%config, %protocol);
my (@writers, @prepared, @readers);              # where their variables are
my (@ids_of, %worker_of, %prepared_of, @slots, @read, %read_at);
my ($state, @v);                                 # as a string, and its variables
my (@next, $violation);                          # of its steps; the last one's, what it breaks

# A next state is this one with other values of these variables.
sub becomes
{
	my $next = $state;
	for (my $i = 0; $i < @_; $i += 2)
	{
		vec($next, $_[$i], 8) = $_[ $i + 1 ];
	}
	push @next, $next;
	return;
}

sub min_nonzero
{
	my ($one, $other) = @_;
	return $one && $other ? min($one, $other) : $one || $other;
}

sub must_publish
{
	my ($generator, $from) = @_;
	my $published = $v[ $generator + PUBLISHED ];
	return !$published || $protocol{republishes} && $published > $from;
}

# Begin to generate an id, or begin again, with the latest id as it is now and
# whatever the clock tells.
sub attempt
{
	my ($generator) = @_;
	foreach my $id (uniqnum(map { max($_ + $v[CLOCK_FROM], $v[LAST] + 1) } @{ $config{clock} }))
	{
		my $publishes = $protocol{generate}[0] eq 'publish' && must_publish($generator, $id);
		becomes($generator + SEEN, $v[LAST], $generator + NEXT, $id, $generator + PC, $publishes ? PUBLISH : EXCHANGE);
	}
	return;
}

# A writer, or a worker, generates in a transaction of the writer and publishes in
# the slot.
sub generate
{
	my ($generator, $slot, $writer, $how) = @_;
	my $pc = $v[ $generator + PC ];

	if ($pc == READY)
	{
		attempt($generator) if $v[ $generator + IDS ];
	}
	elsif ($pc == PUBLISH)
	{
		my $from = $v[ $generator + NEXT ];
		my $last_step = $protocol{generate}[-1] eq 'publish';
		becomes(
			$slot, $how eq 'minimum' ? min_nonzero($v[$slot], $from) : $from,
			$generator + PUBLISHED, $from,
			$last_step ? ($generator + SEEN, 0, $generator + NEXT, 0, $generator + PC, READY) : ($generator + PC, EXCHANGE));
	}
	elsif ($pc == EXCHANGE)
	{
		my $id = $v[ $generator + NEXT ];
		return attempt($generator) if $v[LAST] != $v[ $generator + SEEN ];
		$violation = "the id $id is generated below the watermark" if $id < $v[PROMISED];
		$violation = "the id $id is below its slot" if $id < $v[$slot] && !$config{mutated};
		my $publishes = $protocol{generate}[-1] eq 'publish' && must_publish($generator, $id);
		becomes(
			LAST, $id,
			$generator + IDS, $v[ $generator + IDS ] - 1,
			$generator + SEEN, 0,
			$generator + NEXT, $publishes ? $id : 0,
			$generator + PC, $publishes ? PUBLISH : READY,
			$writer + PENDING, min_nonzero($v[ $writer + PENDING ], $id));
	}
	return;
}

# The writer, and its worker, are ready for the next transaction, if there is one.
sub next_transaction
{
	my ($writer) = @_;
	my $left = $v[ $writer + TRANSACTIONS ] - 1;
	my $worker = $worker_of{$writer};
	return (
		$writer + PC, READY, $writer + TRANSACTIONS, $left,
		$writer + IDS, $left && $ids_of[$writer],
		$writer + SEEN, 0, $writer + NEXT, 0, $writer + PENDING, 0,
		$worker ? ($worker + PC, $left ? READY : ENDED, $worker + IDS, $left && $ids_of[$worker],
			$worker + SEEN, 0, $worker + NEXT, 0, $worker + PUBLISHED, 0) : ());
}

# A step of the sequence that ends a transaction for its session.
sub end_transaction
{
	my ($writer, $sequence, $first, $step) = @_;
	my $name = $protocol{$sequence}[$step];
	my $pending = $writer + PENDING;
	my $prepared = $sequence eq 'prepare' && $prepared_of{$writer}[ $v[ $writer + TRANSACTIONS ] - 1 ];
	my @changes;

	if ($name eq 'visible')
	{
		@changes = ($pending, 0);
	}
	elsif ($name eq 'clear')
	{
		@changes = ($writer + PUBLISHED, 0,
			$protocol{leader_clears} eq 'always' || $v[ $writer + PUBLISHED ] ? ($writer + SLOT, 0) : ());
	}
	elsif ($name eq 'lock')
	{
		# A mutation that has cleared the slot already still gets a value that would do.
		my $from = $protocol{lock_carries} eq 'slot' ? $v[ $writer + SLOT ] || $v[$pending] : $v[ $writer + PUBLISHED ];
		@changes = ($prepared + LOCK, $from);
	}
	elsif ($name eq 'count')
	{
		@changes = (GENERATION, $v[GENERATION] + 1);
	}
	elsif ($name eq 'prepare')
	{
		@changes = (
			$prepared + PC, 1, $prepared + SAVED, $v[ $prepared + LOCK ],
			$prepared + PREPARED_ID, $v[$pending], $pending, 0);
	}
	return becomes(@changes,
		$step < $#{ $protocol{$sequence} } ? ($writer + PC, $first + $step + 1) : next_transaction($writer));
}

sub writer_steps
{
	my ($writer) = @_;
	my $pc = $v[ $writer + PC ];
	my $worker = $worker_of{$writer};

	return end_transaction($writer, 'prepare', PREPARE, $pc - PREPARE) if $pc >= PREPARE;
	return end_transaction($writer, 'commit', COMMIT, $pc - COMMIT) if $pc >= COMMIT;
	generate($writer, $writer + SLOT, $writer, $protocol{leader_publishes});
	if ($pc == READY && $v[ $writer + PENDING ] && (!$worker || $v[ $worker + PC ] == ENDED))
	{
		end_transaction($writer, 'commit', COMMIT, 0);
		end_transaction($writer, 'prepare', PREPARE, 0) if $prepared_of{$writer};
	}
	return;
}

sub worker_steps
{
	my ($worker, $leader) = @_;
	my $own_slot = $protocol{worker_publishes_in} eq 'own';

	return if $v[ $worker + PC ] == ENDED;
	generate($worker, ($own_slot ? $worker : $leader) + SLOT, $leader, $protocol{worker_publishes});
	if ($v[ $worker + PC ] == READY)
	{
		becomes($worker + PC, ENDED, $worker + IDS, 0, $worker + PUBLISHED, 0, $own_slot ? ($worker + SLOT, 0) : ());
	}
	return;
}

# Another session finishes a prepared transaction.
sub finish_steps
{
	my ($prepared) = @_;
	my $step = $v[ $prepared + PC ] or return;
	my $name = $protocol{finish}[ $step - 1 ];
	return becomes(
		$name eq 'visible' ? ($prepared + PREPARED_ID, 0) : ($prepared + LOCK, 0),
		$step < @{ $protocol{finish} } ? ($prepared + PC, $step + 1) : ($prepared + PC, 0, $prepared + SAVED, 0));
}

# The reader has found the latest id, and now reads the clock.  If that is ahead,
# the latest id has to be advanced to it first.
sub look_at_clock
{
	my ($reader, $latest) = @_;
	my @ahead = grep { $_ > $latest } map { $_ + $v[CLOCK_FROM] } @{ $config{clock} };
	becomes($reader + FOUND, $latest, $reader + PC, $read_at{advance}) if @ahead;
	if (@ahead < @{ $config{clock} })
	{
		becomes(
			$reader + FOUND, 0,
			$reader + WATERMARK, min_nonzero($v[ $reader + WATERMARK ], $latest + 1),
			$reader + PC, $read_at{advance} + 1);
	}
	return;
}

# A reader's step, and the number of the one that follows it.
my %reader_step = (
	epoch => sub {
		my ($reader, $after) = @_;
		becomes($reader + AT_EPOCH, $v[EPOCH], $reader + PC, $after) unless $v[EPOCH] & 1;
	},
	last => sub {
		my ($reader) = @_;
		look_at_clock($reader, $v[LAST]);
	},
	advance => sub {
		my ($reader, $after) = @_;
		my $latest = $v[ $reader + FOUND ];
		return look_at_clock($reader, $v[LAST]) if $v[LAST] != $latest;
		foreach my $clock (grep { $_ > $latest } map { $_ + $v[CLOCK_FROM] } @{ $config{clock} })
		{
			becomes(
				$reader + FOUND, 0,
				$reader + WATERMARK, min_nonzero($v[ $reader + WATERMARK ], $clock + 1),
				$reader + PC, $after,
				$protocol{advances} ? (LAST, $clock) : ());
		}
	},
	slot => sub {
		my ($reader, $after, $slot) = @_;
		becomes($reader + WATERMARK, min_nonzero($v[ $reader + WATERMARK ], $v[$slot]), $reader + PC, $after);
	},
	generation => sub {
		my ($reader, $after) = @_;
		becomes($reader + AT_GENERATION, $v[GENERATION], $reader + PC, $after);
	},
	compare => sub {
		my ($reader, $after) = @_;
		my $none = $v[NONE_AS_OF] == $v[ $reader + AT_GENERATION ];
		becomes($none ? ($reader + AT_GENERATION, 0, $reader + PC, $read_at{note} + 1) : ($reader + PC, $after));
	},
	scan => sub {
		my ($reader, $after) = @_;
		my @locks = grep { $_ } map { $v[ $_ + LOCK ] } @prepared;
		return becomes($reader + PC, $after) unless @locks;
		becomes(
			$reader + WATERMARK, min_nonzero($v[ $reader + WATERMARK ], min(@locks)),
			$reader + AT_GENERATION, 0, $reader + PC, $read_at{note} + 1);
	},
	note => sub {
		my ($reader, $after) = @_;
		my $as_of = $protocol{notes_generation} eq 'read' ? $v[ $reader + AT_GENERATION ] : $v[GENERATION];
		becomes(NONE_AS_OF, $as_of, $reader + AT_GENERATION, 0, $reader + PC, $after);
	},
	decide => \&decide);

sub reader_steps
{
	my ($reader) = @_;
	my $step = $v[ $reader + PC ];
	my ($name, $slot) = @{ $read[$step] };
	$reader_step{$name}->($reader, $step + 1, $slot) if $step || $v[ $reader + CALLS ];
	return;
}

# By an exchange, which fails after a reset.  The watermark is judged here, because a snapshot that is
# taken at once sees the least.
sub decide
{
	my ($reader) = @_;
	my $watermark = $v[ $reader + WATERMARK ];
	my $same_epoch = $v[ $reader + AT_EPOCH ] == $v[EPOCH];
	my @at_start = ($reader + PC, 0, $reader + AT_EPOCH, 0, $reader + WATERMARK, 0);

	return becomes(@at_start) if $protocol{looks_again} && !$same_epoch;
	$watermark = max($watermark, $v[BASELINE]) if $protocol{baseline};
	push @at_start, BASELINE, max($watermark, $v[BASELINE]), $reader + CALLS, $v[ $reader + CALLS ] - 1;

	# A call that began before a reset is promised nothing for what follows it.
	return becomes(@at_start) unless $same_epoch;
	foreach my $id (@v[ map({ $_ + PENDING } @writers), map({ $_ + PREPARED_ID } @prepared) ])
	{
		$violation = "the id $id is below the watermark $watermark, and can still become visible" if $id && $id < $watermark;
	}
	$violation //= "the watermark goes back from $v[RETURNED] to $watermark" if $watermark < $v[RETURNED];
	return becomes(@at_start, PROMISED, max($watermark, $v[PROMISED]), RETURNED, $watermark);
}

# Resets, one at a time.  Watermarks returned before count no more for later ones,
# nor for ids from when the latest is forgotten.
sub reset_steps
{
	my $step = $v[RESET_PC];
	my @sequence = @{ $protocol{reset} };
	return if $step == $config{resets} * @sequence;
	my $name = $sequence[ $step % @sequence ];
	return becomes(
		RESET_PC, $step + 1, RETURNED, 0,
		$name eq 'last' ? (LAST, $v[EPOCH] + 1, PROMISED, 0)
		: $name eq 'baseline' ? (BASELINE, 0)
		:                       (EPOCH, $v[EPOCH] + 1));
}

# A crash.  What is visible remains so, and prepared transactions remain, with their
# locks.  The clock has passed what was generated: the order needs that.
sub restart_steps
{
	return unless $v[RESTARTS];
	my @changes = (
		RESTARTS, $v[RESTARTS] - 1,
		LAST, 0, EPOCH, 0, BASELINE, 0, GENERATION, 1,
		NONE_AS_OF, $protocol{none_as_of}, RETURNED, 0,
		CLOCK_FROM, max($v[CLOCK_FROM], $v[LAST]),
		$v[RESET_PC] ? (RESET_PC, $config{resets} * @{ $protocol{reset} }) : ());
	foreach my $writer (@writers)
	{
		my $worker = $worker_of{$writer};
		my $begun = $v[ $writer + PC ] != READY || $v[ $writer + PENDING ] || $worker && $v[ $worker + PC ] != READY;
		push @changes, $writer + SLOT, 0, $writer + PUBLISHED, 0;
		push @changes, next_transaction($writer) if $begun && $v[ $writer + TRANSACTIONS ];
	}
	foreach my $prepared (@prepared)
	{
		push @changes, $v[ $prepared + PREPARED_ID ]
		  ? ($prepared + PC, 1, $prepared + LOCK, $v[ $prepared + SAVED ])
		  : map { ($prepared + $_, 0) } PC, LOCK, SAVED;
	}
	foreach my $reader (@readers)
	{
		push @changes, map { ($reader + $_, 0) } PC, AT_EPOCH, FOUND, WATERMARK, AT_GENERATION;
	}
	return becomes(@changes);
}

# When there is nothing left to do, all is done and nothing holds the watermark back.
sub check_end
{
	my @left = grep { $_ } map { @v[ $_ + TRANSACTIONS, $_ + SLOT, $_ + PC ] } @writers;
	push @left, grep { $_ } map { @v[ $_ + PC, $_ + LOCK ] } @prepared;
	push @left, grep { $_ } map { @v[ $_ + PC, $_ + CALLS ] } @readers;
	$violation = 'nothing is left to do, and something holds the watermark back' if @left;
	return;
}

# The actors of a configuration, and the state in which they begin.  Each variable
# gets a name, and a program counter those of its steps as well.
sub set_up
{
	my ($config, $mutation) = @_;

	%config = (clock => [ 1, 3 ], restarts => 0, resets => 0, %$config, mutated => scalar %$mutation);
	%protocol = (%design, %$mutation);
	@writers = @prepared = @readers = @slots = ();
	%worker_of = %prepared_of = ();

	my (@first, @names, @step_names, @actors);
	my $actor = sub {
		my ($name, $variables, $steps, @values) = @_;
		my $at = @first;
		$step_names[$at] = $steps;
		push @names, $name, map { "$name: $_" } @$variables;
		push @first, 0, @values, (0) x (@$variables - @values);
		return $at;
	};
	@names = @shared_names;
	@first = (0) x @names;
	$step_names[RESET_PC] = [ (@{ $protocol{reset} }) x $config{resets}, 'done' ];

	my @writer_steps = qw(ready publish exchange ended);
	@writer_steps[ COMMIT .. COMMIT + 1 ] = @{ $protocol{commit} };
	@writer_steps[ PREPARE .. PREPARE + 3 ] = @{ $protocol{prepare} };
	foreach my $number (1 .. @{ $config{writers} })
	{
		my %is = %{ $config{writers}[ $number - 1 ] };
		my $writer = $actor->("writer $number", \@writer_names, \@writer_steps, $is{transactions}, $is{ids});
		push @writers, $writer;
		push @slots, $writer + SLOT;
		$ids_of[$writer] = $is{ids};
		push @actors, sub { writer_steps($writer) };
		if ($is{worker})
		{
			my $worker = $actor->("worker of $number", \@writer_names, \@writer_steps, 0, $is{worker});
			$worker_of{$writer} = $worker;
			push @slots, $worker + SLOT if $protocol{worker_publishes_in} eq 'own';
			$ids_of[$worker] = $is{worker};
			push @actors, sub { worker_steps($worker, $writer) };
		}
		next unless $is{prepares};
		foreach my $left (1 .. $is{transactions})
		{
			my $prepared = $actor->("prepared by $number, $left", \@prepared_names, [ 'none', @{ $protocol{finish} } ]);
			push @prepared, $prepared;
			push @{ $prepared_of{$writer} }, $prepared;
			push @actors, sub { finish_steps($prepared) };
		}
	}

	# A reader skips what never changes.
	@read = grep { $config{resets} || $_ ne 'epoch' }
	  grep { @prepared || !/^(generation|compare|scan|note)$/ } @{ $protocol{read} };
	@read = map { $_ eq 'last' ? ([$_], ['advance']) : $_ eq 'slots' ? map { [ 'slot', $_ ] } @slots : [$_] } @read;
	%read_at = map { $read[$_][0] => $_ } 0 .. $#read;
	foreach my $number (1 .. @{ $config{readers} })
	{
		my $reader = $actor->("reader $number", \@reader_names, [ map { $_->[0] } @read ], $config{readers}[ $number - 1 ]);
		push @readers, $reader;
		push @actors, sub { reader_steps($reader) };
	}
	push @actors, \&reset_steps if $config{resets};
	push @actors, \&restart_steps if $config{restarts};

	$first[GENERATION] = 1;
	$first[NONE_AS_OF] = $protocol{none_as_of};
	$first[RESTARTS] = $config{restarts};
	return (pack('C*', @first), \@names, \@step_names, @actors);
}

# explore(\%configuration, MUTATION...): how many states there are.  If the promise
# is broken the search ends with what breaks it, and a shortest way there.
sub explore
{
	my ($config, %mutation) = @_;
	my ($first, $names, $step_names, @actors) = set_up($config, \%mutation);

	undef $violation;
	my $steps = sub {
		($state) = @_;
		@v = unpack 'C*', $state;
		@next = ();
		foreach my $actor (@actors)
		{
			$actor->();
			last if defined $violation;
		}
		check_end() unless @next;
		return ($violation, @next);
	};
	return search($first, $steps, $names, $step_names);
}

1;
