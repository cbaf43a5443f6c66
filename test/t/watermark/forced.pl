# Interleavings of the watermark and of the upper bound whose windows are nanoseconds,
# forced: a session is held up between two steps, until others have done theirs.  Those
# of two sessions and one thing that each does are order/gaps.pl's.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use TestPoints;
use Watchdog;

my ($node) = new_test_build('forced', 'max_prepared_transactions = 5');

sub session
{
	return RawSession->start($node);
}

sub receive
{
	my ($session) = @_;
	my $rows = $session->receive;
	BAIL_OUT($session->{error}) if $session->{error} ne '';
	return $rows;
}

sub watermark
{
	return $node->safe_psql('postgres', 'SELECT uuidv7_feed_watermark()');
}

# Let a session run a statement, and go no further than the point.
sub hold
{
	my ($session, $name, $sql) = @_;
	return hold_at($session, $name, sub { $session->send($sql) });
}

sub wait_of
{
	my ($session) = @_;
	return "SELECT concat_ws(' ', wait_event_type, wait_event) FROM pg_stat_activity"
	  . " WHERE pid = $session->{pid}";
}

sub wait_for
{
	my ($session, $event) = @_;
	return wait_until('the other session waits, or has an answer',
		sub { $session->has_answer || $node->safe_psql('postgres', wait_of($session)) =~ $event });
}

my $insert = 'INSERT INTO made VALUES (uuidv7_feed_id()) RETURNING id';

$node->start;
{
	my ($writer, $other) = (session(), session());

	# The feed leads the clock, by a UUID that is observed, until the reset.  Two
	# transactions publish the same nanosecond, and both are prepared.
	$other->query_safe(q{SET fast_uuid.max_clock_lead = '1 d'; SELECT uuidv7_feed_observe(uuidv7_fast_at(now() + interval '1 h'))});
	$_->query_safe("BEGIN; SET LOCAL lock_timeout = '10 s'") foreach $writer, $other;
	hold($writer, 'published', $insert);
	my $id = $other->query_safe($insert);
	let_go('published');
	cmp_ok(receive($writer), 'gt', $id, 'a writer has published, and another one exchanges first: its value is greater');
	$_->query_safe("PREPARE TRANSACTION '$_->{pid}'") foreach $writer, $other;
	foreach my $prepared ($writer, $other)
	{
		cmp_ok(watermark(), 'le', $id, 'both are prepared: the watermark is not beyond their values');
		$prepared->query_safe("COMMIT PREPARED '$prepared->{pid}'");
	}
	cmp_ok(watermark(), 'gt', $id, 'until both are finished');
	$_->quit foreach $writer, $other;
}

# A session that has read a clock which is a year ahead, and has not joined the order
# yet, while the clock is corrected and the order reset.
SKIP:
{
	skip 'needs Linux', 1 unless $^O eq 'linux';
	my $now = 1_800_000_000_000_000_000;
	my $day = 86400 * 1_000_000_000;
	my $year = 365 * $day;
	$node->stop;
	my $clock = KnownClock->new($node);
	$clock->put($now + $year);

	my $bound = $node->safe_psql('postgres', "SELECT uuidv7_fast_max(to_timestamp($now / 1000000000 + 1))");
	my $observe = 'SELECT uuidv7_feed_observe(uuidv7_fast_min(to_timestamp(' . ($now + $year) / 1_000_000_000 . ')))';
	foreach my $case ([ 'SELECT uuidv7_feed_id()', '' ], [ $observe, qr/^22023 observed time is too far ahead/ ])
	{
		my ($call, $error) = @$case;
		$clock->put($now + $year);
		my ($late, $dba) = (session(), session());
		$dba->query_safe('SELECT uuidv7_feed_id()');
		hold($late, 'joining', $call);
		$clock->put($now);
		$dba->query_safe('SELECT uuidv7_feed_reset()');
		let_go('joining');
		my $id = $late->receive;
		like($late->{error}, $error || qr/^$/, "$call: " . ($error ? 'refused by the clock of after the reset' : 'no error'));
		$id = $late->query_safe('SELECT uuidv7_feed_id()') if $id !~ /-/;
		cmp_ok($id, 'lt', $bound, "$call: the time from before a reset does not count after it");
		cmp_ok($dba->query_safe('SELECT uuidv7_feed_id()'), 'lt', $bound, "$call: nor for the other sessions");
		$_->quit foreach $late, $dba;
	}

	# A reset has found nobody else: who joins meanwhile waits, and begins anew after it,
	# even with keys from before.
	$clock->put($now + $year);
	my ($late, $dba, $watch) = map { session() } 1 .. 3;
	my $key = $late->query_safe('SELECT uuidv7_fast()');
	$dba->query_safe('SELECT uuidv7_feed_id()');
	$clock->put($now);

	# Before PostgreSQL 19 a process knows the lock's name once it has shared memory.
	$watch->query_safe('SELECT FROM fast_uuid_stats()');
	hold($dba, 'resetting', 'SELECT uuidv7_feed_reset()');
	$late->send('SELECT uuidv7_feed_id()');
	wait_for($late, qr/^LWLock/);
	is($watch->query_safe(wait_of($late)), 'LWLock FastUuid', 'a session that joins during a reset waits for it');
	let_go('resetting');
	receive($dba);
	cmp_ok(receive($late), 'lt', $bound, '... and brings nothing from before');
	cmp_ok($late->query_safe('SELECT uuidv7_fast()'), 'gt', $key, '... while its keys go on');
	$_->quit foreach $late, $dba, $watch;
}

SKIP:
{
	skip 'needs Linux', 1 unless $^O eq 'linux';
	$node->stop;
	my $clock = KnownClock->new($node);
	$clock->put(1_800_100_000_000_000_000);

	my ($first, $second) = (session(), session());
	my $latest = $first->query_safe('SELECT uuidv7_feed_id()');
	$second->query_safe('SELECT uuidv7_feed_id()');

	# Half a second before it is reached the upper bound is moved ahead by one of them; the
	# others do without.
	$clock->step(600_000_000);
	hold($first, 'upper_bound_written', 'SELECT uuidv7_feed_id()');
	$second->send('SELECT uuidv7_feed_id()');
	my $id = $second->receive;
	is($second->{error}, '', 'a session moves the upper bound ahead of time: another one does not wait');
	cmp_ok($id, 'gt', $latest, 'and goes on');
	let_go('upper_bound_written');
	$latest = receive($first);
	cmp_ok($latest, 'lt', $id, 'the first one has its value from before');
	$latest = $id;

	# ... unless it has to look again, because the sequence was altered meanwhile.
	$clock->step(600_000_000);
	$_->query_safe('SELECT uuidv7_feed_id()') foreach $first, $second;
	$clock->step(600_000_000);
	hold($first, 'upper_bound_written', 'SELECT uuidv7_feed_id()');
	$node->safe_psql('postgres', 'GRANT SELECT ON fast_uuid_upper_bound TO pg_monitor');
	$second->send('SELECT uuidv7_feed_id()');
	wait_for($second, qr/ Buffer/);
	let_go('upper_bound_written');
	my @both = sort(receive($first), receive($second));
	ok($both[0] gt $latest && $both[1] gt $both[0], 'a session forgets how far it is covered: it waits for the one that moves the upper bound');
	$latest = $both[1];
	$_->quit foreach $first, $second;
}
$node->stop;
done_testing();
