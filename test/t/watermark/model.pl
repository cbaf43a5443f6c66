# The watermark's protocol, explored in a model.  In every interleaving of the
# configurations below each id under a returned watermark is of a transaction that had
# completed for the snapshot of the statement that asked; and no id generated later is
# under it.  Each of the mistakes below breaks that.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use WatermarkModel;
use StateSearch;

# Each writer has one transaction of up to so many ids.  The reader makes two calls, each
# in a snapshot of its own or in that of the call before.  The clock's readings are above
# all that a reset leaves as the latest id.
my %configurations = (
	'two writers' => { ids => [ 2, 1 ], clock => [1] },
	'prepared, with a restart' => { ids => [1], clock => [ 1, 3 ], prepares => 1, restart => 1 },
	'a reset' => { ids => [2], clock => [ 5, 8 ], reset => 1 });

# The mistake, the configuration that shows it, and what it changes in the protocol.
my @mutations = (
	[ 'publishes after the exchange', 'two writers', generate => [qw(exchange publish)] ],
	[ 'clears before the commit is visible', 'two writers', commit => [qw(clear complete)] ],
	[ 'does not clear', 'two writers', commit => [qw(complete)] ],
	[ 'the reader reads the slots before the latest id', 'two writers', read => [qw(epoch slots raise snapshot decide)] ],
	[ 'the reader does not raise the latest id to the clock', 'two writers', raises => 0 ],

	[ 'the reader takes its snapshot before it reads the slots', 'two writers', read => [qw(epoch raise snapshot slots decide)] ],
	[ 'the reader does not compare its snapshot with the one of the statement', 'two writers', compares_own => 0 ],
	[ 'of snapshots only xmax is compared', 'two writers', compares => 'xmax' ],
	[ 'of snapshots only who was running is compared', 'two writers', compares => 'running' ],
	[ 'the snapshot of a watermark that was kept is not compared', 'two writers', compares_kept => 0 ],

	[ 'the lock is taken after the slot is cleared', 'prepared, with a restart',
		prepare => [qw(clear lock count prepare)] ],
	[ 'the generation is incremented before the lock is taken', 'prepared, with a restart',
		prepare => [qw(count lock prepare clear)] ],
	[ 'the generation is incremented after the slot is cleared', 'prepared, with a restart',
		prepare => [qw(lock prepare clear count)] ],
	[ 'the lock is released before the commit is visible', 'prepared, with a restart',
		finish => [qw(release complete)] ],
	[ 'the reader scans the locks before it reads the slots', 'prepared, with a restart',
		read => [qw(epoch raise generation compare scan note slots snapshot decide)] ],
	[ 'the reader reads the generation before the slots', 'prepared, with a restart',
		read => [qw(epoch raise generation slots compare scan note snapshot decide)] ],
	[ 'the reader takes its snapshot before it reads the generation', 'prepared, with a restart',
		read => [qw(epoch raise slots snapshot generation compare scan note decide)] ],
	[ 'the reader takes its snapshot before it scans the locks', 'prepared, with a restart',
		read => [qw(epoch raise slots generation snapshot compare scan note decide)] ],
	[ 'the reader notes the generation as it is after the scan', 'prepared, with a restart', notes_generation => 'latest' ],
	[ 'no scan is due after a restart', 'prepared, with a restart', none_as_of => 1 ],

	[ 'does not publish a smaller value after a reset', 'a reset', republishes => 0 ],
	[ 'what is kept of before a reset is found', 'a reset', kept_with_epoch => 0 ],
	[ 'the reader reads the epoch after the latest id', 'a reset', read => [qw(raise epoch slots snapshot decide)] ],
	[ 'the reader does not look at the epoch again', 'a reset', looks_again => 0 ]);

check_model(\&explore, \%configurations, @mutations);

done_testing();
