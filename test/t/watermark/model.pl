# The watermark's protocol, explored in a model: in every interleaving of a few writers
# and a reader, each id below a watermark that a statement was given is of a transaction
# that had completed for the statement's snapshot, and no id is generated below it later.
# Each of the mistakes below breaks that.
#
# A writer has one transaction, with up to so many ids, which may be prepared.  The reader
# calls twice, in a snapshot of its own or in that of the call before.  A step is atomic;
# between two of them anybody else can take any number.  Steps and fields have the code's
# names.  Commit and rollback are the same: after neither can an id become visible any more.
# Memory is that of one processor, so that this does not show which barriers the code needs;
# nor are there other databases, subtransactions, logical slots or resets.

use strict;
use warnings;

use List::Util qw(max);
use Test::More;

# The steps of each sequence, and what else makes the protocol sound.
my %design = (
	generate => 'publish exchange',
	commit => 'complete clear',
	prepare => 'lock count prepare clear',     # "count" increments prepared
	finish => 'complete release',              # COMMIT PREPARED
	read => 'advance first.a first.b prepared compare scan note snapshot decide',

	republishes => 1,          # a writer whose next id is below what it has published
	advances => 1,             # the reader advances the latest id to its clock
	notes => 'reader.at_prepared',  # prepared as it was read before the scan, or as it is
	compares => 'both',        # of two snapshots; or only 'xmax', or who was 'running'
	compares_own => 1,         # the snapshot of the watermark that it has computed
	compares_kept => 1,        # that of the watermark of the call before
	prepared_ended => 0);      # after a start, when prepared is 1

# A reading of the clock is any of these, at any time: it may stand still or step backwards,
# and be old when it is used.
my %configurations = (
	'two writers' => { ids => { a => 2, b => 1 }, clock => [1] },
	'prepared, with a restart' => { ids => { a => 1, b => 0 }, clock => [ 1, 3 ], prepares => 1 });

# What each mistake changes in the design, by the configuration that shows it.
my %mistakes;
$mistakes{'two writers'} = {
	'publishes after the exchange' => { generate => 'exchange publish' },
	'clears before the commit is visible' => { commit => 'clear complete' },
	'does not clear' => { commit => 'complete' },
	'reads first_ns before the latest id' => { read => 'first.a first.b advance snapshot decide' },
	'does not advance the latest id to the clock' => { advances => 0 },
	'takes its snapshot before it reads first_ns' =>
	  { read => 'advance snapshot first.a first.b decide' },
	'does not compare its snapshot with that of the statement' => { compares_own => 0 },
	'does not compare the snapshot of a watermark that was kept' => { compares_kept => 0 },
	'of snapshots compares only xmax' => { compares => 'xmax' },
	'of snapshots compares only who was running' => { compares => 'running' } };
$mistakes{'prepared, with a restart'} = {
	'does not publish a smaller value' => { republishes => 0 },
	'takes the lock after first_ns is cleared' => { prepare => 'clear lock count prepare' },
	'increments prepared before the lock is taken' => { prepare => 'count lock prepare clear' },
	'increments prepared after first_ns is cleared' => { prepare => 'lock prepare clear count' },
	'releases the lock before the commit is visible' => { finish => 'release complete' },
	'scans the locks before it reads first_ns' =>
	  { read => 'advance prepared compare scan note first.a snapshot decide' },
	'reads prepared before first_ns' =>
	  { read => 'advance prepared first.a compare scan note snapshot decide' },
	'takes its snapshot before it reads prepared' =>
	  { read => 'advance first.a snapshot prepared compare scan note decide' },
	'takes its snapshot before it scans the locks' =>
	  { read => 'advance first.a prepared snapshot compare scan note decide' },
	'notes prepared as it is after the scan' => { notes => 'prepared' },
	'does not scan after a restart' => { prepared_ended => 1 } };

# The state at hand.  What is left to do of a sequence is "todo".  A snapshot has the letters
# of the transactions that had completed, which stand for their numbers, behind a dash.
my %s;
my @fields = qw(last prepared prepared_ended completed promised restarted);
my @reader_fields = qw(todo snapshot watermark at_prepared taken kept kept_taken);
push @fields, 'calls', map { "reader.$_" } @reader_fields;
foreach my $w ('a', 'b')
{
	push @fields, map { "$w.$_" } qw(todo ids seen next first_ns id ends lock saved);
}

my (%config, %protocol);
my $broken;    # what is wrong with the state at hand

# A call reads the clock and the latest id.
sub begin_call
{
	my ($w, $clock) = @_;
	my $next = max($clock, $s{last} + 1);
	my $published = $s{"$w.first_ns"};
	@s{ "$w.seen", "$w.next" } = ($s{last}, $next);
	$s{"$w.todo"} = $protocol{generate};
	$s{"$w.todo"} = 'exchange' if $published && ($published <= $next || !$protocol{republishes});
	return;
}

