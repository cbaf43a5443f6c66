# Two sessions at once, held between two steps that are nanoseconds apart: both publish the
# same nanosecond; one joins the feed while the other resets it; one generates while the other
# moves the upper bound; one begins to wait while the other ends a transaction.  What holds
# where one is held at any point is order/gaps.pl's.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use TestPoints;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = new_test_build('two_at_once', 'max_prepared_transactions = 5');
my $clock = KnownClock->new($node);
my $now = 1_800_000_000_000_000_000;
my $year = 365 * 86400 * 1_000_000_000;
my $generate = 'SELECT uuidv7_feed_id()';
my $soon = KnownClock::uuid_of($now + 1_000_000_000, 0);

# Two transactions publish the same nanosecond, and both are prepared.  The clock stands
# still, so that the feed leads it.
$clock->put($now);
{
	my ($writer, $other, $asks) = map { RawSession->start($node, $generate) } 1 .. 3;
	my $insert = 'INSERT INTO made VALUES (uuidv7_feed_id()) RETURNING id';
	my $watermark = 'SELECT uuidv7_feed_watermark()';
	$_->query_safe("BEGIN; SET LOCAL lock_timeout = '20 s'") foreach $writer, $other;
	hold_at($writer, 'published', sub { $writer->send($insert) });
	my $id = $other->query_safe($insert);
	let_go('published');
	cmp_ok($writer->receive, 'gt', $id,
		'a writer has published, another one exchanges first: the id of the former is greater');
	foreach my $session ($writer, $other)
	{
		$session->query_safe("PREPARE TRANSACTION '$session->{pid}'");
	}
	foreach my $session ($writer, $other)
	{
		cmp_ok($asks->query_safe($watermark), 'le', $id, 'prepared: the watermark is held back');
		$session->query_safe("COMMIT PREPARED '$session->{pid}'");
	}
	cmp_ok($asks->query_safe($watermark), 'gt', $id, 'until both are committed');
	$_->quit foreach $writer, $other, $asks;
}

# A session that has not joined yet has read a clock which is a year ahead, when the clock
# is corrected, and the feed reset.
my $far = KnownClock::uuid_of($now + $year, 0);
my %error_of = ($generate => qr/^$/,
	"SELECT uuidv7_feed_observe('$far')" => qr/^22023 observed time is too far ahead/);
foreach my $call (sort keys %error_of)
{
	$clock->put($now + $year);
	my ($late, $dba) = map { RawSession->start($node) } 1, 2;
	$dba->query_safe($generate);
	hold_at($late, 'joining', sub { $late->send($call) });
	$clock->put($now);
	$dba->query_safe('SELECT uuidv7_feed_reset()');
	let_go('joining');
	cmp_ok($late->receive, 'lt', $soon, "$call: the time from before a reset does not count");
	like($late->{error}, $error_of{$call}, '... as is told');
	cmp_ok($late->query_safe($generate), 'lt', $soon, '... nor for the next id');
	cmp_ok($dba->query_safe($generate), 'lt', $soon, '... nor for another session');
	$_->quit foreach $late, $dba;
}

# A reset has found nobody else: who joins meanwhile waits, and begins anew after it, even
# with keys from before.  Before PostgreSQL 19 a process knows the lock's name once it has
# shared memory.
{
	$clock->put($now + $year);
	my ($late, $dba, $watch) = map { RawSession->start($node) } 1 .. 3;
	my $key = $late->query_safe('SELECT uuidv7_fast()');
	$dba->query_safe($generate);
	$clock->put($now);
	$watch->query_safe('SELECT count(*) FROM fast_uuid_stats()');
	my $event = "SELECT wait_event FROM pg_stat_activity WHERE pid = $late->{pid}";
	hold_at($dba, 'resetting', sub { $dba->send('SELECT uuidv7_feed_reset()') });
	$late->send($generate);
	wait_until('it waits, or has an answer',
		sub { $late->has_answer || $watch->query_safe($event) eq 'FastUuid' });
	ok(!$late->has_answer, 'a session that joins during a reset waits for it');
	let_go('resetting');
	$dba->receive;
	cmp_ok($late->receive, 'lt', $soon, '... and brings nothing from before');
	is("$late->{error}$dba->{error}", '', '... without an error');
	cmp_ok($late->query_safe('SELECT uuidv7_fast()'), 'gt', $key, '... while its keys go on');
	$_->quit foreach $late, $dba, $watch;
}

# Half a second before it is reached the upper bound is moved ahead by one of them; the
# others do without.
{
	my ($first, $second) = map { RawSession->start($node, $generate) } 1, 2;
	$clock->put($now + 60_000_000_000);
	my $latest = $first->query_safe($generate);
	$second->query_safe($generate);
	$clock->step(600_000_000);
	hold_at($first, 'upper_bound_written', sub { $first->send($generate) });
	$second->send($generate);
	my $id = within($node, 'another session', sub { $second->receive });
	cmp_ok($id, 'gt', $latest, 'a session moves the upper bound: another one goes on');
	let_go('upper_bound_written');
	cmp_ok($first->receive, 'lt', $id, '... and the first one has its id from before');
	is("$first->{error}$second->{error}", '', '... both without an error');
	$_->quit foreach $first, $second;
}

# Who waits looks at the number once more when it is in the list.  Between its first look and
# that the transaction was counted, and found nobody to wake.
{
	my ($waits, $writer) = map { RawSession->start($node) } 1, 2;
	my $seen = $waits->query_safe('SELECT uuidv7_feed_wait(0)');
	$writer->query_safe("BEGIN; $generate");
	hold_at($waits, 'wait_listed', sub { $waits->send("SELECT uuidv7_feed_wait($seen, '1 day')") });
	hold_at($writer, 'waking', sub { $writer->send('COMMIT') });
	let_go('wait_listed');
	is(within($node, 'who waits', sub { $waits->receive }), $seen + 1, 'a wait is not too late');
	let_go('waking');
	$writer->receive;
	$_->quit foreach $waits, $writer;
}
$node->stop;
done_testing();
