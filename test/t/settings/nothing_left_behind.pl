# What an error, a rollback, a second change or a reset that comes first leaves behind:
# nothing that would be used in place of what is in force.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('left');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
my $ms    = 1_000_000;
my $now   = 1_800_000_000_000_000_000;
$clock->put($now);
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
-- Sets, generates, and fails, which its caller does not learn of.
CREATE FUNCTION in_vain(setting text, value text, call text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	PERFORM set_config('fast_uuid.' || setting, value, false);
	EXECUTE 'SELECT ' || call;
	PERFORM 1 / 0;
EXCEPTION WHEN division_by_zero THEN
END $$;
});
my $user    = $node->safe_psql('postgres', 'SELECT current_user');
my $durable = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;

sub session
{
	my $session = RawSession->connect($node, user => $user, database => 'postgres');
	$session->query_safe($_) foreach @_;
	return $session;
}

# Is a session under the order of the instance?  Another one of that is ahead.
my $other = session("SET fast_uuid.ordering = 'instance'");

sub order_of
{
	my ($session) = @_;
	$now += 100 * $ms;
	$clock->put($now + 10 * $ms);
	my $ahead = $other->query_safe('SELECT uuidv7_fast()');
	$clock->put($now);
	my $id = $session->query_safe('SELECT uuidv7_fast()');
	return $id gt $ahead ? 'instance' : KnownClock::ns_of($id) == $now ? 'session' : 'neither';
}

# --- A change that is rolled back, in each of these ways.

my %endings = (
	'ROLLBACK'       => sub { return "BEGIN; SET fast_uuid.$_[0] = '$_[1]'; SELECT $_[2]; ROLLBACK" },
	'a savepoint'    => sub { return "BEGIN; SAVEPOINT a; SET fast_uuid.$_[0] = '$_[1]'; SELECT $_[2]; ROLLBACK TO a; COMMIT" },
	'SET LOCAL'      => sub { return "BEGIN; SET LOCAL fast_uuid.$_[0] = '$_[1]'; SELECT $_[2]; COMMIT" },
	'an error'       => sub { return "SELECT in_vain('$_[0]', '$_[1]', \$\$$_[2]\$\$)" },
	'RESET'          => sub { return "SET fast_uuid.$_[0] = '$_[1]'; SELECT $_[2]; RESET fast_uuid.$_[0]" },
	'DISCARD ALL'    => sub { return "SET fast_uuid.$_[0] = '$_[1]'; SELECT $_[2]", 'DISCARD ALL' });
my $fetched = sub {
	my ($session) = @_;
	return $session->query_safe("SELECT refills || ' ' || bytes FROM fast_uuid_stats() WHERE name = 'urandom'");
};
foreach my $ending (sort keys %endings)
{
	my $session = session("SELECT uuidv7_fast_min(now())");
	my $change  = sub { $session->query_safe($_) foreach $endings{$ending}->(@_) };

	# 5 fetches of 8 bytes, then 64 and 128 as at first.
	$change->('buffer_size', '0', "count(uuidv7_fast('urandom')) FROM generate_series(1, 5)");
	$session->query_safe("SELECT count(uuidv7_fast('urandom')) FROM generate_series(1, 9)");
	is($fetched->($session), '7 232', "$ending: the size of the buffer is as before");
	$change->('source', 'urandom', 'uuidv7_fast()');
	my $drawn = $fetched->($session);
	$session->query_safe('SELECT count(uuidv7_fast()) FROM generate_series(1, 10000)');
	is($fetched->($session), $drawn, "$ending: the source is as before");
	$change->('vdso', 'off', "uuidv7_fast('getrandom')");
	is($session->query_safe('SHOW fast_uuid.vdso'), 'on', "$ending: the vDSO is as before");
	$change->('allowed_sources', 'getrandom', "uuidv7_fast('getrandom')");
	like($session->outcome("SELECT uuidv7_fast('urandom')"), qr/^value ./, "$ending: a source is allowed as before");
	$change->('max_clock_lead', '0', 'uuidv7_fast()');
	$clock->put($now - 10 * $ms);
	like($session->outcome('SELECT uuidv7_fast()'), qr/^value ./, "$ending: the limit is as before");
	$clock->put($now + 10 * $ms);
	foreach my $setting ('ordering', 'required_ordering')
	{
		$change->($setting, 'instance', 'uuidv7_fast()');
		is(order_of($session), 'session', "$ending: the order is as before, with $setting");
	}

	# The other way: what was allowed meanwhile, and buffered, is refused again.
	if ($ending !~ /RESET|DISCARD/)
	{
		$session->query_safe("SET fast_uuid.allowed_sources = 'getrandom'");
		$change->('allowed_sources', 'getrandom, urandom', "uuidv7_fast('urandom')");
		is($session->outcome("SELECT uuidv7_fast('urandom')"), '42501', "$ending: a source is refused as before");
	}
	$session->quit;
}

