# uuidv7_feed_wait(), explored in a model: no wake-up is lost in any interleaving of
# these transactions with a reader in its loop.  Each of the mistakes below loses one.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use StateSearch;
use WaitModel;

my %configurations = (
	'two rows' => [qw(row row without_ids)], 'held back' => [qw(row generates without_ids)], 'rolled back' => [qw(row rollback without_ids)]);

my @mutations = (
	[ 'wakes before first_ns is cleared', 'two rows', end => [qw(complete count look clear)] ],
	[ 'wakes before the end is visible', 'two rows', end => [qw(clear count look complete)] ],
	[ 'looks at the list before it counts, or counts without a barrier', 'two rows', end => [qw(complete clear look count)] ],
	[ 'reads the number before it enters the list, or enters without a barrier', 'two rows', reader => [qw(check enter scan keep begin scan decide)] ],
	[ 'does not look at the list', 'two rows', end => [qw(complete clear count)] ],
	[ 'does not count, and wakes', 'two rows', end => [qw(complete clear look)] ],
	[ 'counts only what has a transaction number', 'held back', counts => 'number' ],
	[ 'counts only what can have rows', 'rolled back', counts => 'row' ],
	[ 'computes no watermark after the number', 'two rows', reader => [qw(enter check begin scan decide)] ],
	[ 'computes the watermark before the number', 'two rows', reader => [qw(scan keep enter check begin scan decide)] ],
	[ 'waits in a transaction that was given a watermark', 'held back', forgets => 0 ],
	[ 'waits although it was given a row', 'two rows', again => 0 ]);

check_model(\&explore_wait, \%configurations, @mutations);

done_testing();
