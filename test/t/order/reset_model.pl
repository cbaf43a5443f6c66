# The reset of the instance's order, explored in a model.  In every interleaving of the
# configurations below an id of a call that begins after the resets have returned does not
# continue from before them, nor does the upper bound; and between resets ids ascend.  Each of
# the mistakes below breaks that.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use ResetModel;
use StateSearch;

# Sessions have so many calls each.  All have generated before, under the order of the
# instance, if it is not said otherwise; each call is under that order, or under session
# order if there is that.  The clock is right when so many of the resets have begun.
my %configurations = (
	'one reset' => { resets => 1, sessions => [ { calls => 3 } ] },
	'a reset, and two sessions' => { resets => 1, sessions => [ { calls => 2 }, { calls => 2 } ] },
	'a reset, and session order' => { resets => 1, sessions => [ { calls => 2 }, { calls => 1 } ], session_order => 1 },
	'a reset, and a first entry' =>
	  { resets => 1, sessions => [ { calls => 2, entered => 0 }, { calls => 1 } ], session_order => 1 },
	'two resets' => { sessions => [ { calls => 2 } ], right_from => 2 },
	'two resets, and session order' => { sessions => [ { calls => 1 }, { calls => 1 } ], session_order => 1 },
	'two resets, the clock being right with the second' => { sessions => [ { calls => 1 }, { calls => 1 } ], right_from => 2 },
	'durable order, a reset' => { resets => 1, sessions => [ { calls => 2 } ], durable => 1 },
	'durable order, two resets' => { sessions => [ { calls => 2 } ], durable => 1 });

# The mistake, the configuration that shows it, and what it changes in the protocol.
my @mutations = (
	[ 'no increment before the exchange', 'one reset', reset => [qw(lock exchange mark bound)] ],
	[ 'no increment after it', 'one reset', reset => [qw(lock mark exchange bound)] ],
	[ 'two increments that do not tell that a reset goes on', 'one reset', reset => [qw(lock mark exchange mark bound)] ],
	[ 'it never ends', 'a reset, and session order', reset => [qw(lock begin exchange bound)] ],
	[ 'the exchange comes first', 'one reset', reset => [qw(lock exchange begin end bound)] ],
	[ 'the exchange comes last', 'one reset', reset => [qw(lock begin end exchange bound)] ],
	[ 'all resets have one tag', 'two resets', tag => 'the same' ],

	[ 'without the barrier the epoch is read before the word', 'one reset', generate => [qw(clock epoch word exchange)] ],
	[ 'who fails to exchange does not look at the epoch again', 'one reset', looks_again => 0 ],
	[ 'who sees another epoch does not read the clock again', 'one reset', reads_clock_again => 0 ],
	[ 'who sees another epoch does not forget', 'one reset', forgets => 'none' ],
	[ 'who sees that a reset goes on forgets only at the first look', 'one reset', forgets_while => 0 ],
	[ 'a session that enters for the first time takes the epoch as it is', 'a reset, and a first entry', first_epoch => 'present' ],

	[ 'durable order does not look at the epoch under the lock', 'durable order, a reset', checks_under_lock => 0 ],
	[ 'a reset leaves the lock before it has reset the word', 'durable order, a reset', reset => [qw(lock bound begin exchange end)] ]);

check_model(\&explore_reset, \%configurations, @mutations);

done_testing();
