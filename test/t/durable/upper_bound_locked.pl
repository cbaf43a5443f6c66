# Feed ids while somebody else has the upper bound's sequence locked: who can do without moving
# the upper bound does not wait; who cannot waits, can be cancelled, and finds the sequence
# again, or gone.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use KnownClock;
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = new_feed_node('locked', '');
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000_000_000_000);
my $call = 'SELECT uuidv7_feed_id()';
my $alter = 'ALTER SEQUENCE fast_uuid_upper_bound CACHE 1';
my $drop = 'DROP EXTENSION fast_uuid';
my %then = ($alter => qr/^$/, $drop => qr/^55000 feed ids require sequence/);

sub sql { return $node->safe_psql('postgres', $_[0]) }

sub wait_until_locked_out
{
	my ($session) = @_;
	my $waits = "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $session->{pid}";
	wait_until('the session waits', sub { sql($waits) eq 't' });
	return;
}

sub start_with_lock
{
	my ($lock) = @_;
	sql('CREATE EXTENSION IF NOT EXISTS fast_uuid');
	my ($owner, $other) = map { RawSession->start($node) } 1, 2;
	my $latest = $other->query_safe($call);
	$owner->query_safe("BEGIN; $lock");
	return ($owner, $other, $latest);
}

foreach my $lock ($alter, $drop)
{
	my ($owner, $writer, $latest) = start_with_lock($lock);
	$clock->step(600_000_000);
	my $id = within($node, $lock, sub { $writer->query_safe($call) });
	cmp_ok($id, 'gt', $latest, "beside $lock: who can do without the upper bound goes on");
	is(sql("SELECT count(*) FROM pg_locks WHERE pid = $writer->{pid}"), '0', '... without a lock');

	$clock->step(10_000_000_000);
	$writer->send($call);
	wait_until_locked_out($writer);
	cancel($node, "who cannot, beside $lock", $writer, $writer->{pid});
	$writer->send($call);
	wait_until_locked_out($writer);
	$owner->query_safe('COMMIT');
	$id = within($node, $lock, sub { $writer->receive });
	like($writer->{error}, $then{$lock}, "who cannot, after $lock");
	cmp_ok($id, 'gt', $latest, '... goes on') if $lock eq $alter;
	$_->quit foreach $owner, $writer;
}

# A reset that waits for it.  What that session knows of the upper bound afterwards is of the
# sequence: it learns when that is altered again.
foreach my $lock ($alter, $drop)
{
	my ($owner, $resetting) = start_with_lock($lock);
	$resetting->send('SELECT uuidv7_feed_reset()');
	wait_until_locked_out($resetting);
	$owner->query_safe('COMMIT');
	within($node, "a reset after $lock", sub { $resetting->receive });
	like($resetting->{error}, $then{$lock}, "a reset, after $lock");
	if ($lock eq $alter)
	{
		$owner->query_safe('ALTER SEQUENCE fast_uuid_upper_bound RESTART');
		$resetting->query_safe($call);
		is(sql(q{SELECT upper_bound > '2027-01-01' FROM fast_uuid_stats() WHERE name = 'feed'}),
			't', '... and the next id is below an upper bound');
	}
	$_->quit foreach $owner, $resetting;
}

# Dropped and made again more often than a backend has room for callbacks.
sql('CREATE EXTENSION fast_uuid');
my $writer = RawSession->start($node);
my $found = 0;
foreach (1 .. 15)
{
	$found++ if $writer->outcome($call) =~ /value/;
	sql($drop);
	$found++ if $writer->outcome($call) =~ /value/;
	sql('CREATE EXTENSION fast_uuid');
}
is($found, 15, 'the sequence is found whenever it is there');

# A backend that is not told which relations have changed, because it is too late to read so
# many messages.
my $latest = $writer->query_safe($call);
kill 'STOP', $writer->{pid} or die 'the session cannot be stopped';
sql(qq{
$drop;
CREATE EXTENSION fast_uuid;
DO \$\$ BEGIN
	FOR i IN 1 .. 1000 LOOP
		EXECUTE format('CREATE TABLE t%s (n int); DROP TABLE t%s', i, i);
	END LOOP;
END \$\$});
kill 'CONT', $writer->{pid};
$clock->step(10_000_000_000);
my $id = within($node, 'too many messages', sub { $writer->query_safe($call) });
cmp_ok($id, 'gt', $latest, 'the sequence that was made meanwhile is found, though nothing told');
$writer->quit;
$node->stop;
done_testing();
