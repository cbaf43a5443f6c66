# Clocks of every resolution, and of none: the digits below the resolution, in every
# function.  A resolution is believed if
# it is below a millisecond and divides a second; then the digits below are random,
# otherwise they are what the clock shows.  And clocks that cannot be read.

use strict;
use warnings;

use Errno qw(EINVAL);
use List::Util qw(max min uniq);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('resolution');
$node->init;
my $clock = KnownClock->new($node);
$clock->put(1_800_000_000_000_000_000);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $user = $node->safe_psql('postgres', 'SELECT current_user');

sub session
{
	return RawSession->connect($node, user => $user, database => 'postgres');
}

# The nanoseconds of UUIDs that a call generates, each with nothing before it.
my $draws = 300;

sub drawn
{
	my ($session, $call) = @_;
	return map { KnownClock::ns_of($_) }
	  split /\n/, $session->query("SELECT concat($call, left(fast_uuid_reset_ordering()::text, 0)) FROM generate_series(1, $draws)");
}

my @calls = ('uuidv7_fast()', "uuidv7_fast('xorshift128+')", "uuidv7_fast(interval '0')", '(uuidv7_fast_array(1))[1]', 'uuidv7_fast_set(1)');

# The last nanosecond of a second: what is filled in must not go beyond.
my $now = 1_800_000_000_999_999_999;

sub check
{
	my ($name, $believed) = @_;
	my $session = session();
	is($session->query('SELECT uuidv7_fast_min(now()) IS NULL'), 'f', "$name: the library is loaded");
	my $from = $now - $now % $believed;
	foreach my $call (@calls)
	{
		my @ns = drawn($session, $call);
		is(scalar(@ns), $draws, "$name, $call: UUIDs");
		if ($believed == 1)
		{
			is(join(' ', uniq(@ns)), $now, "$name, $call: the digits are those of the clock");
			next;
		}

		# As distances: in floating point min() knows no nanosecond since 1970.
		my ($least, $most) = (min(map { $_ - $from } @ns), max(map { $_ - $from } @ns));
		cmp_ok($least, '>=', 0, "$name, $call: not before the time of the clock");
		cmp_ok($most, '<', $believed, "$name, $call: nor at that of its next reading");

		# Each fails by chance once in 10^13 runs.
		cmp_ok($least, '<', $believed / 8, "$name, $call: the digits below are as small as can be");
		cmp_ok($most, '>=', int($believed * 7 / 8), "$name, $call: and as large");
		cmp_ok(scalar(uniq(@ns)), '>', min($believed, 300) / 2, "$name, $call: and different");
	}

	# 256 UUIDs of an array take their time from one reading, across a second too.
	my @array = map { KnownClock::ns_of($_) } split /\n/, $session->query('SELECT unnest(uuidv7_fast_array(1500))');
	is(scalar(@array), 1500, "$name: an array");
	is(scalar(grep { $_ % 256 != 0 && $array[$_] != $array[ $_ - 1 ] + 1 } 1 .. $#array), 0, "$name: its nanoseconds follow each other");
	is(scalar(grep { $array[$_] <= $array[ $_ - 1 ] } 1 .. $#array), 0, "$name: and ascend");
	$session->quit;
	return;
}

$clock->put($now);
foreach my $case (
	[ 1,             1 ],
	[ 2,             2 ],
	[ 10,            10 ],
	[ 100,           100 ],
	[ 1_000,         1_000 ],
	[ 500_000,       500_000 ],
	[ 3,             1 ],
	[ 999_999,       1 ],
	[ 1_000_000,     1 ],
	[ 4_000_000,     1 ],
	[ 10_000_000,    1 ],
	[ 1_000_000_000, 1 ],
	[ 1_000_001_000, 1 ])
{
	my ($resolution, $believed) = @$case;
	$clock->set(resolution => $resolution);
	check("a resolution of $resolution ns", $believed);
}
$clock->set(resolution => 1000, resolution_fails => EINVAL);
check('a clock that does not tell its resolution', 1);

$clock->set(resolution => 1, resolution_fails => 0);

# A clock that cannot be read: an error, whatever is asked, and nothing is generated.
my $session = session();
my $latest = $session->query('SELECT uuidv7_fast()');
my $refills = "SELECT sum(refills) FROM fast_uuid_stats() WHERE kind = 'source'";
my $drawn   = $session->query($refills);
$clock->set(fails => EINVAL);
foreach my $call (@calls, 'uuidv7_fast_array(1000)', 'fast_uuid_stats()', "fast_uuid_observe('$latest')")
{
	is($session->outcome("SELECT $call"), '58000', "a clock that cannot be read: $call is an error");
	like($session->{error}, qr/could not read the system clock: Invalid argument/, "a clock that cannot be read: $call says so");
}
like($session->outcome('SELECT uuidv7_fast_at(now())'), qr/^value [0-9a-f]/, 'a given time needs no clock');
$clock->set(fails => 0);
$clock->put($now + 1000);
$clock->move(1000);
my @after = ($session->query('SELECT uuidv7_fast()'), split /\n/, $session->query('SELECT uuidv7_fast_set(3)'));
is(scalar(grep { $_ gt $latest } @after), 4, 'once it can be read the session goes on, in its order');
is(KnownClock::ns_of($after[0]) + 1000, KnownClock::ns_of($after[1]), 'by the clock');
$session->quit;

# Learnt by the postmaster, and inherited by its children.
$node->stop;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
unlink $node->basedir . '/clock';
$clock = KnownClock->new($node, resolution => 1000);
$clock->put($now);
check('preloaded, a resolution of 1000 ns', 1000);
$clock->set(resolution => 1);
check('preloaded, what a child would find does not count', 1000);

$node->stop;
done_testing();
