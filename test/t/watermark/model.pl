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
# in a snapshot of its own or in that of the call before.
my %configurations = (
	'two writers' => { ids => [ 2, 1 ], clock => [1] },
	'prepared, with a restart' => { ids => [1], clock => [ 1, 3 ], prepares => 1, restart => 1 });

# The mistake, the configuration that shows it, and what it changes in the protocol.
my @mutations = (
	[ 'publishes after the exchange', 'two writers', generate => [qw(exchange publish)] ],
	[ 'clears before the commit is visible', 'two writers', commit => [qw(clear complete)] ],
	[ 'does not publish a smaller value', 'prepared, with a restart', republishes => 0 ],
	[ 'does not clear', 'two writers', commit => [qw(complete)] ],
	[ 'the reader reads the first_ns before the latest id', 'two writers', read => [qw(first_ns advance snapshot decide)] ],
	[ 'the reader does not advance the latest id to the clock', 'two writers', advances => 0 ],

	[ 'the reader takes its snapshot before it reads the first_ns', 'two writers', read => [qw(advance snapshot first_ns decide)] ],
	[ 'the reader does not compare its snapshot with the one of the statement', 'two writers', compares_own => 0 ],
	[ 'of snapshots only xmax is compared', 'two writers', compares => 'xmax' ],
	[ 'of snapshots only who was running is compared', 'two writers', compares => 'running' ],
	[ 'the snapshot of a watermark that was kept is not compared', 'two writers', compares_kept => 0 ],

	[ 'the lock is taken after the first_ns is cleared', 'prepared, with a restart',
		prepare => [qw(clear lock count prepare)] ],
	[ 'the number of prepared ones is incremented before the lock is taken', 'prepared, with a restart',
		prepare => [qw(count lock prepare clear)] ],
	[ 'the number of prepared ones is incremented after the first_ns is cleared', 'prepared, with a restart',
		prepare => [qw(lock prepare clear count)] ],
	[ 'the lock is released before the commit is visible', 'prepared, with a restart',
		finish => [qw(release complete)] ],
	[ 'the reader scans the locks before it reads the first_ns', 'prepared, with a restart',
		read => [qw(advance prepared_count compare scan note first_ns snapshot decide)] ],
	[ 'the reader reads the number of prepared ones before the first_ns', 'prepared, with a restart',
		read => [qw(advance prepared_count first_ns compare scan note snapshot decide)] ],
	[ 'the reader takes its snapshot before it reads the number of prepared ones', 'prepared, with a restart',
		read => [qw(advance first_ns snapshot prepared_count compare scan note decide)] ],
	[ 'the reader takes its snapshot before it scans the locks', 'prepared, with a restart',
		read => [qw(advance first_ns prepared_count snapshot compare scan note decide)] ],
	[ 'the reader notes the number of prepared ones as it is after the scan', 'prepared, with a restart', notes_count => 'latest' ],
	[ 'no scan is due after a restart', 'prepared, with a restart', prepared_ended => 1 ]);

check_model(\&explore, \%configurations, @mutations);

done_testing();