# Where the latest id has changed since it was read, the call begins again.
sub exchange
{
	my ($w) = @_;
	my ($id, $seen) = @s{ "$w.next", "$w.seen" };
	$s{"$w.seen"} = 0;
	return $s{"$w.todo"} = '' if $s{last} != $seen;
	$broken = "the id $id is generated below the watermark $s{promised}" if $id < $s{promised};
	$s{last} = $id;
	$s{"$w.ids"}--;
	return $s{"$w.id"} ||= $id;    # the least
}

sub end_transaction
{
	my ($w, $steps) = @_;
	@s{ "$w.ids", "$w.seen", "$w.next" } = (0, 0, 0);
	$s{"$w.ends"} = 1;
	return $s{"$w.todo"} = $steps;
}

sub complete
{
	my ($w) = @_;
	return $s{completed} = join '', sort split //, "$s{completed}$w";
}

sub holds_back
{
	my ($ns) = @_;
	my $watermark = $s{'reader.watermark'};
	$s{'reader.watermark'} = $ns if $ns && (!$watermark || $ns < $watermark);
	return;
}

sub advance
{
	my ($clock) = @_;
	my $last = max($clock, $s{last});
	$s{last} = $last if $protocol{advances};
	$s{'reader.todo'} =~ s/advance //;
	return holds_back($last + 1);
}

# If no lock is left, that is noted; else the next call scans them as well.
sub scan
{
	my $lock = $s{'a.lock'} || $s{'b.lock'};
	$s{'reader.todo'} =~ s/note // if $lock;
	return holds_back($lock);
}

# Does the statement's snapshot know of all that had completed when the other was taken?
# Its xmax is after the greatest that had completed for it; who is missing below was running.
sub is_right_for
{
	my ($taken, $snapshot) = @_;
	my $greatest = substr $snapshot, -1;
	my @unknown = grep { index($snapshot, $_) < 0 } split //, $taken;
	my $from_xmax = grep { $_ gt $greatest } @unknown;
	my $running = grep { $_ lt $greatest } @unknown;
	return 0 if $from_xmax && $protocol{compares} ne 'running';
	return 0 if $running && $protocol{compares} ne 'xmax';
	return 1;
}

# Under a lock: the greatest watermark that is right, of this call and the one before.
sub decide
{
	my ($watermark, $taken, $snapshot) = map { $s{"reader.$_"} } qw(watermark taken snapshot);
	my ($kept, $kept_taken) = map { $s{"reader.$_"} } qw(kept kept_taken);
	my $found = 0;
	$found = $watermark if is_right_for($taken, $snapshot) || !$protocol{compares_own};
	$found = $kept
	  if $kept > $found && (is_right_for($kept_taken, $snapshot) || !$protocol{compares_kept});
	foreach my $w ('a', 'b')
	{
		my $id = $s{"$w.id"};
		$broken = "the id $id is below the watermark $found, and had not completed for the snapshot"
		  if $id && $id < $found && index($snapshot, $w) < 0;
	}
	$s{promised} = max($s{promised}, $found);
	$s{calls}--;
	$s{"reader.$_"} = 0 foreach qw(watermark at_prepared taken kept kept_taken);
	$s{'reader.snapshot'} = 0 unless $s{calls};
	@s{qw(reader.kept reader.kept_taken)} = ($watermark, $taken) if $s{calls};
	return;
}

# A crash: prepared transactions remain, with their locks; the others have completed.
# The latest id is not lower afterwards: the order needs that.
sub restart
{
	@s{qw(restarted prepared prepared_ended)} = (1, 1, $protocol{prepared_ended});
	foreach my $w ('a', 'b')
	{
		my $has_begun = $s{"$w.todo"} ne '' || $s{"$w.first_ns"} || $s{"$w.id"};
		my $has_completed = index($s{completed}, $w) >= 0;
		my $is_prepared = $s{"$w.saved"} && !$has_completed;
		$s{"$w.first_ns"} = 0;
		$s{"$w.lock"} = $is_prepared ? $s{"$w.saved"} : 0;
		end_transaction($w, $is_prepared ? $protocol{finish} : '') if $has_begun;
		complete($w) if $has_begun && !$is_prepared && !$has_completed;
	}
	$s{"reader.$_"} = 0 foreach @reader_fields;
	$s{'reader.todo'} = '';
	return;
}

