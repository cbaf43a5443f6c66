# After a quick restart the upper bound is ahead of the clock, and sessions wait for that: until
# the clock has passed it, or for as long as a right clock would take, though this one stands
# still.  They can be cancelled.  The timeout of uuidv7_feed_wait() ends as well.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $second = 1_000_000_000;
my $generate = 'SELECT uuidv7_feed_id()';
my $node = PostgreSQL::Test::Cluster->new('waits');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000 * $second);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $latest = $node->safe_psql('postgres', $generate);
my $event = $node->pg_version >= 17 ? 'FastUuidUpperBound' : 'Extension';

# Two sessions of the next incarnation, which wait until the test goes on, because the clock by
# which they see how long they have waited stands still, too.
sub start_waiting
{
	$node->stop;
	$clock->start($node);
	$clock->stop_monotonic(1);
	my @sessions = map { RawSession->start($node) } 1, 2;
	$_->send($generate) foreach @sessions;
	my $waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '$event'";
	wait_until('both wait, or have an answer',
		sub { $node->safe_psql('postgres', $waiting) == 2 || grep { $_->has_answer } @sessions });
	is($node->safe_psql('postgres', $waiting), '2', 'both sessions wait for the clock');
	return @sessions;
}

my ($cancelled, $patient) = start_waiting();
cancel($node, 'a wait for the clock', $cancelled, $cancelled->{pid});
check_alive($cancelled, $cancelled->{pid}, 'after the cancel');
ok(!$patient->has_answer, 'the other session still waits');
$clock->stop_monotonic(0);
my $id = within($node, 'a wait for the clock', sub { $patient->receive });
cmp_ok($id, 'gt', $latest, 'a wait for a clock that stands still ends, beyond all before');

my $ended = $patient->query_safe('SELECT uuidv7_feed_wait(0)');
my $wait = "SELECT uuidv7_feed_wait($ended, '10 ms')";
is(within($node, 'a timeout', sub { $patient->query_safe($wait) }),
	$ended, 'a timeout is over though the clock stands still');
$_->quit foreach $cancelled, $patient;

# Those who wait go on when the clock has passed the upper bound, and are not ahead of that.
$clock->step($second);
my @sessions = start_waiting();
$clock->step(2 * $second);
foreach my $session (@sessions)
{
	$id = within($node, 'the clock has passed', sub { $session->receive });
	cmp_ok(KnownClock::ns_of($id), '<', $clock->now + 100, '... and go on with the clock');
	$session->quit;
}
$node->stop;
done_testing();
