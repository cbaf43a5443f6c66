# A clock that cannot be read, and one whose time no value can hold, are errors, whatever
# is asked; nothing is generated, and nothing is reset.  So is the end of the nanoseconds.

use strict;
use warnings;

use Errno qw(EINVAL);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('range');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
my $clock = KnownClock->new($node);
my $now   = 1_800_000_000_999_999_999;
my $end   = 18_446_744_073_000_000_000;
$clock->put($now);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = RawSession->start($node, 'SET fast_uuid.buffer_size = 0');

my @calls = ('uuidv7_fast()', "uuidv7_fast('xorshift128+')", "uuidv7_fast(interval '0')", '(uuidv7_fast_array(1))[1]', 'uuidv7_fast_set(1)');
my $drawn = "SELECT sum(refills) FROM fast_uuid_sources()";
foreach my $case (
	[ 'cannot be read', '58000 could not read the system clock: Invalid argument', sub { $clock->fail(EINVAL) } ],
	[ 'shows a time before 1970', '22008 time out of range for a generated UUID', sub { $clock->fail(-1) } ],
	[ 'shows a time after 2554', '22008 time out of range for a generated UUID', sub { $clock->put($end + 709_551_615) } ])
{
	my ($what, $error, $spoil) = @$case;
	my $latest = $session->query('SELECT uuidv7_fast()');
	my $before = $session->query($drawn);
	$spoil->();
	foreach my $call (@calls, 'uuidv7_fast_array(1000)', 'fast_uuid_stats()', "fast_uuid_observe('$latest')")
	{
		is($session->query("SELECT $call"), '', "a clock that $what: $call gives nothing");
		like($session->{error}, qr/^$error\|/, "a clock that $what: $call says so");
	}
	like($session->outcome('SELECT uuidv7_fast_at(now())'), qr/^value [0-9a-f]/, "a clock that $what: a given time needs no clock");
	$clock->fail(0);
	$clock->put($now += 1000);
	is($session->query($drawn), $before + 1, "a clock that $what: nothing has been drawn but for that");
	$clock->move(1000);
	my @after = ($session->query('SELECT uuidv7_fast()'), split /\n/, $session->query('SELECT uuidv7_fast_set(3)'));
	is(scalar(grep { $_ gt $latest } @after), 4, "a clock that $what: once it is right the session goes on, in its order");
	is(KnownClock::ns_of($after[0]) + 1000, KnownClock::ns_of($after[1]), "a clock that $what: by the clock");
	$clock->put($now = $clock->now);
}

# A reset that fails because of the clock resets nothing.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 2 if $node->pg_version < 17;
	$clock->put($now + 100_000_000_000);
	my $ahead = $session->query("SET fast_uuid.ordering = 'durable'; SELECT uuidv7_fast()");
	$clock->fail(-1);
	is($session->outcome('SELECT fast_uuid_reset_ordering()'), '22008', 'a clock before 1970: no reset under durable order');
	$clock->fail(0);
	$clock->put($now);
	is($session->query("SELECT uuidv7_fast() > '$ahead'"), 't', 'and UUIDs continue from those before');
	$session->query('SELECT fast_uuid_reset_ordering()');
}

# Each nanosecond up to the last, and no further.
sub ends_here
{
	my ($what) = @_;
	is($session->outcome("SELECT $_"), '22008', "$what: $_ is an error") foreach @calls;
	return;
}

foreach my $ordering ('session', 'instance')
{
	$session->query_safe("SET fast_uuid.ordering = '$ordering'; SELECT fast_uuid_reset_ordering()");
	$clock->put($end - 300);
	my @ids = map { split /\n/, $session->query_safe("SELECT $_") } 'uuidv7_fast()', 'unnest(uuidv7_fast_array(256))', 'uuidv7_fast_set(43)';
	is(join(' ', map { $end - KnownClock::ns_of($_) } @ids), join(' ', reverse 1 .. 300), "$ordering: the last nanoseconds there are");
	ends_here($ordering);
	is($session->outcome("SELECT fast_uuid_observe(uuidv7_fast_max('2554-07-21 23:34:$_->[0]Z'))"), $_->[1],
		"$ordering: observed, $_->[0]") foreach [ '33', '22008' ], [ '32.999', 'value ' ];
	$clock->put($now);
	is($session->outcome('SELECT uuidv7_fast()'), '22008', "$ordering: a clock that is right again is behind");
	$session->query_safe('SELECT fast_uuid_reset_ordering()');
	is(KnownClock::ns_of($session->query('SELECT uuidv7_fast()')), $now, "$ordering: a reset leads back to it");
}


# Under durable order two seconds before, so that the upper bound stays in range; and one that
# no clock has brought about: in nanoseconds the second one is 384 of 65 bits.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 if $node->pg_version < 17;
	my $last_value = 'SELECT last_value FROM fast_uuid_upper_bound';
	$session->query_safe("SET fast_uuid.ordering = 'durable'; SELECT fast_uuid_reset_ordering()");
	$clock->put($end - 10_000_000_000);
	$session->query_safe('SELECT uuidv7_fast_set(10)');
	my $before = $session->query_safe($last_value);
	foreach my $ns (1_500_000_000, 500_000_000, -500_000_000)
	{
		$clock->put($end - $ns);
		ends_here("durable, $ns ns from the end");
		is($session->query_safe($last_value), $before, "durable, $ns ns from the end: nothing is written");
	}
	$clock->put($now);
	foreach my $us ('9223372036854775807', '18446744073709552')
	{
		$session->query_safe("SELECT fast_uuid_reset_ordering(); SELECT setval('fast_uuid_upper_bound', $us)");
		my $other = RawSession->start($node, "SET fast_uuid.ordering = 'durable'");
		is($other->outcome("SELECT $_"), '55000', "an upper bound of $us: $_ is refused") foreach @calls;
		is($other->query_safe($last_value), $us, "an upper bound of $us is kept");
		$other->quit;
	}
}
$session->quit;
$node->stop;
done_testing();
