# Each time that is shown or taken is in its unit, and what is less than one is
# dropped: milliseconds, microseconds and nanoseconds against a clock that the test
# knows.

use strict;
use warnings;

use Cwd qw(getcwd);
use List::Util qw(max min);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('units');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\ntimezone = 'UTC'\njit = off\nautovacuum = off\n");
my $clock = KnownClock->new($node);

# 2027-01-15 08:00:00 UTC
my $start = 1_800_000_000_000_000_000;
$clock->put($start);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $durable = $node->pg_version >= 17;
my $session = RawSession->start($node);

sub query
{
	my ($sql) = @_;
	return $session->query_safe($sql);
}

# The time of a UUID, to the nanosecond, the microsecond and the millisecond.
foreach my $ns (0, 1, 999, 1_000, 1_001, 999_999, 1_000_000, 1_000_001, 123_456_789, 999_999_999)
{
	query('SELECT fast_uuid_reset_ordering()');
	$clock->put($start + $ns);
	my $id = query('SELECT uuidv7_fast()');
	is(KnownClock::ns_of($id), $start + $ns, "$ns ns: the UUID has the time of the clock");
	is(query("SELECT to_char(uuidv7_fast_timestamp('$id', true), 'YYYY-MM-DD HH24:MI:SS.US')"),
		sprintf('2027-01-15 08:00:00.%06d', int($ns / 1000)), "$ns ns: to the microsecond");
	is(query("SELECT to_char(uuidv7_fast_timestamp('$id'), 'YYYY-MM-DD HH24:MI:SS.US')"),
		sprintf('2027-01-15 08:00:00.%03d000', int($ns / 1_000_000)), "$ns ns: to the millisecond");

	# A shift is of microseconds; the nanoseconds stay.
	foreach my $shift ([ '0', 0 ], [ '1 us', 1_000 ], [ '-1 us', -1_000 ], [ '1 ms', 1_000_000 ], [ '-1 s', -1_000_000_000 ],
		[ '-0.999999 s', -999_999_000 ], [ '1 day', 86_400_000_000_000 ], [ '1 month -31 days', 0 ])
	{
		query('SELECT fast_uuid_reset_ordering()');
		my $shifted = query("SELECT uuidv7_fast(interval '$shift->[0]')");
		is(KnownClock::ns_of($shifted), $start + $ns + $shift->[1], "$ns ns, shifted by $shift->[0]");
	}
}

# Below a microsecond a given time has random digits.
my @at = map { KnownClock::ns_of($_) - $start } split /\n/,
  query("SELECT uuidv7_fast_at('2027-01-15 08:00:00.000005Z') FROM generate_series(1, 300)");
cmp_ok(min(@at), '>=', 5_000, 'a given time: not before its microsecond');
cmp_ok(max(@at), '<',  6_000, 'a given time: nor after');

# Each fails by chance once in 10^13 runs.
cmp_ok(min(@at), '<', 5_100, 'a given time: its nanoseconds are as small as can be');
cmp_ok(max(@at), '>', 5_900, 'a given time: and as large');

# A lead is shown in microseconds.  The largest is the one that a call has found before
# it generated; sessions together can lead by less than a millisecond, and that is none.
my $shown = sub {
	my ($name) = @_;
	return query("SELECT concat_ws(' ', round(1000000 * extract(epoch FROM clock_lead)), round(1000000 * extract(epoch FROM largest_clock_lead)))"
		  . " FROM fast_uuid_stats() WHERE name = '$name'");
};
foreach my $ordering ('session', 'instance')
{
	$session->quit;
	$session = RawSession->start($node);
	query("SET fast_uuid.ordering = '$ordering'");
	foreach my $lead (3_600_000_000_999, 123_456_789, 1_999_999, 1_000_999, 1_000_001, 1_000_000, 999_999, 999_998, 2_000, 1_999, 1_000, 999, 2)
	{
		query('SELECT fast_uuid_reset_ordering()');
		is($shown->($ordering), '0 0', "$ordering, a lead of $lead ns: none is left of the one before");
		$clock->put($start + $lead - 1);
		query('SELECT uuidv7_fast()');

		# It leads by so much, now that another one is generated.
		$clock->put($start);
		query('SELECT uuidv7_fast()');
		my $us = int($lead / 1000);
		is($shown->($ordering), "$us $us", "$ordering, a lead of $lead ns");
		$clock->put($start + 2 * $lead);
		my $found = $ordering eq 'instance' && $lead < 1_000_000 ? 0 : int(($lead - 1) / 1000);
		is($shown->($ordering), "0 $found", "$ordering, a lead of $lead ns, when the clock has caught up");
	}
}

