# What holds the watermark back beside the transactions of as_predicted.pl: callbacks and
# resources of other libraries, a commit that waits, what is prepared where a standby is
# promoted; who sees it; and where the call is refused.

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
my $callback = getcwd() . '/test/modules/xact_callback';
$node->safe_psql('postgres', qq{
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), name text);
CREATE FUNCTION wait_after_end() RETURNS bool LANGUAGE c AS '$callback';
CREATE FUNCTION release_owner() RETURNS bool LANGUAGE c AS '$callback';
CREATE FUNCTION generate_in_callback() RETURNS bool LANGUAGE c AS '$callback';
CREATE FUNCTION generated_in_callback() RETURNS text LANGUAGE c AS '$callback';
});
my $insert = 'INSERT INTO made DEFAULT VALUES RETURNING id';
my $asks = RawSession->start($node);

sub watermark
{
	return $asks->query_safe('SELECT uuidv7_feed_watermark()');
}

sub visible
{
	my ($id) = @_;
	return $asks->query_safe("SELECT count(*) FROM made WHERE id = '$id'");
}

# A session whose transaction has generated, in this way; and what.
sub in_transaction
{
	my ($call, @before) = @_;
	my $session = RawSession->start($node, @before, 'BEGIN');
	return ($session, $session->query_safe($call));
}

# The end of a process whose abort another library does not let come to ours.  Without a
# lock, which would stay.
{
	my ($session, $id) = in_transaction('SELECT uuidv7_feed_id()');
	$session->query_safe("LOAD '$callback'");
	cmp_ok(watermark(), 'le', $id, "another library's abort callback fails: the watermark is held back");
	$session->quit;
	like(slurp_file($node->logfile), qr/raised at exit/, '... it does so as the process ends');
	cmp_ok(watermark(), 'gt', $id, '... and nothing holds the watermark back any more');
}

# Another library's callback that comes after ours, as that of one which was preloaded
# does, and which commits elsewhere in it: until it has returned the watermark waits.
my $waits = $node->data_dir . '/xact_callback.waits';
foreach my $end ('COMMIT', 'ROLLBACK', "PREPARE TRANSACTION 'waits'")
{
	my ($session, $id) = in_transaction($insert, "LOAD '$callback'");
	$session->query_safe('SELECT wait_after_end()');
	$session->send($end);
	wait_until('the callback waits', sub { -e $waits });
	is(visible($id), $end eq 'COMMIT' ? '1' : '0', "$end: a later callback waits");
	cmp_ok(watermark(), 'le', $id, "$end: ... and the watermark with it");
	unlink $waits or die "could not remove: $!";
	$session->receive;
	$asks->query_safe("ROLLBACK PREPARED 'waits'") if $end =~ /PREPARE/;
	cmp_ok(watermark(), 'gt', $id, "$end: until it has returned");
	$session->quit;
}

# Another library releases resources of its own, which are no transaction's, during one.
{
	my ($session, $id) = in_transaction($insert);
	$session->query_safe('SELECT release_owner()');
	cmp_ok(watermark(), 'le', $id, 'resources of another library are released: the watermark is held back');
	$session->query_safe('COMMIT');
	cmp_ok(watermark(), 'gt', $id, '... until the transaction ends');
	$session->quit;
}

# What another library generates after a commit is in no transaction: it holds nothing
# back; nor are there catalogs that tell a session of its first feed id.
foreach my $before ('SELECT uuidv7_feed_id()', 'SELECT 1')
{
	my ($session) = in_transaction($before, "LOAD '$callback'");
	$session->query_safe('COMMIT');

	# The callback that was registered first is called last.
	my $ended = $asks->query_safe('SELECT uuidv7_feed_wait(0)');
	$session->query_safe('SELECT generate_in_callback()');
	like($session->query_safe('SELECT generated_in_callback()'),
		$before =~ /feed/ ? qr/^\w{8}-/ : qr/^feed ids require a transaction$/, "$before: what is generated after a commit");
	is($asks->query_safe("SELECT held_back_by IS NULL FROM fast_uuid_stats() WHERE name = 'feed'"),
		't', '... holds nothing back');
	is($asks->query_safe('SELECT uuidv7_feed_wait(0)'), $ended, '... and counts as no end');
	$session->quit;
}

