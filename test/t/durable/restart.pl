# Durable order, step by step: across every end of a server's incarnation while its clock
# goes back, from every function that generates; the wait for the clock; the rules
# of a backward step; the end of time; where there is none.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use DurableNode;
use FakeClock;
use Incarnations;

require_fake_clock();

if (!new_durable_node())
{
	my $refusal = qr/ERROR:  0A000: ordering "durable" requires PostgreSQL 17 or later\n.*HINT:  Lower "fast_uuid.ordering" and "fast_uuid.required_ordering" to "instance" or "session"/s;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	next_incarnation('fast', 0);
	refused("SELECT $_", $refusal, $_)
	  foreach 'uuidv7_fast()', "uuidv7_fast('getrandom')", "uuidv7_fast(interval '0')", 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)',
	  'fast_uuid_observe(uuidv7_fast_min(now()))', 'fast_uuid_reset_ordering()';
	refused("RESET fast_uuid.ordering; SET fast_uuid.required_ordering = 'durable'; SELECT uuidv7_fast()", $refusal, 'required durable order');
	is(outcome('SELECT uuidv7_fast_at(now()) IS NOT NULL'), 't', 'what has no order works');
	is(stats('upper_bound IS NULL'), 't', 'there is no upper bound');
	$node->stop;
	done_testing();
	exit;
}

$node->safe_psql('postgres', q{
CREATE ROLE nobody LOGIN;
CREATE TABLE made (n bigserial, id uuid);
CREATE FUNCTION one() RETURNS uuid LANGUAGE plpgsql AS 'BEGIN RETURN uuidv7_fast(); END';
});

# Every function, in sessions of every kind, is the first to generate in an incarnation of
# the server whose clock is an hour behind that of the incarnation before.
my @firsts = (
	[ 'a UUID', 'SELECT uuidv7_fast()' ],
	[ 'an array', 'SELECT unnest(uuidv7_fast_array(1000))' ],
	[ 'a cursor', 'BEGIN; DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000); FETCH 1 FROM c; FETCH ALL FROM c; COMMIT' ],
	[ 'a role without privileges', 'SET ROLE nobody; SET default_transaction_read_only = on; SELECT uuidv7_fast()' ],
	[ 'a function', 'SELECT one()' ],
	[ 'a transaction that is rolled back', 'BEGIN; INSERT INTO made (id) VALUES (uuidv7_fast()) RETURNING id; ROLLBACK' ],
	[ 'one that is prepared', "BEGIN; INSERT INTO made (id) VALUES (uuidv7_fast()) RETURNING id; PREPARE TRANSACTION 'a'" ],
	[ 'an observed UUID', 'SELECT fast_uuid_observe(uuidv7_fast_min(clock_timestamp())); SELECT uuidv7_fast()' ]);
