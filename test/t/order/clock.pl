# A clock that cannot be read, and one whose time no UUID can hold, are errors, whatever is
# asked; nothing is generated, and nothing is reset.  So is the end of the nanoseconds.  From
# any other step of the clock keys go on.
#
# After a quick restart the upper bound is ahead of the clock, and sessions wait for that: until
# the clock has passed it, or for as long as a right clock would take, though this one stands
# still.  They can be cancelled.

use strict;
use warnings;

use Errno qw(EINVAL);
use List::Util qw(max);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('clock');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
my $now = 1_800_000_000_999_999_999;
my $end = 18_446_744_073_000_000_000;
$clock->put($now);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = RawSession->start($node);

my @keys = ('uuidv7_fast()', "uuidv7_fast('xorshift128+')", "uuidv7_fast(interval '0')",
	'uuidv7_fast_array(1)');
my @feed_ids = ('uuidv7_feed_id()', 'uuidv7_feed_position()');
my @others = ('uuidv7_fast_array(1000)', 'fast_uuid_stats()', 'uuidv7_feed_watermark()',
	'uuidv7_feed_wait(0)', 'uuidv7_feed_reset()', 'uuidv7_feed_position_observe(0)');

sub check_errors
{
	my ($what, $error, @calls) = @_;
	foreach my $call (@calls)
	{
		$session->query("SELECT $call");
		like($session->{error}, qr/^$error\|/, "$what: $call is an error");
	}
	return;
}

sub latest_key { return KnownClock::ns_of($session->query_safe('SELECT uuidv7_fast()')) }

my $unreadable = '58000 could not read the system clock: Invalid argument';
my $out_of_range = '22008 time out of range for a generated UUID';
foreach my $case (
	{ clock => 'cannot be read', fails => EINVAL, error => $unreadable },
	{ clock => 'shows a time before 1970', fails => -1, error => $out_of_range },
	{ clock => 'shows a time after 2554', at => $end + 709_551_615, error => $out_of_range })
{
	my $latest = latest_key();
	$clock->fail($case->{fails}) if $case->{fails};
	$clock->put($case->{at}) if $case->{at};
	check_errors("a clock that $case->{clock}", $case->{error}, @keys, @feed_ids, @others);
	like($session->outcome('SELECT uuidv7_fast_at(now())'), qr/^value/, '... not a given time');
	$clock->fail(0);
	$clock->put($now);
	is(latest_key(), $latest + 1, '... then the session goes on, where it was');
}

# Whatever the clock does, a key has its time or the nanosecond after the latest key; so has each
# of an array, which here is longer than what one reading of the clock serves.
my ($hour, $day) = (3_600_000_000_000, 86_400_000_000_000);
my $latest_ns = latest_key();
foreach my $step (0, 1, -1, 1000, -$hour, 500, $hour, $day, -$day - $hour)
{
	$clock->step($step);
	my $ids = join "\n", map { $session->query_safe("SELECT $_") } 'uuidv7_fast()',
	  'unnest(uuidv7_fast_array(600))', "uuidv7_fast('getrandom') FROM generate_series(1, 9)";
	my @expected = map { $latest_ns = max($clock->now, $latest_ns + 1) } 1 .. 610;
	is(join(' ', map { KnownClock::ns_of($_) } split /\n/, $ids),
		"@expected", "keys, after a step of $step ns");
}
$clock->put($now);

# A reset that fails because of the clock resets nothing.
$clock->put($now + 100_000_000_000);
my $ahead = $session->query_safe('SELECT uuidv7_feed_id()');
$clock->fail(-1);
check_errors('before 1970', $out_of_range, 'uuidv7_feed_reset()');
$clock->fail(0);
$clock->put($now);
is($session->query("SELECT uuidv7_feed_id() > '$ahead'"), 't', '... and ids go on from before');
$session->query_safe('SELECT uuidv7_feed_reset()');