# The first UUIDs of a transaction, or of the session, in a callback after ours as it is
# prepared, one of them in a subtransaction that is rolled back.
foreach my $before ("LOAD 'fast_uuid'", 'SELECT uuidv7_feed_id()')
{
	my $session = RawSession->start($node);
	$session->query_safe($_) foreach "LOAD '$callback'", $before, 'BEGIN', 'SELECT generate_in_callback()',
	  "PREPARE TRANSACTION 'late'";
	my $id = $session->query_safe('SELECT generated_in_callback()');
	like($id, qr/^\w{8}-/, "$before: a UUID in a callback of PREPARE TRANSACTION");
	cmp_ok(watermark(), 'le', $id, "$before: ... holds the watermark back");
	$asks->query_safe("COMMIT PREPARED 'late'");
	cmp_ok(watermark(), 'gt', $id, "$before: ... until the transaction ends");
	is($asks->query_safe("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', "$before: ... and no lock is left");
	$session->quit;
}

# ... and as a savepoint is rolled back.
{
	my ($session) = in_transaction('SELECT uuidv7_feed_id()', "LOAD '$callback'");
	$session->query_safe($_) foreach 'ROLLBACK', 'BEGIN', 'SELECT generate_in_callback()', 'SAVEPOINT a', 'ROLLBACK TO a';
	my $id = $session->query_safe('SELECT generated_in_callback()');
	cmp_ok(watermark(), 'le', $id, 'a UUID as a savepoint is rolled back holds the watermark back');
	$session->query_safe('COMMIT');
	cmp_ok(watermark(), 'gt', $id, '... until the transaction ends');
	$session->quit;
}

# Its age is for those who may see it in pg_stat_activity.
{
	$node->safe_psql('postgres', 'CREATE ROLE somebody; CREATE ROLE monitor; GRANT pg_monitor TO monitor');
	my ($session) = in_transaction($insert);
	my $began = $session->query_safe('SELECT now()');
	my $shown = "SELECT to_jsonb(s) - '{clock_lead,largest_clock_lead}'::text[], xact_start"
	  . " FROM fast_uuid_stats() AS s JOIN pg_stat_activity ON pid = held_back_by WHERE name = 'feed'";
	my $earlier = $node->safe_psql('postgres', "SET ROLE somebody; $shown");
	like($earlier, qr/"held_back_by": \d+.*\}\|$/, 'another role sees the process');
	wait_until('time passes',
		sub { $asks->query_safe("SELECT clock_timestamp() > timestamptz '$began' + interval '0.1 s'") eq 't' });
	is($node->safe_psql('postgres', "SET ROLE somebody; $shown"), $earlier, '... and nothing that tells the age of its transaction');
	is($node->safe_psql('postgres', "SET ROLE monitor; $shown"), $earlier . $began, 'pg_monitor sees that too');
	$session->quit;
}

# The commit has begun, and is not visible yet.
{
	my ($session, $id) = in_transaction($insert, 'SET synchronous_commit = on');
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->send('COMMIT');
	wait_until('the commit waits',
		sub { $asks->query_safe("SELECT wait_event FROM pg_stat_activity WHERE pid = $pid") eq 'SyncRep' });
	is(visible($id), '0', 'a commit that waits for a standby is not visible');
	cmp_ok(watermark(), 'le', $id, 'and holds the watermark back');
	$asks->query_safe("SELECT pg_cancel_backend($pid)");
	$session->receive;
	is(visible($id), '1', 'it is, once it has ended');
	cmp_ok(watermark(), 'gt', $id, 'and holds it back no more');
	$session->quit;
}

# What keeps it for a prepared transaction goes with a PREPARE TRANSACTION that fails.
{
	my ($session) = in_transaction('SELECT uuidv7_feed_id()');
	$session->query_safe('CREATE TEMP TABLE t ()');
	is($session->outcome("PREPARE TRANSACTION 'fails'"), '0A000', 'a PREPARE TRANSACTION that fails');
	is($asks->query_safe("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'"), '0', '... leaves no lock');
	$session->quit;
}

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
my $session = RawSession->start($standby);
is($session->outcome('SELECT uuidv7_feed_watermark()'), '55000', 'refused on a standby');
like($session->{error}, qr/cannot execute uuidv7_feed_watermark\(\) during recovery\|\|Call it on/, '... and why');

# A session that goes through the promotion: its snapshot does not tell which transactions
# were running.  One is, which is prepared, though a later one has ended.  Before, where
# nobody can ask for the watermark, nothing is shown to hold it back.
my ($prepares, $id) = in_transaction($insert);
$prepares->query_safe($_) foreach "PREPARE TRANSACTION 'taken over'", $insert;
$node->wait_for_catchup($standby);
my $shown = "SELECT coalesce(held_back_by::text, 'none') FROM fast_uuid_stats() WHERE name = 'feed'";
is($session->query_safe($shown), 'none', 'on a standby nothing is shown to hold it back');
$session->query_safe($_) foreach 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM made';
$_->quit foreach $prepares, $asks;
$node->stop;
$standby->promote;
my $none = '00000000-0000-7000-8000-000000000000';
is($session->query_safe('SELECT uuidv7_feed_watermark()'), $none,
	'promoted: no row is below the watermark for a snapshot from before');
$session->query_safe('COMMIT');
$asks = $session;
cmp_ok(watermark(), 'gt', $none, 'for the next snapshot there is one');
cmp_ok(watermark(), 'le', $id, 'which the prepared transaction holds back');
is($session->query_safe($shown), '0', '... as is shown');
$session->query_safe("COMMIT PREPARED 'taken over'");
cmp_ok(watermark(), 'gt', $id, 'until it has ended');
$session->quit;
$standby->stop;
done_testing();