my @ways = ('fast', 'immediate', 'SIGKILL');
exceed('the first incarnation', ids('SELECT uuidv7_fast()'));
foreach my $i (0 .. $#firsts)
{
	my ($name, $sql) = @{ $firsts[$i] };
	my $way = $ways[ $i % @ways ];
	next_incarnation($way, 3600);
	exceed("$way, then $name", ids($sql));
}
is(stats("upper_bound > uuidv7_fast_timestamp('$greatest{postgres}', true)"), 't', 'the upper bound is beyond them');
is(stats("clock_lead > '7 h'", 'instance'), 't', 'while the clock is hours behind');
$node->safe_psql('postgres', "ROLLBACK PREPARED 'a'");

# Two sessions begin in a new incarnation.  One is held up at the catalog in which the
# upper bound is found, and goes on after the other one has found it.
next_incarnation('fast', 3600);
{
	my ($late, $first) = (session(), session());
	my $locker = $node->background_psql('postgres');
	my $pid = $late->query_safe('SELECT pg_backend_pid()');
	$first->query_safe('SELECT upper_bound FROM fast_uuid_stats()');
	$locker->query_safe('BEGIN; LOCK TABLE pg_depend IN ACCESS EXCLUSIVE MODE');
	begin_query($late, 'SELECT uuidv7_fast()');
	$node->poll_query_until('postgres', "SELECT wait_event_type = 'Lock' FROM pg_stat_activity WHERE pid = $pid")
	  or BAIL_OUT('the session does not wait');
	my $id = $first->query_safe('SELECT uuidv7_fast()');
	$locker->query_safe('COMMIT');
	my $late_id = $late->query('');
	cmp_ok($late_id, 'gt', $greatest{postgres}, 'two sessions begin: the one that was held up is beyond all before');
	exceed('two sessions begin', sort $id, $late_id);
	$_->quit foreach $late, $first, $locker;
}

# Until half a second before the upper bound nothing is written; from there on it is
# moved before a UUID is returned.
my $upper_bound = stats('upper_bound');
exceed('nearly half of the stride used', ids(observe("upper_bound - interval '501 ms'") . '; SELECT uuidv7_fast()'));
is(stats('upper_bound'), $upper_bound, 'nearly half of the stride used: nothing is written');
next_incarnation('immediate', 3600);
exceed('nearly half of the stride used, in the next incarnation', ids('SELECT uuidv7_fast()'));

$upper_bound = stats('upper_bound');
exceed('an array passes the half', ids(observe("upper_bound - interval '500.4 ms'") . '; SELECT unnest(uuidv7_fast_array(1000000))'));
is(stats("upper_bound > '$upper_bound'"), 't', 'an array passes the half: the upper bound is moved');
next_incarnation('immediate', 3600);
exceed('an array passes the half, in the next incarnation', ids('SELECT uuidv7_fast()'));

# Under instance order nothing is moved.
$upper_bound = stats('upper_bound');
ids("SET fast_uuid.ordering = 'instance'; " . observe("upper_bound - interval '200 us'"));
is(stats('upper_bound'), $upper_bound, 'an array passes the upper bound: shortly before it');
exceed('an array passes the upper bound', ids('SELECT unnest(uuidv7_fast_array(1000000))'));
next_incarnation('immediate', 3600);
exceed('an array passes the upper bound, in the next incarnation', ids('SELECT uuidv7_fast_set(3)'));

# The setting that nobody evades; from here on the library is preloaded.
$node->safe_psql('postgres', "ALTER SYSTEM SET $_") foreach "shared_preload_libraries = 'fast_uuid'", "fast_uuid.required_ordering = 'durable'";
next_incarnation('immediate', 3600);
exceed('durable order is required, session order asked for', ids("SET ROLE nobody; SET fast_uuid.ordering = 'session'; SELECT uuidv7_fast()"));
$node->safe_psql('postgres', 'ALTER SYSTEM RESET fast_uuid.required_ordering');
$node->reload;
$node->poll_query_until('postgres', "SELECT current_setting('fast_uuid.required_ordering') = 'session'") or die 'the file is not read';

# The rules of a backward step.
my $too_far = qr/ERROR:  55000: embedded time would be ahead of the clock by more than "fast_uuid.max_clock_lead"\n.*HINT:.*fast_uuid_reset_ordering\(\)/s;
next_incarnation('fast', 3600);
exceed('backward step', ids('SELECT uuidv7_fast_set(10)'));
is(stats("largest_clock_lead > '59 min'", 'instance'), 't', 'a clock that is behind the upper bound: a lead');
refused("SET fast_uuid.max_clock_lead = '1 h'; SELECT uuidv7_fast()", $too_far, 'beyond fast_uuid.max_clock_lead');
next_incarnation('fast', 3600);
refused("SET fast_uuid.max_clock_lead = '1 h'; SELECT $_", $too_far, "beyond fast_uuid.max_clock_lead, in the next incarnation, $_")
  foreach 'uuidv7_fast()', 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)';

# The way out gives up the upper bound as well.
my $near = 'SELECT abs(extract(epoch FROM uuidv7_fast_timestamp(uuidv7_fast()) - clock_timestamp())) < 60';
refused('SET ROLE nobody; SELECT fast_uuid_reset_ordering()', qr/ERROR:  42501: permission denied/, 'a reset by anybody');
is(outcome("SET fast_uuid.max_clock_lead = 0; SELECT fast_uuid_reset_ordering(); $near"), "\nt", 'a reset: the clock\'s time');
is(outcome("SET fast_uuid.max_clock_lead = 0; $near"), 't', 'a reset: for all sessions');
is(stats("upper_bound BETWEEN now() AND now() + interval '1 min'"), 't', 'a reset: the upper bound is the clock\'s');
$greatest{postgres} = '';
exceed('a reset', ids('SELECT uuidv7_fast()'));
next_incarnation('immediate', 3600);
is(outcome("SET fast_uuid.max_clock_lead = '61 min'; SELECT uuidv7_fast_timestamp(uuidv7_fast()) < clock_timestamp() + interval '61 min'"),
	't', 'a reset: the next incarnation knows of nothing before it');
exceed('a reset, in the next incarnation', ids('SELECT uuidv7_fast()'));
ids(observe("upper_bound + interval '10 days'"));
next_incarnation('immediate', 0);

