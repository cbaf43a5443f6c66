# fast_uuid_observe() and the clock: the limit, to the nanosecond; the lead, then and
# later; resets; a restart.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use Observed;

require_fake_clock();

# From here on the test sets the clock.
sub restart
{
	my ($how) = @_;
	$node->stop($how // 'fast');
	start_with_fake_clock($node);
	return;
}

# Let the clock stand still at this minute and second.
sub at
{
	my ($time) = @_;
	freeze_clock($node, "2031-02-03 04:$time");
	return;
}

start_node();
restart();

# The limit, to the nanosecond, of a clock that stands still.
at('00:00');
my $ms = 1_000_000;
my $one_value = 'FROM (SELECT uuidv7_fast() AS id OFFSET 0) AS made';
foreach my $order ('session', 'instance')
{
	my $session = session($node, "SET fast_uuid.ordering = '$order'");
	my $now = $session->query('SELECT clock_ns()');
	foreach my $case ([ -1, 1000 * $ms ], [ 0, $ms - 1 ], [ 1, $ms ], [ 2, 2 * $ms ], [ 1500, 1500 * $ms ], [ 2147483647, 2147483647 * $ms ])
	{
		my ($setting, $limit) = @$case;
		my $what = "$order, max_clock_lead = $setting";
		$session->query($_) foreach 'SELECT fast_uuid_reset_ordering()', "SET fast_uuid.max_clock_lead = $setting";
		foreach my $rest (0, (1 << 54) - 1)
		{
			is($session->outcome("SELECT fast_uuid_observe(built_at($now + $limit + 1, $rest))"), '22023', "$what: a nanosecond beyond it is refused");
		}
		my $lead  = int(($limit + 1) / $ms);
		my $shown = $setting < 0 ? 1000 : $setting;
		like($session->{error}, qr/^22023 UUID is too far ahead of the clock\|It is ahead by $lead ms; the limit is $shown ms\.\|/, "$what: and told why");
		is($session->query("SELECT id BETWEEN built_at($now) AND built_at($now + 1) $one_value"), 't', "$what: which changed nothing");
		foreach my $rest (0, (1 << 54) - 1)
		{
			is($session->outcome("SELECT fast_uuid_observe(built_at($now + $limit, $rest))"), 'value ', "$what: one at the limit is not");
		}
		$session->query('SET fast_uuid.max_clock_lead = -1');
		is($session->query("SELECT id BETWEEN built_at($now + $limit + 1) AND built_at($now + $limit + 2) $one_value"), 't', "$what: and the next nanosecond follows");
	}
	$session->quit;
}

# The lead, and how it ends while the clock catches up.
foreach my $order ('session', 'instance')
{
	restart();
	at('00:00');
	my $set     = "SET fast_uuid.max_clock_lead = '1h'; SET fast_uuid.ordering =";
	my $session = session($node, "$set '$order'");
	my $other   = session($node, "$set '$order'", 'SELECT uuidv7_fast()');
	$session->query('SELECT fast_uuid_observe(built_at(clock_ns() + 600000000000))');
	foreach my $case ([ '00:00', 600 ], [ '01:00', 540 ], [ '09:59', 1 ], [ '10:00', 0 ], [ '11:00', 0 ])
	{
		my ($time, $lead) = @$case;
		at($time);
		foreach my $one ($session, $other)
		{
			$one->query($_) foreach 'SELECT uuidv7_fast()', 'SELECT uuidv7_fast_array(1000)', 'SELECT uuidv7_fast_set(10)';
		}
		is(lead($session, $order), $lead, "$order, at $time: a lead of $lead s");
		is(lead($other, $order), $order eq 'session' ? 0 : $lead, "$order, at $time: the other session");
	}
	is($session->query("SELECT round(extract(epoch FROM largest_clock_lead)) FROM fast_uuid_stats() WHERE name = '$order'"),
		'600', "$order: the largest lead is shown");
	at('10:00');
	$session->query('SELECT fast_uuid_observe(built_at(clock_ns() + 300000000000)); SELECT uuidv7_fast()');
	is(lead($session, $order), 300, "$order: another one beyond that");
	$_->quit foreach $session, $other;
}

# A session that takes what it observed along into the order of the instance.
foreach my $case ([ '05:00', 600 ], [ '04:00', 660 ])
{
	my ($time, $lead) = @$case;
	restart();
	at('05:00');
	my $what    = "taken into the order of the instance at $time";
	my $session = session($node, "SET fast_uuid.max_clock_lead = '1h'", 'SELECT uuidv7_fast()');
	my $id      = $session->query('SELECT built_at(clock_ns() + 600000000000)');
	$session->query("SELECT fast_uuid_observe('$id')");
	at($time);
	$session->query('SELECT uuidv7_fast()');
	is($session->query("SET fast_uuid.ordering = 'instance'; SELECT uuidv7_fast() > '$id'"), 't', "$what: it counts there");
	is(lead($session, $_), $lead, "$what: the lead of the $_")
	  foreach 'session', 'instance';
	$session->quit;
}

# Resets, of sessions that had observed, and of those that observe after them.
my ($session, $id);
restart();
at('00:00');
my $dba = session($node, "SET fast_uuid.ordering = 'instance'");
foreach my $generated ('', 'SELECT uuidv7_fast()')
{
	foreach my $order ('session', 'instance')
	{
		my $what = "$order" . ($generated eq '' ? '' : ', after a value');
		$dba->query('SELECT fast_uuid_reset_ordering()');
		$session = session($node, "SET fast_uuid.max_clock_lead = '1h'", "SET fast_uuid.ordering = '$order'", $generated);
		$session->query('SELECT fast_uuid_observe(built_at(clock_ns() + 600000000000))');
		$dba->query('SELECT fast_uuid_reset_ordering()');
		is($session->query("SET fast_uuid.ordering = 'instance'; SELECT ahead(uuidv7_fast())"), '0', "$what: what was observed before a reset does not come back");
		$session->quit;

		$session = session($node, "SET fast_uuid.max_clock_lead = '1h'", "SET fast_uuid.ordering = '$order'", $generated);
		$dba->query('SELECT fast_uuid_reset_ordering()');
		$session->query('SELECT fast_uuid_observe(built_at(clock_ns() + 600000000000))');

		# A session that enters for the first time after a reset begins with the clock.
		my $lead = $order eq 'instance' ? 600 : 0;
		is($session->query("SET fast_uuid.ordering = 'instance'; SELECT ahead(uuidv7_fast())"), $lead, "$what: what is observed after a reset");
		is(lead($session, 'instance'), $lead, "$what: and its lead");
		$session->quit;
	}
}

# Who has taken part in the order of the instance forgets it in its own as well.
foreach my $order ('session', 'instance')
{
	$session = session($node, "SET fast_uuid.max_clock_lead = '1h'", "SET fast_uuid.ordering = '$order'");
	$session->query('SELECT fast_uuid_observe(built_at(clock_ns() + 600000000000))');
	$dba->query('SELECT fast_uuid_reset_ordering()');
	is($session->query("SET fast_uuid.ordering = 'session'; SELECT ahead(uuidv7_fast())"), $order eq 'instance' ? '0' : '600',
		"$order: in its own order, what was observed before a reset of the instance");
	$session->quit;
}

# One that still has a latest value, of the instance, from before the reset.
at('30:00');
$session = session($node, "SET fast_uuid.max_clock_lead = '1h'", "SET fast_uuid.ordering = 'instance'", 'SELECT uuidv7_fast()');
at('00:00');
$dba->query('SELECT fast_uuid_reset_ordering()');
$session->query("SET fast_uuid.ordering = 'session'; SELECT fast_uuid_observe(built_at(clock_ns() + 600000000000))");
is($session->query('SELECT ahead(uuidv7_fast())'), '600', 'what is observed after a reset counts, below a value from before');
$_->quit foreach $session, $dba;

set_clock_offset($node, '+0');
foreach my $how (grep({ $_ eq 'durable' } @orders) ? ('fast', 'immediate') : ())
{
	restart();
	$session = session($node, "SET fast_uuid.ordering = 'durable'", "SET fast_uuid.max_clock_lead = '1h'", 'SELECT fast_uuid_reset_ordering()');
	$id = $session->query("SELECT uuidv7_fast_at(clock_timestamp() + '30 min')");
	$session->query("SELECT fast_uuid_observe('$id')");
	$session->quit;
	restart($how);
	set_clock_offset($node, '-3600');
	$session = session($node, "SET fast_uuid.ordering = 'durable'");
	cmp_ok($session->query('SELECT uuidv7_fast()'), 'gt', $id, "durable: it counts after a restart ($how) with the clock set back");
	$session->quit;
}
$node->stop;
done_testing();
