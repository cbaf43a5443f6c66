# What other libraries do at the end of a transaction: the watermark is held back until their
# callbacks have returned, by what is drawn in them, and by a commit that is not visible yet; not
# by the end of what belongs to no transaction.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use RawSession;
use Watchdog;

my $node = start_node('callbacks', "synchronous_standby_names = 'nobody'\nsynchronous_commit = local\n",
	allows_streaming => 1);
my $library = getcwd() . '/test/modules/xact_callback';
$node->safe_psql('postgres', table('t') . qq{
CREATE FUNCTION wait_after_end() RETURNS bool LANGUAGE c AS '$library';
CREATE FUNCTION release_owner() RETURNS bool LANGUAGE c AS '$library';
CREATE FUNCTION draw_in_callback(regclass) RETURNS bool LANGUAGE c AS '$library';
CREATE FUNCTION drawn_in_callback() RETURNS text LANGUAGE c AS '$library';
});
my $insert = "INSERT INTO t (way) VALUES ('') RETURNING id";
my $next = "SELECT fast_feed.next('t_id_seq')";
my $draw = "SELECT draw_in_callback('t_id_seq')";
my $locks = "SELECT count(*) FROM pg_locks WHERE locktype = 'userlock'";
my $asks = RawSession->start($node);

# A number holds the watermark back, also when others have drawn, until something is done.
sub check_held_until
{
	my ($name, $number, $end) = @_;
	my $later = $asks->query_safe($insert);
	my $watermark = "SELECT fast_feed.watermark('t')";
	cmp_ok($asks->query_safe($watermark), '<=', $number, "$name: the watermark is held back");
	$end->();
	return cmp_ok($asks->query_safe($watermark), '>', $later, "$name: ... until the end");
}

# The end of a process whose abort another library does not let come to ours
{
	my $session = RawSession->start($node, 'BEGIN');
	my $number = $session->query_safe($next);
	$session->query_safe("LOAD '$library'");
	check_held_until('an abort callback fails at exit', $number, sub { $session->quit });
	like(slurp_file($node->logfile), qr/raised at exit/, '... it does');
}

# Another library's callback that comes after ours, as that of one which was preloaded does, and
# which commits elsewhere in it: until it has returned the watermark waits.
my $waits = $node->data_dir . '/xact_callback.waits';
foreach my $end ('COMMIT', 'ROLLBACK', "PREPARE TRANSACTION 'waits'")
{
	my $session = RawSession->start($node, "LOAD '$library'", 'BEGIN');
	my $number = $session->query_safe($insert);
	$session->query_safe('SELECT wait_after_end()');
	$session->send($end);
	wait_until('the callback waits', sub { -e $waits });
	check_held_until("$end, a later callback waits", $number, sub {
		unlink $waits or die "could not remove: $!";
		$session->receive;
		$asks->query_safe("ROLLBACK PREPARED 'waits'") if $end =~ /PREPARE/;
	});
	$session->quit;
}

# Another library releases resources of its own, which are no transaction's, during one.
{
	my $session = RawSession->start($node, 'BEGIN');
	my $number = $session->query_safe($insert);
	$session->query_safe('SELECT release_owner()');
	check_held_until('other resources are released', $number, sub { $session->query_safe('COMMIT') });
	$session->quit;
}

# The first number of a transaction, or of the session, in a callback after ours as it is
# prepared, one before it in a subtransaction that is rolled back.
foreach my $before ("LOAD 'fast_feed'", $next)
{
	my $session = RawSession->start($node, "LOAD '$library'", $before, 'BEGIN');
	$session->query_safe($draw);
	$session->query_safe("PREPARE TRANSACTION 'late'");
	my $number = $session->query_safe('SELECT drawn_in_callback()');
	like($number, qr/^\d+$/, "$before: a number drawn in a callback of PREPARE TRANSACTION");
	check_held_until($before, $number, sub { $asks->query_safe("COMMIT PREPARED 'late'") });
	is($asks->query_safe($locks), '0', '... and no lock is left');
	$session->quit;
}

# ... and as a savepoint is rolled back.
{
	my $session = RawSession->start($node, "LOAD '$library'", $next, 'BEGIN');
	$session->query_safe($draw);
	$session->query_safe('SAVEPOINT a');
	$session->query_safe('ROLLBACK TO a');
	my $number = $session->query_safe('SELECT drawn_in_callback()');
	like($number, qr/^\d+$|cannot/, 'a number drawn as a savepoint is rolled back, or an error');
	check_held_until('drawn as a savepoint is rolled back', $number, sub { $session->query_safe('COMMIT') })
	  if $number =~ /^\d/;
	$session->quit;
}

# ... and before a commit, after which nothing is held back.
{
	my $session = RawSession->start($node, "LOAD '$library'", 'BEGIN');
	$session->query_safe($_) foreach $draw, 'COMMIT';
	my $number = $session->query_safe('SELECT drawn_in_callback()');
	cmp_ok($asks->query_safe("SELECT fast_feed.watermark('t')"), '>', $number,
		'a number drawn before the commit holds nothing back after it');
	$session->quit;
}

# The commit has begun, and is not visible yet.
{
	my $session = RawSession->start($node, 'SET synchronous_commit = on', 'BEGIN');
	my $number = $session->query_safe($insert);
	my $event = "SELECT wait_event FROM pg_stat_activity WHERE pid = $session->{pid}";
	$session->send('COMMIT');
	wait_until('the commit waits', sub { $asks->query_safe($event) eq 'SyncRep' });
	is($asks->query_safe("SELECT count(*) FROM t WHERE id = $number"), '0', 'a commit that waits is not visible');
	check_held_until('a commit that waits', $number, sub {
		$asks->query_safe("SELECT pg_cancel_backend($session->{pid})");
		$session->receive;
	});
	is($asks->query_safe("SELECT count(*) FROM t WHERE id = $number"), '1', 'it is, once it has ended');
	$session->quit;
}

# What keeps a number for a prepared transaction goes with a PREPARE TRANSACTION that fails.
{
	my $session = RawSession->start($node, 'BEGIN', $next, 'CREATE TEMP TABLE temporary ()');
	is($session->outcome("PREPARE TRANSACTION 'fails'"), '0A000', 'PREPARE TRANSACTION fails');
	is($asks->query_safe($locks), '0', '... and leaves no lock');
	$session->quit;
}
$asks->quit;
$node->stop;
done_testing();
