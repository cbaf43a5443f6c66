# The protocol of doc/internals.md, explored in a model: in every interleaving of a few writers
# and readers, each row below a watermark that a statement was given is of a transaction that had
# ended for the statement's snapshot, no row gets a number below it later, not even after a
# crash, and watermarks do not go back.  Each of the mistakes below breaks that.
#
# A writer has one transaction, with up to so many numbers, which may be prepared; a reader calls
# once, or twice, in a snapshot of its own or in that of the call before.  A step is atomic; between two
# of them anybody else can take any number.  Commit and rollback are the same: after neither can
# a row become visible any more.  Memory is that of one processor, so that this does not show
# which barriers the code needs; nor are there other sequences, subtransactions or logical slots.

use strict;
use warnings;

use List::Util qw(max min);
use Test::More;

# The steps of each function, and what else makes the protocol right.
my %design = (
	begin => 'lock publish look',              # nextval()'s lock; publish, while nobody draws
	commit => 'end unlock clear',
	prepare => 'keep count prepare clear',     # keep the pair as a lock, and count that
	finish => 'end release',                   # COMMIT PREPARED
	read => 'last pair.a pair.b know held scan note snapshot flush decide',

	notes => 'count',          # how many locks had been taken before those were scanned
	compares => 'both',        # of two snapshots; or only 'xmax', or who was 'running'
	compares_own => 1,         # the snapshot of the bound that was computed
	compares_kept => 1,        # that of the mark
	compares_file => 1,        # the file of the sequence that the mark is of
	looks_for_held => 1,       # is the least lock that was found still there?
	looks_for_more => 1,       # were locks taken since?
	refuses => 1,              # a number that is not above what was published
	guards => 1,               # a number from elsewhere is above that, and has been given
	has_no_locks => 0);        # what a place is taken to know in the beginning

# "numbers" are how many a writer draws, without one it never begins; "takes" lets it insert one
# that others have drawn.
my %configurations = (
	'two writers' => { numbers => { a => 2, b => 1 } },
	'numbers from elsewhere' => { numbers => { a => 1, b => 1 }, takes => 1, calls => 1 },
	'a restart of the sequence' => { numbers => { a => 1, b => 1 }, restarts => 1 },
	'setval() back' => { numbers => { a => 1, b => 2 }, sets_back => 1, calls => 1 },
	'two prepared' => { numbers => { a => 1, b => 0 }, prepares => 'ab' },
	'one prepared, with a crash' => { numbers => { a => 1, b => -1 }, prepares => 'a', crashes => 1 },
	'a crash' => { numbers => { a => 1, b => 1 }, crashes => 1, calls => 1 });

# What each mistake changes in the design, by the configuration that shows it.
my %mistakes = (
	'two writers' => {
		'draws before it publishes' => { begin => 'lock draw publish look' },
		'publishes what it has read before' => { begin => 'lock read publish look' },
		'clears before the end is visible' => { commit => 'clear end unlock' },
		'does not clear' => { commit => 'end unlock' },
		'reads the pairs before the sequence' => { read => 'pair.a pair.b last snapshot decide' },
		'takes the snapshot before it reads the pairs' => { read => 'last snapshot pair.a pair.b decide' },
		'misses a pair' => { read => 'last pair.b snapshot decide' },
		'does not compare its snapshot with that of the statement' => { compares_own => 0 },
		'does not compare that of a mark' => { compares_kept => 0 },
		'of snapshots compares only xmax' => { compares => 'xmax' },
		'of snapshots compares only who was running' => { compares => 'running' } },
	'numbers from elsewhere' => {
		'inserts any number' => { guards => 0 } },
	'a restart of the sequence' => {
		'uses marks of another file' => { compares_file => 0 } },
	'setval() back' => {
		'uses numbers that are not above what it has published' => { refuses => 0 },
		'does not look for marks that are above' => { begin => 'lock publish' },
		'looks for them before it publishes' => { begin => 'lock look publish' } },
	'two prepared' => {
		'clears before it keeps the lock' => { prepare => 'clear keep count prepare' },
		'counts before the lock is there' => { prepare => 'count keep prepare clear' },
		'counts after it has cleared' => { prepare => 'keep prepare clear count' },
		'releases the lock before the end is visible' => { finish => 'release end' },
		'looks for locks before it reads the pairs' => { read => 'last know held scan note pair.a pair.b snapshot decide' },
		'takes the snapshot before it looks for locks' => { read => 'last pair.a pair.b snapshot know held scan note decide' },
		'notes the count as it is after the scan' => { notes => 'locks' },
		'believes that the least lock is still there' => { looks_for_held => 0 },
		'does not look for locks that were taken since' => { looks_for_more => 0 } },
	'one prepared, with a crash' => {
		'does not look for locks after a crash' => { has_no_locks => 1 } },
	'a crash' => {
		'does not flush' => { read => 'last pair.a pair.b snapshot decide' } });