# --- Two settings, and one twice, in turn.

my $session = session('SELECT uuidv7_fast()');
my %order   = (ordering => 'session', required_ordering => 'session');
foreach my $step (
	[ 'ordering', 'instance' ], [ 'required_ordering', 'instance' ], [ 'ordering', 'session' ], [ 'required_ordering', 'session' ],
	[ 'required_ordering', 'instance' ], [ 'ordering', 'instance' ], [ 'required_ordering', 'session' ], [ 'ordering', 'session' ],
	[ 'required_ordering', 'instance' ], [ 'ordering', 'session' ], [ 'required_ordering', 'session' ])
{
	my ($setting, $value) = @$step;
	$order{$setting} = $value;
	$session->query_safe("SET fast_uuid.$setting = '$value'");
	is(order_of($session), (grep { $_ eq 'instance' } values %order) ? 'instance' : 'session', "$setting = $value, with ordering $order{ordering}, required $order{required_ordering}");
}
my $stream = "SELECT string_agg(right(uuidv7_fast('xorshift128+')::text, 14), ' ') FROM generate_series(1, 20)";
my %streams;
foreach my $seed (1, 2, 1, 1, 2)
{
	foreach my $sizes ([ 0, 4096 ], [ 4096, 0 ], [ 64, 64 ])
	{
		$session->query_safe("SET fast_uuid.buffer_size = $sizes->[0]; SET fast_uuid.seed = '$seed'; SET fast_uuid.buffer_size = $sizes->[1]");
		my $bits = $session->query_safe($stream);
		$streams{$seed} //= $bits;
		is($bits, $streams{$seed}, "seed $seed, set between buffers of @$sizes bytes: its stream, from the beginning");
	}
}
isnt($streams{1}, $streams{2}, 'each seed has its own');
$session->query_safe("SET fast_uuid.source = 'urandom'; SELECT uuidv7_fast()");
foreach my $step (
	[ 'allowed_sources', 'getrandom', '42501' ], [ 'source', 'getrandom', 'value' ], [ 'allowed_sources', 'urandom', '42501' ],
	[ 'source', 'urandom', 'value' ], [ 'allowed_sources', 'urandom, getrandom', 'value' ], [ 'source', 'getrandom', 'value' ], [ 'allowed_sources', '', '42501' ])
{
	my ($setting, $value, $expected) = @$step;
	$session->query_safe("SET fast_uuid.$setting = '$value'");
	is(substr($session->outcome('SELECT uuidv7_fast()'), 0, 5), $expected, "then $setting = '$value': $expected");
}
$session->quit;

# --- An error in the middle: what was reserved is behind the next one.

foreach my $ordering ('session', 'instance')
{
	foreach my $call ('cardinality(uuidv7_fast_array(1000001))', 'count(id) FROM (SELECT uuidv7_fast_set(1000001) AS id) AS made')
	{
		$session = session("SET fast_uuid.ordering = '$ordering'", 'SELECT fast_uuid_reset_ordering()', 'SET fast_uuid.max_clock_lead = 0');
		$now += 1000 * $ms;
		$clock->put($now);
		is($session->outcome("SELECT $call"), '55000', "$ordering: $call fails in the middle");
		$session->query_safe('RESET fast_uuid.max_clock_lead');
		my $next = KnownClock::ns_of($session->query_safe('SELECT uuidv7_fast()')) - $now;
		cmp_ok($next, '>',  999_000,   "$ordering: $call: the next UUID is beyond what was generated");
		cmp_ok($next, '<=', 1_000_001, "$ordering: $call: and not beyond that of the failure");
		$session->quit;
	}
}

# --- A reset that comes first.

foreach my $ordering ('session', 'instance', $durable ? 'durable' : ())
{
	$now += 1000 * $ms;
	$clock->put($now + 10 * $ms);
	$other->query_safe('SELECT uuidv7_fast()');
	$clock->put($now);
	$session = session("SET fast_uuid.ordering = '$ordering'");
	is($session->outcome('SELECT fast_uuid_reset_ordering()'), 'value ', "$ordering: a reset is the first that a session does");

	# Under durable order the first one is reserved again, once the horizon is known.
	my $first = $now + ($ordering eq 'durable' ? 1 : 0);
	is(KnownClock::ns_of($session->query_safe('SELECT uuidv7_fast()')), $first, "$ordering: then it has the time of the clock");
	my $next = KnownClock::ns_of($other->query_safe('SELECT uuidv7_fast()'));
	is($next, $ordering eq 'session' ? $now + 10 * $ms + 1 : $first + 1, "$ordering: and the others, " . ($ordering eq 'session' ? 'whom it does not concern, theirs' : 'whom it concerns, too'));
	is($session->query_safe("SELECT largest_clock_lead < '1 ms' FROM fast_uuid_stats() WHERE name = 'session'"), 't', "$ordering: no lead of the session");
	$session->quit;
}
$other->quit;
$node->stop;
done_testing();
