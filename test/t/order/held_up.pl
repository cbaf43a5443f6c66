# A wait for the clock after a restart ends, though the clock stands still, and can be
# cancelled; so does the timeout of uuidv7_feed_wait().

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

my $node     = PostgreSQL::Test::Cluster->new('held_up');
my $generate = 'SELECT uuidv7_feed_id()';
$node->init;
$node->append_conf('postgresql.conf',
	"shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000_000_000_000);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $latest = $node->safe_psql('postgres', $generate);

# After a quick restart the upper bound is ahead of the clock, and that is waited for; no
# longer than a clock that is right would take.

# A session of the server's next incarnation, and its process, that wait for the clock.  If
# it is to be cancelled, another one has begun to wait before, and goes on with that;
# the upper bound is as far ahead as is waited for, in one go.
# A machine that is slow enough may miss both, and looks at another incarnation.
# In each incarnation the upper bound moves ahead by a second.
my $event = $node->pg_version >= 17 ? 'FastUuidUpperBound' : 'Extension';
my $incarnations   = 0;
my $waiting = sub {
	my ($cancel) = @_;
	foreach (1 .. 10)
	{
		$node->stop;
		unlink $node->basedir . '/clock';
		$clock = KnownClock->new($node);
		$clock->put(1_800_000_000_000_000_000 + $incarnations++ * 1_000_000_000 - ($cancel ? 995_000_000 : 0));
		my @sessions = map { RawSession->start($node) } 1 .. ($cancel ? 2 : 1);
		my @pids     = map { $_->query('SELECT pg_backend_pid()') } @sessions;
		foreach my $n (0 .. $#sessions)
		{
			$sessions[$n]->send($generate);
			$node->poll_query_until('postgres',
				"SELECT wait_event = '$event' OR state = 'idle' FROM pg_stat_activity WHERE pid = $pids[$n]");
		}
		my ($session, $pid) = ($sessions[-1], $pids[-1]);
		$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)") if $cancel;
		my $id   = within($node, 'a wait for the clock', sub { $session->receive });
		my $seen = !$cancel || $session->{error} ne '' && !$sessions[0]->has_answer;
		$latest = within($node, 'the wait of the other', sub { $sessions[0]->receive }) if $cancel;
		$sessions[0]->quit if $cancel;
		return ($session, $pid, $id) if $seen;
		$session->quit;
	}
	BAIL_OUT('no session waits, or none is cancelled before another has waited to the end');
};
my ($session, $pid, $id) = $waiting->('cancel it');
is($id . substr($session->{error}, 0, 5), '57014', 'a wait for the clock is cancelled, and not at its end');
within($node, 'a wait that was cancelled: afterwards', sub { check_alive($session, $pid, 'a wait that was cancelled') });
$session->quit;
($session, $pid, $id) = $waiting->();
cmp_ok($id, 'gt', $latest, 'a wait for a clock that stands still ends, beyond all before');
within($node, 'a wait that has ended: afterwards', sub { check_alive($session, $pid, 'a wait that has ended') });

my $seen = $session->query_safe('SELECT uuidv7_feed_wait(0)');
is(within($node, 'a timeout', sub { $session->query_safe("SELECT uuidv7_feed_wait($seen, '10 ms')") }), $seen, 'a timeout is over though the clock stands still');

# Those who wait go on when the clock has passed it, and are never ahead of that.
my $now = 1_900_000_000_000_000_000;
$session->query_safe('SELECT uuidv7_feed_reset()');
$session->quit;
$clock->put($now);
$node->safe_psql('postgres', "SELECT setval('fast_uuid_upper_bound', $now / 1000 + 1900000)");
my @sessions = map { RawSession->start($node) } 1, 2;
$sessions[0]->send($generate);
$sessions[1]->send('SELECT uuidv7_feed_id()');
my $wait = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '$event'";
wait_until('both wait, or have an answer',
	sub { $node->safe_psql('postgres', $wait) == 2 || grep { $_->has_answer } @sessions });
is($node->safe_psql('postgres', $wait), '2', 'an upper bound is two seconds ahead: both sessions wait');
$clock->step(2_000_000_000);
my @ids = sort { $a cmp $b } within($node, 'who waits', sub { map { $_->receive } @sessions });
cmp_ok(KnownClock::ns_of($ids[1]), '<', $now + 2_000_000_100, '... and go on when the clock has passed it');
$_->quit foreach @sessions;
$node->stop;
done_testing();