# The state at hand.  What is left to do of a function is "todo".  A snapshot has the letters of
# the transactions that had ended, which stand for their numbers, behind a dash.  "none" stands
# for no pair, lock or number: it is above all.
use constant NONE => 99;
my %s;
my @of_writer = qw(todo numbers read v0 pair locked least ends lock saved);
my @of_reader = qw(todo calls snapshot last bound found count taken file);
my @fields = qw(last durable file locks locks_read least_lock ended told
  kept kept_taken kept_file restarted set_back crashed);
push @fields, map { my $w = $_; map { "$w.$_" } @of_writer } 'a', 'b';
push @fields, map { "r.$_" } @of_reader;

my (%config, %protocol);
my $broken;    # what is wrong with the state at hand

sub end_transaction
{
	my ($w, $steps) = @_;
	@s{ "$w.numbers", "$w.ends" } = (0, 1);
	return $s{"$w.todo"} = $steps;
}

# It can only abort: no row of it will be visible.
sub abort_transaction
{
	my ($w) = @_;
	$s{"$w.least"} = NONE;
	return end_transaction($w, $protocol{commit});
}

sub insert
{
	my ($w, $number) = @_;
	$broken = "a row gets number $number, below the watermark $s{told}" if $number < $s{told};
	$s{"$w.least"} = min($s{"$w.least"}, $number);
	return $s{"$w.numbers"} = max(0, $s{"$w.numbers"} - 1);
}

sub draw
{
	my ($w) = @_;
	my $number = ++$s{last};
	return abort_transaction($w) if $protocol{refuses} && $s{"$w.v0"} != NONE && $number <= $s{"$w.v0"};
	return insert($w, $number);
}

# Under the page's lock, unless by mistake it was read before.
sub publish
{
	my ($w) = @_;
	my $read = $s{"$w.read"};
	$s{"$w.v0"} = $s{"$w.pair"} = $read != NONE ? $read : $s{last};
	return;
}

sub look
{
	my ($w) = @_;
	my $v0 = $s{"$w.v0"} == NONE ? $s{last} : $s{"$w.v0"};
	return abort_transaction($w) if $s{kept_file} == $s{file} && $v0 < $s{kept} - 1;
	return;
}

sub end
{
	my ($w) = @_;
	return $s{ended} = join '', sort split //, "$s{ended}$w";
}

sub holds_back
{
	my ($v0) = @_;
	$s{'r.bound'} = min($s{'r.bound'}, $v0 + 1);
	return;
}

sub read_last
{
	@s{qw(r.last r.file)} = @s{qw(last file)};
	return holds_back($s{last});
}

# What is known of locks, with their count: nothing, that there are none, or the least.
sub know
{
	my $knows = $s{locks_read} == $s{locks} || !$protocol{looks_for_more} && $s{locks_read};
	@s{qw(r.count r.found)} = @s{qw(locks least_lock)};
	$s{'r.todo'} =~ s/held // if !$knows;
	$s{'r.todo'} =~ s/held scan note // if $knows && $s{least_lock} == NONE;
	return;
}

sub held
{
	my $found = $s{'r.found'};
	return if $protocol{looks_for_held} && !grep { $s{"$_.lock"} == $found } 'a', 'b';
	$s{'r.todo'} =~ s/scan note //;
	return holds_back($found);
}

sub scan
{
	return holds_back($s{'r.found'} = min(@s{ 'a.lock', 'b.lock' }));
}

