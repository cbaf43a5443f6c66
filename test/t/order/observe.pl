# fast_uuid_observe(): after it every value is greater, wherever it is called and however
# the transaction ends; the limit, to the nanosecond; the lead, then and later; a
# restart; a standby.  Which nanosecond is the last of a UUID is a unit test's
# (test_layout); sessions that observe and generate at once are linearizable.pl's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my ($ms, $second) = (1_000_000, 1_000_000_000);
my $start = 1_800_000_000_000_000_000;
my $node  = PostgreSQL::Test::Cluster->new('observe');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
$clock->put($start);
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE app LOGIN;
CREATE FUNCTION note(id uuid) RETURNS void LANGUAGE sql SECURITY DEFINER AS 'SELECT fast_uuid_observe(id)';
CREATE FUNCTION note_and_fail(id uuid) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN PERFORM fast_uuid_observe(id); RAISE EXCEPTION 'failed'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
});
my $durable = $node->pg_version >= 17;
my @orders  = ('session', 'instance', $durable ? 'durable' : ());

# A session under an order, with an hour of allowance.
sub session
{
	my ($order, @statements) = @_;
	return RawSession->start($node, "SET fast_uuid.ordering = '$order'", "SET fast_uuid.max_clock_lead = '1h'", @statements);
}

# A UUID of a nanosecond, with the fraction that this extension stores, and what follows it.
sub uuid
{
	my ($ns, $rest) = @_;
	my $fraction = int(($ns % $ms << 20) / $ms);
	my $low = sprintf '%016x', 1 << 63 | ($fraction & 255) << 54 | $rest // 0;
	return sprintf('%012x7%03x', ($ns - $ns % $ms) / $ms, $fraction >> 8) =~ s/^(.{8})(....)(....)$/$1-$2-$3-/r . $low =~ s/^(....)/$1-/r;
}

sub observe
{
	my ($session, $ns, $rest) = @_;
	return $session->outcome("SELECT fast_uuid_observe('" . uuid($ns, $rest) . "')");
}