# A wait for the lock is seen as such.
my $module = getcwd() . '/test/modules/other_library';
query("CREATE FUNCTION lock_name() RETURNS text AS '$module' LANGUAGE c");
is(query('SELECT lock_name()'), 'FastUuid', 'the lock has its name');

# The watermark is the smallest UUID of its nanosecond.
query('SELECT fast_uuid_reset_ordering()');
$clock->put($start);
like(query('SELECT uuidv7_fast_watermark()'), qr/[048c]0-0{12}$/, 'no random bit of the watermark is set');

# The limit is in milliseconds, in whichever unit it is given; it is not reached yet
# by its last nanosecond.
$session->quit;
$session = RawSession->start($node);
foreach my $limit ([ '2', 2 ], [ '2ms', 2 ], [ '2000us', 2 ], [ '1s', 1_000 ], [ '1min', 60_000 ], [ '1h', 3_600_000 ], [ '24d', 2_073_600_000 ])
{
	my ($text, $ms) = @$limit;
	query("SET fast_uuid.max_clock_lead = '$text'");
	foreach my $beyond (0, 1)
	{
		query('SELECT fast_uuid_reset_ordering()');
		$clock->put($start + $ms * 1_000_000 + $beyond - 1);
		query('SELECT uuidv7_fast()');
		$clock->put($start);
		is($session->outcome('SELECT uuidv7_fast()') =~ s/value .*/value/r, $beyond ? '55000' : 'value', "a limit of $text, and $beyond ns");
		like($session->{error}, qr/behind the latest UUID; the limit is $ms ms/, "a limit of $text: said in milliseconds") if $beyond;
		like($session->{error}, qr/The clock is $ms ms behind/, "a limit of $text: and so is the lead") if $beyond;
	}
}
query('RESET fast_uuid.max_clock_lead; SELECT fast_uuid_reset_ordering()');

# The watermark, and the upper bound: a second beyond the latest, in microseconds.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 unless $durable;
	my $now = $start + 86_400_123_456_789;
	$clock->put($now);
	query("SET fast_uuid.ordering = 'durable'; SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast()");
	is(query("SELECT to_char(upper_bound, 'YYYY-MM-DD HH24:MI:SS.US') FROM fast_uuid_stats() WHERE name = 'durable'"),
		'2027-01-16 08:00:01.123456', 'the upper bound is a second beyond, to the microsecond');
	$clock->put($now + 499_999_000);
	query('SELECT uuidv7_fast()');
	is(query("SELECT to_char(upper_bound, 'SS.US') FROM fast_uuid_stats() WHERE name = 'durable'"), '01.123456', 'it stays for half a second');
	$clock->put($now + 500_000_000);
	query('BEGIN; SELECT uuidv7_fast()');
	is(query("SELECT to_char(upper_bound, 'SS.US') FROM fast_uuid_stats() WHERE name = 'durable'"), '01.623456', 'and then moves on');
	is(query("SELECT count(*) FROM pg_locks WHERE relation = 'fast_uuid_upper_bound'::regclass"), '0', 'and is not locked by the transaction that moved it');
	query('COMMIT');
	query("SELECT setval('fast_uuid_upper_bound', 1)");
	is(query("SELECT to_char(upper_bound, 'YYYY-MM-DD HH24:MI:SS.US') FROM fast_uuid_stats() WHERE name = 'durable'"),
		'1970-01-01 00:00:00.000001', 'the earliest upper bound that can be restored');
}
query("SET fast_uuid.ordering = 'instance'; SELECT fast_uuid_reset_ordering()");
$clock->put($start + 5);
is(KnownClock::ns_of(query('SELECT uuidv7_fast_watermark()')), $start + 6, 'with nobody in its way the watermark is the nanosecond after the clock, time and again') foreach 1 .. 3;
$clock->put($start);
is(KnownClock::ns_of(query('SELECT uuidv7_fast()')), $start + 6, '... and no UUID is below it, although the clock steps back');

# A benchmark's two figures are of one measurement: 10^6 bytes, 10^-9 seconds.
is( query("SELECT count(*) FROM fast_uuid_benchmark(1) WHERE abs(mb_per_second * ns_per_request / bytes - 1000) * mb_per_second > 60 * (1 + mb_per_second / ns_per_request)"),
	'0', 'fast_uuid_benchmark(): megabytes per second are bytes per nanosecond');

$session->quit;
$node->stop;
done_testing();