sub note_locks
{
	$s{locks_read} = $protocol{notes} eq 'count' ? $s{'r.count'} : $s{locks};
	return $s{least_lock} = $s{'r.found'};
}

# Does the statement's snapshot know of all that had ended when the other was taken?  Its xmax is
# after the greatest that had ended for it; who is missing below was running.
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

# Under a lock: the greatest bound that is right, of this call and the mark; which this becomes.
# Who was told before a restart begins anew.
sub decide
{
	my ($bound, $taken, $snapshot) = map { $s{"r.$_"} } qw(bound taken snapshot);
	my $found = 0;
	my $is_of_file = $s{kept_file} == $s{'r.file'} || !$protocol{compares_file};
	$found = $s{kept}
	  if $is_of_file && (is_right_for($s{kept_taken}, $snapshot) || !$protocol{compares_kept});
	$found = $bound if is_right_for($taken, $snapshot) || !$protocol{compares_own};
	foreach my $w ('a', 'b')
	{
		my $least = $s{"$w.least"};
		$broken = "number $least is below the watermark $found, and its transaction had not ended for the snapshot"
		  if $s{'r.file'} == $s{file} && $least < $found && index($snapshot, $w) < 0;
	}
	$broken = "the bound goes back from $s{kept} to $bound"
	  if $bound < $s{kept} && $s{'r.file'} == $s{kept_file} && $s{kept_file} == $s{file} && !$s{set_back};
	$s{told} = max($s{told}, $found) if $s{'r.file'} == $s{file};
	@s{qw(kept kept_taken kept_file)} = ($bound, $taken, $s{'r.file'}) if $bound >= $s{kept} || $s{'r.file'} != $s{kept_file};
	$s{'r.calls'}--;
	@s{ 'r.bound', 'r.found' } = (NONE, NONE);
	$s{"r.$_"} = 0 foreach qw(last count taken file);
	$s{'r.snapshot'} = 0 unless $s{'r.calls'};
	return;
}

# ALTER SEQUENCE ... RESTART, and the table is empty: readers begin anew.
sub restart
{
	@s{qw(restarted last told)} = (1, 0, 0);
	$s{file}++;
	$s{"$_.least"} = NONE foreach 'a', 'b';
	return;
}

# What was not flushed is gone; so are marks.  Prepared transactions remain, with their locks.
sub crash
{
	$s{crashed} = $s{locks} = 1;
	$s{locks_read} = $protocol{has_no_locks};
	@s{qw(kept least_lock)} = (0, NONE);
	$s{last} = $s{durable};
	foreach my $w ('a', 'b')
	{
		my $has_ended = index($s{ended}, $w) >= 0;
		my $is_prepared = $s{"$w.saved"} != NONE && !$has_ended;
		my $has_begun = $s{"$w.todo"} ne '' || $s{"$w.pair"} != NONE || $s{"$w.least"} != NONE;
		$s{"$w.pair"} = $s{"$w.read"} = NONE;
		$s{"$w.lock"} = $is_prepared ? $s{"$w.saved"} : NONE;
		end_transaction($w, $is_prepared ? $protocol{finish} : '') if $has_begun;
		end($w) if $has_begun && !$is_prepared && !$has_ended;
		$s{"$w.locked"} = $is_prepared ? 1 : 0;
	}
	$s{'r.todo'} = '';
	$s{"r.$_"} = 0 foreach qw(snapshot last count taken file);
	@s{ 'r.bound', 'r.found' } = (NONE, NONE);
	return;
}