# After a quick restart it is the clock that is waited for.  This one stands still
# where it is put, and the upper bound is a second ahead of that.
is(outcome("SELECT fast_uuid_reset_ordering(); $near"), "\nt", 'the clock\'s time');
my $still = time() + 100;
my @waiting;

sub wait_in_sessions
{
	foreach my $sql (@_)
	{
		my $session = session();
		begin_query($session, $sql);
		push @waiting, $session;
	}
	$node->poll_query_until('postgres', "SELECT count(*) >= 2 FROM pg_stat_activity WHERE wait_event = 'Extension'")
	  or BAIL_OUT('nobody waits');
	return;
}

freeze_clock_at($node, $still);
exceed('wait', ids('SELECT uuidv7_fast()'));
end_incarnation($node, 'fast');
freeze_clock_at($node, $still + 0.3);
begin_incarnation($node);
wait_in_sessions('SELECT uuidv7_fast()', 'SELECT uuidv7_fast_set(3)');
$node->safe_psql('postgres', "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()");
while (my $session = shift @waiting)
{
	is($session->query(''), '', 'wait, cancelled: no UUID');
	like($session->{stderr}, qr/ERROR:  canceling statement due to user request/, 'wait, cancelled: the error');
	$session->quit;
}
wait_in_sessions('SELECT uuidv7_fast()', 'SELECT uuidv7_fast_set(3)');
freeze_clock_at($node, $still + 2);
{
	my @ids = sort map { split(/\n/, $_->query_safe('')) } @waiting;
	$_->quit foreach @waiting;
	is(scalar(@ids), 4, 'wait: every session goes on');
	exceed('wait', @ids);
	is(stats("largest_clock_lead < '1 ms'", 'instance'), 't', 'wait: never ahead of the clock');
}

# As far as an observed UUID can have put it, with a clock that runs.
$behind = 0;
next_incarnation('fast', 0);
{
	local $database = 'far';
	$node->safe_psql('postgres', 'CREATE DATABASE far');
	$node->safe_psql('far', 'CREATE EXTENSION fast_uuid');
	is(outcome("SELECT setval('fast_uuid_upper_bound', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 1900000) IS NULL;"
			. ' SELECT uuidv7_fast_timestamp(uuidv7_fast(), true) <= clock_timestamp()'), "f\nt", 'wait: for almost two seconds too');
}

$node->stop;

# The end of time, in the year 2554.
{
	local $node   = PostgreSQL::Test::Cluster->new('end');
	local $behind = 0;
	my $end   = 18_446_744_073;
	my $range = qr/ERROR:  22008: time out of range for a generated UUID/;
	my $too_far_ahead = qr/ERROR:  55000: upper bound of ordering "durable" is too far ahead of the clock/;
	$database = 'postgres';
	$node->init;
	freeze_clock_at($node, $end - 10);
	begin_incarnation($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
	$greatest{postgres} = '';
	exceed('ten seconds before the end', ids('SELECT uuidv7_fast_set(10)'));
	my $upper_bound = stats('upper_bound');
	foreach my $seconds (-1.5, -0.5, 0.5)
	{
		freeze_clock_at($node, $end + $seconds);
		refused("SELECT $_", $range, "$seconds s from the end, $_") foreach 'uuidv7_fast()', 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)';
		is($node->safe_psql('postgres', 'SELECT last_value FROM fast_uuid_upper_bound'),
			$node->safe_psql('postgres', "SELECT (extract(epoch FROM timestamptz '$upper_bound') * 1000000)::bigint"), "$seconds s from the end: nothing is written");
	}
	end_incarnation($node, 'SIGKILL');
	freeze_clock_at($node, $end - 3600);
	begin_incarnation($node);
	exceed('the clock returned, in the next incarnation', ids('SELECT uuidv7_fast()'));

	# An upper bound that no clock has brought about; in nanoseconds the second one is 384
	# of 65 bits.
	foreach my $us ('9223372036854775807', '18446744073709552')
	{
		end_incarnation($node, 'fast');
		set_clock_offset($node, '+0');
		begin_incarnation($node);
		$node->safe_psql('postgres', "SELECT setval('fast_uuid_upper_bound', $us)");
		refused("SELECT $_", $too_far_ahead, "an upper bound of $us, $_") foreach 'uuidv7_fast()', 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)';
		is($node->safe_psql('postgres', 'SELECT last_value FROM fast_uuid_upper_bound'), $us, "an upper bound of $us: is kept");
		is(outcome("SET fast_uuid.ordering = 'instance'; $near"), 't', "an upper bound of $us: harms no other order");
		is(outcome("SELECT fast_uuid_reset_ordering(); $near"), "\nt", "an upper bound of $us: a reset leads out");
	}
	$node->stop;
}
done_testing();
