# The low watermark's protocol, explored in a model.  In every interleaving of the
# configurations below each id under a returned watermark is visible to a snapshot
# taken then, or never will be; no id generated later is under it; and no later
# watermark is smaller.  Each of the mistakes below breaks that.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use WatermarkModel;

# A writer has so many transactions of up to so many ids, and its worker generates up
# to so many in each.  A reader is the number of its calls.  The clock's readings
# are above all that a reset leaves as the latest id.
my %configurations = (
	'two writers' => {
		writers => [ { transactions => 2, ids => 2 }, { transactions => 1, ids => 1 } ],
		readers => [2] },
	'a parallel worker' => {
		writers => [ { transactions => 1, ids => 1, worker => 1 }, { transactions => 1, ids => 1 } ],
		readers => [1] },
	'a parallel worker, prepared' => {
		writers => [ { transactions => 1, ids => 1, worker => 1, prepares => 1 } ],
		readers => [2] },
	'prepared, with a restart' => {
		writers => [ { transactions => 2, ids => 1, prepares => 1 } ],
		readers => [2],
		restarts => 1 },
	'a reset' => {
		writers => [ { transactions => 1, ids => 3 } ],
		readers => [2],
		resets => 1,
		clock => [ 5, 8 ] },
	'a parallel worker, with a reset' => {
		writers => [ { transactions => 1, ids => 2, worker => 1 } ],
		readers => [1],
		resets => 1,
		clock => [ 5, 8 ] });

# The mistake, the configuration that shows it, and what it changes in the protocol.
my @mutations = (
	[ 'publishes after the exchange', 'two writers', generate => [qw(exchange publish)] ],
	[ 'clears before the commit is visible', 'two writers', commit => [qw(clear visible)] ],
	[ 'the reader reads the slots before the latest id', 'two writers', read => [qw(epoch slots last decide)] ],
	[ 'the reader does not advance the latest id to the clock', 'two writers', advances => 0 ],
	[ 'the reader returns less than it did before', 'two writers', baseline => 0 ],

	[ 'a worker publishes in a slot of its own, cleared when it ends', 'a parallel worker', worker_publishes_in => 'own' ],
	[ "a worker overwrites its leader's slot", 'a parallel worker', worker_publishes => 'overwrites' ],
	[ 'a leader overwrites what its worker has published', 'a parallel worker', leader_publishes => 'overwrites' ],
	[ 'a leader does not clear what only its worker has published', 'a parallel worker, prepared', leader_clears => 'own' ],
	[ "the lock carries the leader's copy of the slot", 'a parallel worker, prepared', lock_carries => 'published' ],

	[ 'the lock is taken after the slot is cleared', 'prepared, with a restart',
		prepare => [qw(clear lock count prepare)] ],
	[ 'the generation is incremented before the lock is taken', 'prepared, with a restart',
		prepare => [qw(count lock prepare clear)] ],
	[ 'the generation is incremented after the slot is cleared', 'prepared, with a restart',
		prepare => [qw(lock prepare clear count)] ],
	[ 'the lock is released before the commit is visible', 'prepared, with a restart',
		finish => [qw(release visible)] ],
	[ 'the reader scans the locks before it reads the slots', 'prepared, with a restart',
		read => [qw(epoch last generation compare scan note slots decide)] ],
	[ 'the reader reads the generation before the slots', 'prepared, with a restart',
		read => [qw(epoch last generation slots compare scan note decide)] ],
	[ 'the reader notes the generation as it is after the scan', 'prepared, with a restart', notes_generation => 'latest' ],
	[ 'no scan is due after a restart', 'prepared, with a restart', none_as_of => 1 ],

	[ 'does not publish a smaller value after a reset', 'a reset', republishes => 0 ],
	[ 'the reset leaves the baseline of watermarks', 'a reset', reset => [qw(odd last even)] ],
	[ 'the reset begins with that baseline', 'a reset', reset => [qw(baseline odd last even)] ],
	[ 'the reader does not look at the epoch again', 'a reset', looks_again => 0 ]);

foreach my $name (sort keys %configurations)
{
	my $found = explore($configurations{$name});
	ok(!defined $found->{violation}, "$name: the promise holds in all of $found->{states} states")
	  or diag(join "\n", $found->{violation}, @{ $found->{trace} });
}
foreach my $mutation (@mutations)
{
	my ($what, $where, @changed) = @$mutation;
	my $found = explore($configurations{$where}, @changed);
	ok(defined $found->{violation}, "noticed: $what ($where)");
	note(join "\n", $found->{violation}, @{ $found->{trace} }) if defined $found->{violation};
}

done_testing();
