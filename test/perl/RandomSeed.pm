# The random numbers of a test.  Each run prints TEST_SEED=n; with that in its environment,
# another one draws the same, which repeats all of it where one process does everything in
# turn, and of a load not how its sessions interleave.

package RandomSeed;

use strict;
use warnings;

use Exporter qw(import);
use Test::More;

our @EXPORT = qw(seed_random pick);

# To be called when the servers are there: the names of their directories are drawn as
# well, and again where they are taken.  Returns the seed.
sub seed_random
{
	my $seed = $ENV{TEST_SEED} // int rand 2**32;
	srand($seed);
	diag("TEST_SEED=$seed (repeats what this test chooses at random)");
	return $seed;
}

# One of these.
sub pick
{
	return $_[ rand @_ ];
}

1;
