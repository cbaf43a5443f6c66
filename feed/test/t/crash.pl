# A server that is killed: a position that a reader keeps elsewhere is not ahead of numbers that
# are given afterwards, also where commits are asynchronous, because watermark() flushes what it
# vouches for.  And killed backends hold nobody back.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;
use Watchdog;

# Nothing else flushes: no background writer, no walwriter for a while, no checkpoint.
my $node = start_node('crash', q{
fsync = on
synchronous_commit = off
wal_writer_delay = 10s
wal_writer_flush_after = 0
bgwriter_lru_maxpages = 0
checkpoint_timeout = 1h
});
$node->safe_psql('postgres', table('t'));
my $insert = "INSERT INTO t (way) VALUES ('x') RETURNING id";
foreach my $turn (1 .. 3)
{
	my $session = RawSession->start($node);
	$session->query_safe('CHECKPOINT');
	$session->query_safe('SET synchronous_commit = off');
	$session->query_safe($insert) foreach 1 .. 100;
	my $position = $session->query_safe("SELECT max(id) FROM t WHERE ${\ below('t')}");
	$node->stop('immediate');
	$node->start;
	cmp_ok($node->safe_psql('postgres', $insert), '>', $position,
		"crash $turn: the next number is above a position that was read before");
}

# Sessions that are killed, in a transaction and at its end: the server begins anew, and holds
# nobody back.  One that is terminated holds nobody back either.
$node->append_conf('postgresql.conf', 'restart_after_crash = on');
$node->reload;
foreach my $signal ('KILL', 'TERM')
{
	my $session = RawSession->start($node);
	$session->query_safe('BEGIN');
	my $late = $session->query_safe($insert);
	$node->safe_psql('postgres', $insert);
	is($node->safe_psql('postgres', "SELECT fast_feed.watermark('t')"), $late, "$signal: held back");
	kill $signal, $session->{pid};
	wait_until_up($node);
	wait_until("$signal: it is gone", sub { !kill 0, $session->{pid} });
	wait_until_up($node);
	ok($node->poll_query_until('postgres', "SELECT fast_feed.watermark('t') > $late"), "$signal: held back no more");
}

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