# Each nanosecond up to the last, and no further.
$clock->put($end - 300);
my $ids = join "\n", map { $session->query_safe("SELECT $_") }
  'uuidv7_fast()', 'unnest(uuidv7_fast_array(256))', 'uuidv7_fast() FROM generate_series(1, 43)';
is( join(' ', map { $end - KnownClock::ns_of($_) } split /\n/, $ids),
	join(' ', reverse 1 .. 300), 'keys: the last nanoseconds there are');
check_errors('at the end', $out_of_range, @keys,
	q{uuidv7_feed_observe(uuidv7_fast_max('2554-07-21 23:34:33Z'))});
$clock->put($now);
check_errors('far behind', $out_of_range, @keys);
$session->quit;
$session = RawSession->start($node);
$clock->put($now);    # OpenSSL may have read it
is(latest_key(), $now, 'keys: a new session begins with the clock');

# Positions end where type bigint does, feed ids two seconds before the end, so that the upper
# bound stays in range.
my $last = 2**63 - 1024;
$clock->put($last);
cmp_ok($session->query_safe('SELECT uuidv7_feed_position()'), '==', $last, 'a position of 2262');
$clock->put($end - 10_000_000_000);
check_errors('after 2262', '22008 time of the UUID is out of range for type bigint',
	'uuidv7_feed_position()', 'uuidv7_feed_position_watermark()');
$session->query_safe('SELECT uuidv7_feed_id()');
my $bound = $session->query_safe('SELECT last_value FROM fast_uuid_upper_bound');
foreach my $ns (1_500_000_000, 500_000_000, -500_000_000)
{
	$clock->put($end - $ns);
	check_errors("$ns ns from the end", $out_of_range, @feed_ids);
}
is($session->query_safe('SELECT last_value FROM fast_uuid_upper_bound'), $bound,
	'... and no upper bound is written');
$clock->put($now);
$session->query_safe('SELECT uuidv7_feed_reset()');
my $latest = $session->query_safe('SELECT uuidv7_feed_id()');
$session->quit;

# Two sessions of the next incarnation, which wait until the test goes on, because the clock by
# which they see how long they have waited stands still, too.
my $event = $node->pg_version >= 17 ? 'FastUuidUpperBound' : 'Extension';

sub start_waiting
{
	$node->stop;
	$clock->start($node);
	$clock->stop_monotonic(1_000_000_000);
	my @sessions = map { RawSession->start($node) } 1, 2;
	$_->send('SELECT uuidv7_feed_id()') foreach @sessions;
	my $waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = '$event'";
	wait_until('both sessions wait', sub { $node->safe_psql('postgres', $waiting) == 2 });
	return @sessions;
}

my ($cancelled, $patient) = start_waiting();
cancel($node, 'a wait for the clock', $cancelled, $cancelled->{pid});
check_alive($cancelled, $cancelled->{pid}, 'after the cancel');
ok(!$patient->has_answer, 'the other session still waits');
$clock->stop_monotonic(0);
my $id = within($node, 'a wait for the clock', sub { $patient->receive });
cmp_ok($id, 'gt', $latest, 'a wait for a clock that stands still ends, beyond all before');
my $wait = "SELECT uuidv7_feed_wait(uuidv7_feed_wait(0), '10 ms')";
within($node, 'a timeout, though the clock stands still', sub { $patient->query_safe($wait) });
$_->quit foreach $cancelled, $patient;

# Those who wait go on when the clock has passed the upper bound, and are not ahead of that.
$clock->step(1_000_000_000);
my @sessions = start_waiting();
$clock->step(2_000_000_000);
foreach my $waiting (@sessions)
{
	$id = within($node, 'the clock has passed', sub { $waiting->receive });
	cmp_ok(KnownClock::ns_of($id), '<', $clock->now + 100, '... and go on with the clock');
	$waiting->quit;
}
$node->stop;
done_testing();