my %step = (
	lock => sub { $s{"$_[0].locked"} = 1 },
	read => sub { $s{"$_[0].read"} = $s{last} },
	publish => \&publish,
	look => \&look,
	draw => \&draw,
	end => \&end,
	unlock => sub { $s{"$_[0].locked"} = 0 },
	clear => sub { $s{"$_[0].pair"} = NONE },

	# Where the pair is cleared already, by mistake, its value would do all the same.
	keep => sub { $s{"$_[0].lock"} = $s{"$_[0].v0"} },
	count => sub { $s{locks}++ },
	prepare => sub { my ($w) = @_; $s{"$w.saved"} = $s{"$w.lock"}; $s{durable} = $s{last} },
	release => sub { my ($w) = @_; @s{ "$w.lock", "$w.locked" } = (NONE, 0) },

	last => \&read_last,
	'pair.a' => sub { holds_back($s{'a.pair'}) },
	'pair.b' => sub { holds_back($s{'b.pair'}) },
	know => \&know,
	held => \&held,
	scan => \&scan,
	note => \&note_locks,
	snapshot => sub { $s{'r.taken'} = $s{ended} },
	flush => sub { $s{durable} = max($s{durable}, $s{'r.last'}) },
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
	foreach my $who (grep { $s{"$_.todo"} ne '' } 'r', 'a', 'b')
	{
		push @choices, sub { next_step($who) };
	}
	foreach my $w (grep { $s{"$_.todo"} eq '' && !$s{"$_.ends"} && $s{"$_.numbers"} >= 0 } 'a', 'b')
	{
		my ($v0, $last) = ($s{"$w.v0"}, $s{last});
		push @choices, sub { $s{"$w.todo"} = $protocol{begin} } if $v0 == NONE;
		next if $v0 == NONE;
		push @choices, sub { end_transaction($w, $protocol{commit}) };
		push @choices, sub { end_transaction($w, "$protocol{prepare} $protocol{finish}") }
		  if ($config{prepares} // '') =~ /$w/;
		next unless $s{"$w.numbers"};
		push @choices, sub { draw($w) };
		next unless $config{takes};
		foreach my $number ($protocol{guards} ? ($v0 + 1 .. $last) : (1 .. $last + 1))
		{
			push @choices, sub { insert($w, $number) };
		}
	}
	if ($s{'r.calls'} && $s{'r.todo'} eq '')
	{
		my $begin = sub { $s{'r.todo'} = $protocol{read} };
		push @choices, $begin if $s{'r.snapshot'};
		push @choices, sub { $s{'r.snapshot'} = $s{ended}; $begin->() };
	}
	push @choices, \&restart
	  if $config{restarts} && !$s{restarted} && !grep { $s{"$_.locked"} } 'a', 'b';

	# One that comes beside a call is not noticed: see in_flight.c.
	push @choices, sub { @s{qw(last set_back)} = (0, 1) }
	  if $config{sets_back} && !$s{set_back} && $s{'r.todo'} eq '';
	push @choices, \&crash if $config{crashes} && !$s{crashed};
	return @choices;
}

# After all that, a call that nobody disturbs is told of every number.
sub call_alone
{
	@s{ 'r.snapshot', 'r.todo' } = ($s{ended}, $protocol{read});
	$s{'r.todo'} =~ s/ decide//;
	next_step('r') while $s{'r.todo'} ne '';
	$broken ||= "all is done, and the bound is $s{'r.bound'}" if $s{'r.bound'} != $s{last} + 1;
	return;
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

# Go through every state, the nearest first, up to one in which the promise is broken.  Returns
# how many there are.
sub explore
{
	my ($name, $mistake) = @_;
	%config = %{ $configurations{$name} };
	%protocol = (%design, %$mistake);
	$protocol{read} =~ s/know held scan note // unless $config{prepares};
	$protocol{read} =~ s/flush // unless $config{crashes};
	%s = map { $_ => /todo/ ? '' : /[.](?:read|v0|pair|least|lock|saved|bound|found)$/ ? NONE : 0 } @fields;
	@s{qw(locks locks_read least_lock ended r.calls)} = (1, $protocol{has_no_locks}, NONE, '-', $config{calls} // 2);
	@s{qw(a.numbers b.numbers)} = @{ $config{numbers} }{qw(a b)};

	$broken = '';
	my @states = (join ',', @s{@fields});
	my %from = ($states[0] => undef);
	for (my $at = 0; $at < @states && !$broken; $at++)
	{
		my @state = split /,/, $states[$at], -1;
		@s{@fields} = @state;
		my @choices = choices();
		if (!grep { $s{"$_.todo"} ne '' } 'a', 'b', 'r')
		{
			call_alone() unless grep { $s{"$_.v0"} != NONE && !$s{"$_.ends"} } 'a', 'b';
			@s{@fields} = @state;
			note(trace(\%from, $states[$at])) if $broken;
		}
		while (!$broken && @choices)
		{
			@s{@fields} = @state;
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
