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
	# In a condition the planner would call it as well, and flush for it.
	my $position = $session->query_safe("SELECT fast_feed.watermark('t') - 1");
	cmp_ok($position, '>=', 100, "crash $turn: the position");
	$node->stop('immediate');
	$node->start;
	cmp_ok($node->safe_psql('postgres', $insert), '>', $position,
		"crash $turn: the next number is above a position that was read before");
}

# Files of sequences in which PostgreSQL has copied how many numbers are logged ahead, though here
# none is.
my %made = (
	'START WITH' => 'ALTER SEQUENCE t_id_seq START WITH 1',
	'SET LOGGED' => 'ALTER TABLE t SET UNLOGGED; ALTER TABLE t SET LOGGED',
	'a rewritten sequence' => 'ALTER TABLE t ALTER id TYPE integer; ALTER TABLE t ALTER id TYPE bigint',
	'a template' => undef);
foreach my $minimal (0, 1)
{
	$node->append_conf('postgresql.conf', $minimal ? "wal_level = minimal\nmax_wal_senders = 0" : 'wal_level = replica');
	$node->restart;
	foreach my $case (map { ([ $_, 0 ], [ $_, 1 ]) } sort keys %made)
	{
		my ($name, $is_read) = @$case;
		my $database = $name eq 'a template' ? 'copy' : 'postgres';
		$node->safe_psql('postgres', table('t'));
		my $session = RawSession->start($node);
		$session->query_safe($insert);
		if ($made{$name})
		{
			# With wal_level = minimal, what a transaction has made itself is not logged.
			$session->query_safe($_) foreach 'BEGIN', split(/; /, $made{$name}),
			  $minimal ? "SELECT fast_feed.watermark('t')" : (), 'COMMIT';
		}
		else
		{
			$session->quit;
			$node->safe_psql('template1', 'DROP DATABASE IF EXISTS copy');
			$node->safe_psql('template1', 'CREATE DATABASE copy TEMPLATE postgres');
		}
		$session = RawSession->connect($node, database => $database);
		$session->query_safe($_) foreach $is_read ? "SELECT fast_feed.watermark('t')" : (), 'BEGIN', ($insert) x 5, 'ROLLBACK';
		$session->query_safe('SET synchronous_commit = on');
		my $last = $session->query_safe($insert);
		$name .= $is_read ? ', read before' : '';
		is($session->query_safe("SELECT max(id) FROM t WHERE ${\ below('t')}"), $last, "$name: a position that was read");
		$node->stop('immediate');
		$node->start;
		cmp_ok($node->safe_psql($database, $insert), '>', $last, "$name: after a crash the next number is above it");
	}
}

# Such a file whose place another one had, of which the page was written.
$node->append_conf('postgresql.conf', 'wal_level = replica');
$node->restart;
$node->safe_psql('postgres', table('t') . q{
DO $$ BEGIN FOR i IN 1 .. 260 LOOP
	EXECUTE format('CREATE TABLE many_%1$s (id bigserial PRIMARY KEY)', i);
	PERFORM fast_feed.enable(format('many_%s', i)::regclass, 'id');
END LOOP; END $$});
my $displaced = RawSession->start($node);
$displaced->query_safe($_) foreach $insert, 'ALTER SEQUENCE t_id_seq START WITH 1', 'BEGIN', ($insert) x 5, 'ROLLBACK',
  'SET synchronous_commit = on';
my $read = $displaced->query_safe($insert);
is($displaced->query_safe("SELECT max(id) FROM t WHERE ${\ below('t')}"), $read, 'a place that another sequence had');
$node->stop('immediate');
$node->start;
cmp_ok($node->safe_psql('postgres', $insert), '>', $read, '... after a crash the next number is above');

# What a place knew of the locks of the sequence that had it before does not count.
$displaced = RawSession->start($node);
$displaced->query_safe($_) foreach "SELECT fast_feed.watermark('t')", 'BEGIN';
my $prepared = $displaced->query_safe($insert);
$displaced->query_safe($_) foreach "PREPARE TRANSACTION 'p'", $insert;
foreach my $turn (1 .. 2)
{
	$displaced->query_safe(q{DO $$ BEGIN FOR i IN 1 .. 260 LOOP FOR again IN 1 .. 2 LOOP
	PERFORM fast_feed.watermark(format('many_%s', i)::regclass); COMMIT; END LOOP; END LOOP; END $$});
	is($displaced->query_safe("SELECT fast_feed.watermark('t')"), $prepared,
		'a prepared transaction, with a place that another sequence had') foreach 1, 2;
}
$displaced->query_safe("COMMIT PREPARED 'p'");

# Another file of a sequence whose page this backend has written.
my $again = RawSession->start($node, split /(?<=;) /, table('t'));
my $watermark = "SELECT fast_feed.watermark('t')";
$again->query_safe($_) foreach 'SET synchronous_commit = on', $insert, $watermark, $insert,
  'ALTER SEQUENCE t_id_seq START WITH 1', 'BEGIN', ($insert) x 5, 'ROLLBACK';
my $given = $again->query_safe($watermark);
$node->stop('immediate');
$node->start;
cmp_ok($node->safe_psql('postgres', $insert), '>=', $given, 'a sequence whose earlier file the session had read');

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
