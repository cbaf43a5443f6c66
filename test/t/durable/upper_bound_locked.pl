# Feed ids while somebody else has the upper bound's sequence locked: who can do
# without moving the upper bound does not wait; who cannot waits, can be cancelled, and finds
# the sequence again, or gone.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use KnownClock;
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node  = new_feed_node('locked', '');
my $clock = KnownClock->new($node);
my $now   = 1_800_000_000_000_000_000;
$clock->put($now);
my $call = 'SELECT uuidv7_feed_id()';

sub wait_until_locked_out
{
	my ($pid) = @_;
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid") or BAIL_OUT("process $pid does not wait");
	return;
}

foreach my $case (
	[ 'it is altered', 'ALTER SEQUENCE fast_uuid_upper_bound CACHE 1', 'COMMIT', '' ],
	[ 'it is dropped, which is rolled back', 'DROP EXTENSION fast_uuid', 'ROLLBACK', '' ],
	[ 'it is dropped', 'DROP EXTENSION fast_uuid', 'COMMIT', qr/^55000 feed ids require sequence/ ])
{
	my ($name, $lock, $end, $error) = @$case;
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS fast_uuid');
	my ($owner, $writer) = map { RawSession->start($node) } 1, 2;
	my $pid    = $writer->query_safe('SELECT pg_backend_pid()');
	my $latest = $writer->query_safe($call);
	$owner->query_safe('BEGIN');
	$owner->query_safe($lock);

	$clock->step(600_000_000);
	my $id = within($node, "$name: who can do without the upper bound", sub { $writer->query($call) });
	is($writer->{error}, '', "$name: who can do without the upper bound does not wait");
	cmp_ok($id, 'gt', $latest, "$name: and goes on");
	is($node->safe_psql('postgres', "SELECT count(*) FROM pg_locks WHERE pid = $pid"), '0', "$name: without a lock");

	$clock->step(10_000_000_000);
	$writer->send($call);
	wait_until_locked_out($pid);
	ok(!$writer->has_answer, "$name: who cannot waits");
	cancel($node, $name, $writer, $pid);

	$writer->send($call);
	wait_until_locked_out($pid);
	$owner->query_safe($end);
	$id = within($node, "$name: in the end", sub { $writer->receive });
	if ($error)
	{
		like($writer->{error}, $error, "$name: an error in the end");
		unlike($writer->outcome($call), qr/value/, "$name: nor does the next call give a value");
	}
	else
	{
		is($writer->{error}, '', "$name: no error in the end");
		cmp_ok($id, 'gt', $latest, "$name: it goes on");
	}
	$_->quit foreach $owner, $writer;
}
is($node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid; SELECT uuidv7_feed_id() IS NOT NULL'), 't', 'the server goes on');

# A reset that waits for it.  What the resetting session knows of the upper bound afterwards
# is of the sequence: it learns when that is altered again.
foreach my $lock ('ALTER SEQUENCE fast_uuid_upper_bound CACHE 1', 'DROP EXTENSION fast_uuid')
{
	my ($owner, $resetting) = map { RawSession->start($node) } 1, 2;
	my $pid = $resetting->query_safe('SELECT pg_backend_pid()');
	$resetting->query_safe($call);
	$owner->query_safe('BEGIN');
	$owner->query_safe($lock);
	$resetting->send('SELECT uuidv7_feed_reset()');
	wait_until_locked_out($pid);
	$owner->query_safe('COMMIT');
	within($node, "a reset after $lock", sub { $resetting->receive });
	if ($lock =~ /DROP/)
	{
		like($resetting->{error}, qr/^55000 feed ids require sequence/, 'it is dropped: a reset finds that');
	}
	else
	{
		is($resetting->{error}, '', 'it is altered: a reset goes on');
		$owner->query_safe('ALTER SEQUENCE fast_uuid_upper_bound RESTART');
		$resetting->query_safe($call);
		is($owner->query_safe(q{SELECT upper_bound IS NOT NULL FROM fast_uuid_stats() WHERE name = 'feed'}),
			't', 'it is altered: ... and the next UUID is below an upper bound');
	}
	$_->quit foreach $owner, $resetting;
	is($node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS fast_uuid; SELECT uuidv7_feed_id() IS NOT NULL'), 't', 'the server goes on');
}

# Dropped and made again more often than a backend can be told of by callbacks of its
# own.
my $patient = RawSession->start($node);
foreach (1 .. 15)
{
	$patient->query($call);
	is($patient->{error}, '', 'the sequence is found') if $_ == 1 || $_ == 15;
	$node->safe_psql('postgres', 'DROP EXTENSION fast_uuid');
	$patient->query($call);
	like($patient->{error}, qr/^42883 |^55000 /, 'and missed') if $_ == 1 || $_ == 15;
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
}
$patient->quit;

# A backend that was not told which relations have changed, because it was too late to
# read so many messages.
my $writer = RawSession->start($node);
my $pid    = $writer->query_safe('SELECT pg_backend_pid()');
my $latest = $writer->query_safe($call);
kill 'STOP', $pid or BAIL_OUT("could not stop $pid");
$node->safe_psql('postgres', q{
DROP EXTENSION fast_uuid;
CREATE EXTENSION fast_uuid;
DO $$ BEGIN
  FOR i IN 1 .. 1000 LOOP
    EXECUTE 'CREATE TABLE t' || i || ' (n int)';
    EXECUTE 'DROP TABLE t' || i;
  END LOOP;
END $$});
kill 'CONT', $pid;
$clock->step(10_000_000_000);
my $id = within($node, 'too many messages', sub { $writer->query($call) });
is($writer->{error}, '', 'the sequence that was made meanwhile is found, although nothing told of it');
cmp_ok($id, 'gt', $latest, '... and the order kept');
$writer->quit;
$node->stop;
done_testing();
