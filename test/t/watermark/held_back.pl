# What holds the watermark back beside the transactions of as_predicted.pl: callbacks and
# resources of other libraries, a commit that waits, what is prepared where a standby is
# promoted; and where the call is refused.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;
use Watchdog;

my $node = start_feed('watermark', q{
autovacuum = off
max_prepared_transactions = 5
synchronous_standby_names = 'nobody'
synchronous_commit = local
}, allows_streaming => 1);
my $library = getcwd() . '/test/modules/xact_callback';
$node->safe_psql('postgres', qq{
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE FUNCTION wait_after_end() RETURNS bool LANGUAGE c AS '$library';
CREATE FUNCTION release_owner() RETURNS bool LANGUAGE c AS '$library';
CREATE FUNCTION generate_in_callback() RETURNS bool LANGUAGE c AS '$library';
CREATE FUNCTION generated_in_callback() RETURNS text LANGUAGE c AS '$library';
});
my $insert = 'INSERT INTO made DEFAULT VALUES RETURNING id';
my $generate = 'SELECT uuidv7_feed_id()';
my $locks = q{SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'};
my $asks = RawSession->start($node);

sub watermark
{
	return $asks->query_safe('SELECT uuidv7_feed_watermark()');
}

# An id holds the watermark back, until something is done.
sub check_held_until
{
	my ($name, $id, $end) = @_;
	cmp_ok(watermark(), 'le', $id, "$name: the watermark is held back");
	$end->();
	cmp_ok(watermark(), 'gt', $id, "$name: ... until the end");
	return;
}

# The end of a process whose abort another library does not let come to ours.  Without a
# lock, which would stay.
{
	my $session = RawSession->start($node, 'BEGIN');
	my $id = $session->query_safe($generate);
	$session->query_safe("LOAD '$library'");
	check_held_until('an abort callback fails at exit', $id, sub { $session->quit });
	like(slurp_file($node->logfile), qr/raised at exit/, '... it does');
}

# Another library's callback that comes after ours, as that of one which was preloaded
# does, and which commits elsewhere in it: until it has returned the watermark waits.
my $waits = $node->data_dir . '/xact_callback.waits';
foreach my $end ('COMMIT', 'ROLLBACK', "PREPARE TRANSACTION 'waits'")
{
	my $session = RawSession->start($node, "LOAD '$library'", 'BEGIN');
	my $id = $session->query_safe($insert);
	$session->query_safe('SELECT wait_after_end()');
	$session->send($end);
	wait_until('the callback waits', sub { -e $waits });
	check_held_until("$end, a later callback waits", $id, sub {
		unlink $waits or die "could not remove: $!";
		$session->receive;
		$asks->query_safe("ROLLBACK PREPARED 'waits'") if $end =~ /PREPARE/;
	});
	$session->quit;
}

# Another library releases resources of its own, which are no transaction's, during one.
{
	my $session = RawSession->start($node, 'BEGIN');
	my $id = $session->query_safe($insert);
	$session->query_safe('SELECT release_owner()');
	check_held_until('other resources are released', $id, sub { $session->query_safe('COMMIT') });
	$session->quit;
}

# What another library generates after a commit is in no transaction: it holds nothing
# back.  Nor are there catalogs that tell a session of its first feed id.
my %generated = ($generate => qr/^\w{8}-/, 'SELECT 1' => qr/^feed ids require a transaction$/);
foreach my $before (sort keys %generated)
{
	my $session = RawSession->start($node, "LOAD '$library'", 'BEGIN', $before, 'COMMIT');

	# The callback that was registered first is called last.
	my $ended = $asks->query_safe('SELECT uuidv7_feed_wait(0)');
	$session->query_safe('SELECT generate_in_callback()');
	like($session->query_safe('SELECT generated_in_callback()'), $generated{$before},
		"$before, and what is generated after a commit");
	is($asks->query_safe("SELECT held_back_by FROM fast_uuid_stats() WHERE name = 'feed'"),
		'', '... holds nothing back');
	is($asks->query_safe('SELECT uuidv7_feed_wait(0)'), $ended, '... and counts as no end');
	$session->quit;
}

# The first feed ids of a transaction, or of the session, in a callback after ours as it is
# prepared, one of them in a subtransaction that is rolled back.
foreach my $before ("LOAD 'fast_uuid'", $generate)
{
	my $session = RawSession->start($node, "LOAD '$library'", $before, 'BEGIN');
	$session->query_safe('SELECT generate_in_callback()');
	$session->query_safe("PREPARE TRANSACTION 'late'");
	my $id = $session->query_safe('SELECT generated_in_callback()');
	like($id, qr/^\w{8}-/, "$before: an id in a callback of PREPARE TRANSACTION");
	check_held_until($before, $id, sub { $asks->query_safe("COMMIT PREPARED 'late'") });
	is($asks->query_safe($locks), '0', '... and no lock is left');
	$session->quit;
}

# ... and as a savepoint is rolled back.
{
	my $session = RawSession->start($node, "LOAD '$library'", $generate, 'BEGIN');
	$session->query_safe('SELECT generate_in_callback()');
	$session->query_safe('SAVEPOINT a');
	$session->query_safe('ROLLBACK TO a');
	my $id = $session->query_safe('SELECT generated_in_callback()');
	check_held_until('an id as a savepoint is rolled back', $id,
		sub { $session->query_safe('COMMIT') });
	$session->quit;
}

# The commit has begun, and is not visible yet.
{
	my $session = RawSession->start($node, 'SET synchronous_commit = on', 'BEGIN');
	my $id = $session->query_safe($insert);
	my $event = "SELECT wait_event FROM pg_stat_activity WHERE pid = $session->{pid}";
	$session->send('COMMIT');
	wait_until('the commit waits', sub { $asks->query_safe($event) eq 'SyncRep' });
	unlike($asks->query_safe('TABLE made'), qr/$id/, 'a commit that waits is not visible');
	check_held_until('a commit that waits', $id, sub {
		$asks->query_safe("SELECT pg_cancel_backend($session->{pid})");
		$session->receive;
	});
	like($asks->query_safe('TABLE made'), qr/$id/, 'it is, once it has ended');
	$session->quit;
}

# What keeps it for a prepared transaction goes with a PREPARE TRANSACTION that fails.
{
	my $session = RawSession->start($node, 'BEGIN', $generate, 'CREATE TEMP TABLE t ()');
	is($session->outcome("PREPARE TRANSACTION 'fails'"), '0A000', 'PREPARE TRANSACTION fails');
	is($asks->query_safe($locks), '0', '... and leaves no lock');
	$session->quit;
}

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
my $session = RawSession->start($standby);
is($session->outcome('SELECT uuidv7_feed_watermark()'), '55000', 'refused on a standby');
like($session->{error},
	qr/cannot execute uuidv7_feed_watermark\(\) during recovery\|\|Call it on/, '... and why');

# A session that goes through the promotion: its snapshot does not tell which transactions
# were running.  One is, which is prepared, though a later one has ended.  Before, where
# nobody can ask for the watermark, nothing is shown to hold it back.
my $prepares = RawSession->start($node, 'BEGIN');
my $id = $prepares->query_safe($insert);
$prepares->query_safe("PREPARE TRANSACTION 'taken over'");
$prepares->query_safe($insert);
$node->wait_for_catchup($standby);
my $shown = "SELECT coalesce(held_back_by::text, 'none') FROM fast_uuid_stats()"
  . " WHERE name = 'feed'";
is($session->query_safe($shown), 'none', 'on a standby nothing is shown to hold it back');
$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
$session->query_safe('SELECT count(*) FROM made');
$prepares->quit;
$asks->quit;
$node->stop;
$standby->promote;
$asks = $session;
my $none = '00000000-0000-7000-8000-000000000000';
is(watermark(), $none, 'promoted: no row is below the watermark for a snapshot from before');
$session->query_safe('COMMIT');
cmp_ok(watermark(), 'gt', $none, 'for the next snapshot there is one');
is($session->query_safe($shown), '0', 'a prepared transaction is shown to hold it back');
check_held_until('a prepared transaction', $id,
	sub { $session->query_safe("COMMIT PREPARED 'taken over'") });
$session->quit;
$standby->stop;
done_testing();