# The nanosecond of the next value, from the start.
sub next_of
{
	my ($session, $before) = @_;
	my $id = (split /\n/, $session->query_safe(($before // '') . ';SELECT uuidv7_fast()'))[-1];
	return KnownClock::ns_of($id) - $start;
}

sub lead
{
	my ($session, $name) = @_;
	return $session->query_safe("SELECT round(extract(epoch FROM clock_lead)) FROM fast_uuid_stats() WHERE name = '$name'");
}

# A reset, by a session that is alone with it.
my $reset = 'SELECT fast_uuid_reset_ordering()';

sub reset_all
{
	my ($order) = @_;
	session($order, $reset)->quit;
	return;
}

# The limit, to the nanosecond.
foreach my $order ('session', 'instance')
{
	my $session = session($order);
	foreach my $case ([ -1, 1000 * $ms ], [ 0, $ms - 1 ], [ 1, $ms ], [ 2, 2 * $ms ], [ 1500, 1500 * $ms ], [ 2147483647, 2147483647 * $ms ])
	{
		my ($setting, $limit) = @$case;
		my $what = "$order, max_clock_lead = $setting";
		$session->query_safe($_) foreach $reset, "SET fast_uuid.max_clock_lead = $setting";
		is(observe($session, $start + $limit + 1, $_), '22023', "$what: a nanosecond beyond it is refused") foreach 0, (1 << 54) - 1;
		my $lead  = int(($limit + 1) / $ms);
		my $shown = $setting < 0 ? 1000 : $setting;
		like($session->{error}, qr/^22023 UUID is too far ahead of the clock\|It is ahead by $lead ms; the limit is $shown ms\.\|/, "$what: and told why");
		is(next_of($session), 0, "$what: which changed nothing");
		is(observe($session, $start + $limit, $_), 'value ', "$what: one at the limit is not") foreach 0, (1 << 54) - 1;
		$session->query_safe('SET fast_uuid.max_clock_lead = -1');
		is(next_of($session), $limit + 1, "$what: and the next nanosecond follows");
	}
	$session->query_safe($reset);
	$session->quit;
}

# The lead, and how it ends while the clock catches up; and the other sessions.
foreach my $order (@orders)
{
	$clock->put($start);
	reset_all($order);
	my $shared = $order eq 'session' ? 'session' : 'instance';
	my ($session, $other) = map { session($order, 'SELECT uuidv7_fast()') } 1, 2;
	is(observe($session, $start + 600 * $second), 'value ', "$order: observed");
	my $third = session($order);
	is($_->query_safe('SELECT uuidv7_fast() > ' . "'" . uuid($start + 600 * $second, (1 << 54) - 1) . "'"),
		$_ == $session || $order ne 'session' ? 't' : 'f', "$order: the values that follow, here and there")
	  foreach $session, $other, $third;
	foreach my $case ([ 0, 600 ], [ 60, 540 ], [ 599, 1 ], [ 601, 0 ])
	{
		my ($time, $lead) = @$case;
		$clock->put($start + $time * $second);
		foreach my $one ($session, $other)
		{
			$one->query_safe($_) foreach 'SELECT uuidv7_fast()', 'SELECT uuidv7_fast_array(1000)', 'SELECT uuidv7_fast_set(10)';
		}
		is(lead($session, $shared), $lead, "$order, after $time s: a lead of $lead s");
		is(lead($other, $shared), $order eq 'session' ? 0 : $lead, "$order, after $time s: the other session");
	}
	is($session->query_safe("SELECT round(extract(epoch FROM largest_clock_lead)) FROM fast_uuid_stats() WHERE name = '$shared'"),
		'600', "$order: the largest lead is shown");
	$clock->put($start + 700 * $second);
	is(observe($session, $start + 1000 * $second), 'value ', "$order: another one beyond that");
	is(next_of($session, 'RESET fast_uuid.ordering'), 1000 * $second + 1, "$order: which counts in the order of the session as well");
	$_->quit foreach $session, $other, $third;
}

# Whatever becomes of the transaction, and whoever has it called.
my @places = (
	[ 'a READ ONLY transaction', "BEGIN READ ONLY; SELECT fast_uuid_observe('%s'); COMMIT" ],
	[ 'a transaction that is rolled back', "BEGIN; SELECT fast_uuid_observe('%s'); ROLLBACK" ],
	[ 'a subtransaction that is rolled back', "BEGIN; SAVEPOINT a; SELECT fast_uuid_observe('%s'); ROLLBACK TO a; COMMIT" ],
	[ 'an exception block', "SELECT note_and_fail('%s')" ],
	[ 'a SECURITY DEFINER function, called by a role without the privilege', "SET ROLE app; SELECT note('%s'); RESET ROLE" ]);
foreach my $order (@orders)
{
	$clock->put($start);
	my $session = session($order, $reset);
	my $ns = 0;
	foreach my $place (@places)
	{
		$ns += 2 * $second;
		$session->query_safe(sprintf $place->[1], uuid($start + $ns));
		is(next_of($session), $ns + 1, "$order, $place->[0]: counts");
	}
	is(next_of($session, $reset), 0, "$order: until a reset");

	# What is refused changes nothing; nor does what is behind.
	$session->query_safe('SET fast_uuid.max_clock_lead = -1');
	foreach my $case (
		[ '8000-01-01', '22008' ],
		[ '2554-07-21 23:34:33Z', '22008' ], [ '2554-07-21 23:34:32.999Z', '22023' ], [ '2100-01-01', '22023' ],
		[ '1970-01-01 UTC', 'value ' ], [ '2026-01-01', 'value ' ])
	{
		is($session->outcome("SELECT fast_uuid_observe(uuidv7_fast_max('$case->[0]'))"), $case->[1], "$order: one of $case->[0]");
	}
	is($session->outcome("SELECT fast_uuid_observe('$_')"), '22023', "$order: refused: $_")
	  foreach map({ "ffffffff-ffff-${_}fff-bfff-ffffffffffff" } 0 .. 6, 8 .. 9, 'a' .. 'f'),
	  map({ "ffffffff-ffff-7fff-${_}fff-ffffffffffff" } 0 .. 7, 'c' .. 'f');
	is(next_of($session), 1, "$order: none of these changes anything");
	$session->quit;
}

# Without a reset since the start, what a session has observed it takes along into the
# order of the instance, at whatever time.
foreach my $case ([ 0, 600 ], [ -60, 660 ])
{
	my ($time, $lead) = @$case;
	$node->stop;
	$clock->start($node);
	$clock->put($start);
	my $session = session('session', 'SELECT uuidv7_fast()');
	observe($session, $start + 600 * $second);
	$clock->put($start + $time * $second);
	my $what = "taken into the order of the instance after $time s";
	is(next_of($session, "SET fast_uuid.ordering = 'instance'"), 600 * $second + 1, "$what: it counts there");
	is(lead($session, $_), $lead, "$what: the lead of the $_") foreach 'session', 'instance';
	$session->quit;
}

# Durable order: after a crash, with the clock stepped back.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 unless $durable;
	$clock->put($start);
	my $session = session('durable', $reset);
	is(observe($session, $start + 1800 * $second), 'value ', 'durable: observed');
	$node->stop('immediate');
	$clock->start($node);
	$clock->put($start - 3600 * $second);
	$session = RawSession->start($node, "SET fast_uuid.ordering = 'durable'");
	cmp_ok(next_of($session), '>', 1800 * $second, 'durable: it counts after a crash with the clock stepped back');
	$session->quit;
}

# On a standby, which has the right clock.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
foreach my $order ('session', 'instance', 'durable')
{
	my $session = RawSession->start($standby, "SET fast_uuid.ordering = '$order'");
	my $id = $session->query_safe("SELECT uuidv7_fast_at(clock_timestamp() + '500 ms')");
	my $expected = $order ne 'durable' ? 'value ' : $durable ? '55000' : '0A000';
	is($session->outcome("SELECT fast_uuid_observe('$id')"), $expected, "$order: a standby observes, or refuses");
	cmp_ok($session->query_safe('SELECT uuidv7_fast()'), 'gt', $id, "$order: and generates after it") if $order ne 'durable';
	$session->quit;
}
$standby->stop;
$node->stop;
done_testing();