my %step = (
	publish => sub { my ($w) = @_; $s{"$w.first_ns"} = $s{"$w.next"} },
	exchange => \&exchange,
	complete => \&complete,
	clear => sub { my ($w) = @_; $s{"$w.first_ns"} = 0 },

	# Where first_ns is cleared already, by mistake, a value that would do all the same.
	lock => sub { my ($w) = @_; $s{"$w.lock"} = $s{"$w.first_ns"} || $s{"$w.id"} },
	count => sub { $s{prepared}++ },
	prepare => sub { my ($w) = @_; $s{"$w.saved"} = $s{"$w.lock"} },
	release => sub { my ($w) = @_; $s{"$w.lock"} = 0 },

	'first.a' => sub { holds_back($s{'a.first_ns'}) },
	'first.b' => sub { holds_back($s{'b.first_ns'}) },
	prepared => sub { $s{'reader.at_prepared'} = $s{prepared} },
	compare => sub {
		$s{'reader.todo'} =~ s/scan note // if $s{prepared_ended} == $s{'reader.at_prepared'};
	},
	scan => \&scan,
	note => sub { $s{prepared_ended} = $s{ $protocol{notes} } },
	snapshot => sub { $s{'reader.taken'} = $s{completed} },
	decide => \&decide);

sub next_step
{
	my ($who) = @_;
	$s{"$who.todo"} =~ s/^(\S+) ?//;
	return $step{$1}->($who);
}

# What can happen next, each a sub that does it.
sub choices
{
	my @choices;
	foreach my $who (grep { $s{"$_.todo"} ne '' && $s{"$_.todo"} !~ /^advance/ } 'reader', 'a', 'b')
	{
		push @choices, sub { next_step($who) };
	}
	foreach my $clock (@{ $config{clock} })
	{
		push @choices, sub { advance($clock) } if $s{'reader.todo'} =~ /^advance/;
		foreach my $w (grep { $s{"$_.todo"} eq '' && $s{"$_.ids"} } 'a', 'b')
		{
			push @choices, sub { begin_call($w, $clock) };
		}
	}
	foreach my $w (grep { $s{"$_.todo"} eq '' && $s{"$_.id"} && !$s{"$_.ends"} } 'a', 'b')
	{
		push @choices, sub { end_transaction($w, $protocol{commit}) };
		push @choices, sub { end_transaction($w, "$protocol{prepare} $protocol{finish}") }
		  if $config{prepares};
	}
	if ($s{calls} && $s{'reader.todo'} eq '')
	{
		my $begin = sub { $s{'reader.todo'} = $protocol{read} };
		push @choices, $begin if $s{'reader.snapshot'};
		push @choices, sub { $s{'reader.snapshot'} = $s{completed}; $begin->() };
	}
	push @choices, \&restart if $config{prepares} && !$s{restarted};
	return @choices;
}

# The states on a way to the last one.
sub trace
{
	my ($from, $state) = @_;
	my @lines = $broken;
	for (; defined $state; $state = $from->{$state})
	{
		unshift @lines, $state;
	}
	return join "\n", join(',', @fields), @lines;
}

# Go through every state, the nearest first, up to one in which the promise is broken.
# Returns how many there are.
sub explore
{
	my ($name, $mistake) = @_;
	%config = %{ $configurations{$name} };
	%protocol = (%design, %$mistake);
	$protocol{read} =~ s/prepared compare scan note // unless $config{prepares};
	%s = map { $_ => /todo/ ? '' : 0 } @fields;
	@s{qw(prepared prepared_ended completed calls)} = (1, $protocol{prepared_ended}, '-', 2);
	@s{qw(a.ids b.ids)} = @{ $config{ids} }{qw(a b)};

	$broken = '';
	my @states = (join ',', @s{@fields});
	my %from = ($states[0] => undef);
	for (my $at = 0; $at < @states && !$broken; $at++)
	{
		@s{@fields} = split /,/, $states[$at], -1;
		my @choices = choices();
		$broken = 'all is done, and something holds the watermark back'
		  if !@choices && grep { $s{$_} } qw(a.first_ns a.lock b.first_ns b.lock);
		while (!$broken && @choices)
		{
			@s{@fields} = split /,/, $states[$at], -1;
			(shift @choices)->();
			my $next = join ',', @s{@fields};
			push @states, $next unless exists $from{$next};
			$from{$next} = $states[$at] unless exists $from{$next};
			note(trace(\%from, $next)) if $broken;
		}
	}
	return scalar @states;
}

foreach my $name (sort keys %configurations)
{
	my $states = explore($name, {});
	is($broken, '', "$name: the promise holds in all of $states states");
	foreach my $mistake (sort keys %{ $mistakes{$name} })
	{
		explore($name, $mistakes{$name}{$mistake});
		isnt($broken, '', "noticed: $mistake");
	}
}
done_testing();
