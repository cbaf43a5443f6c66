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
my @feed_calls = ('uuidv7_feed_id()', "uuidv7_feed_id('xorshift128+')", 'uuidv7_feed_position()');
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
	foreach my $call (@calls, @feed_calls, 'uuidv7_fast_array(1000)', 'fast_uuid_stats()', "fast_uuid_observe('$latest')",
		"uuidv7_feed_observe('$latest')", 'uuidv7_feed_watermark()', 'uuidv7_feed_wait(0)', 'uuidv7_feed_reset()')
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
$clock->put($now + 100_000_000_000);
my $ahead = $session->query('SELECT uuidv7_feed_id()');
$clock->fail(-1);
is($session->outcome('SELECT uuidv7_feed_reset()'), '22008', 'a clock before 1970: no reset of the feed');
$clock->fail(0);
$clock->put($now);
is($session->query("SELECT uuidv7_feed_id() > '$ahead'"), 't', 'and ids continue from those before');
$session->query_safe('SELECT uuidv7_feed_reset()');

# Each nanosecond up to the last, and no further.
sub end_here
{
	my ($what, @ending) = @_;
	is($session->outcome("SELECT $_"), '22008', "$what: $_ is an error") foreach @ending;
	return;
}

$clock->put($end - 300);
my @ids = map { split /\n/, $session->query_safe("SELECT $_") } 'uuidv7_fast()', 'unnest(uuidv7_fast_array(256))', 'uuidv7_fast_set(43)';
is(join(' ', map { $end - KnownClock::ns_of($_) } @ids), join(' ', reverse 1 .. 300), 'keys: the last nanoseconds there are');
end_here('keys', @calls);
is($session->outcome("SELECT fast_uuid_observe(uuidv7_fast_max('2554-07-21 23:34:$_->[0]Z'))"), $_->[1],
	"keys: observed, $_->[0]") foreach [ '33', '22008' ], [ '32.999', 'value ' ];
$clock->put($now);
is($session->outcome('SELECT uuidv7_fast()'), '22008', 'keys: a clock that is right again is behind');
$session->query_safe('SELECT fast_uuid_reset_ordering()');
is(KnownClock::ns_of($session->query('SELECT uuidv7_fast()')), $now, 'keys: a reset leads back to it');

# Feed ids end two seconds before, so that the upper bound stays in range, positions where type
# bigint does.
my $last_value = 'SELECT last_value FROM fast_uuid_upper_bound';
$clock->put(2**63 - 1024);
my $position = $session->query_safe('SELECT uuidv7_feed_position()');
cmp_ok($position, '>=', 2**63 - 1024, 'a position of 2262');
$clock->put($end - 10_000_000_000);
end_here('positions', 'uuidv7_feed_position()', 'uuidv7_feed_position_watermark()');
$session->query_safe('SELECT uuidv7_feed_id()');
my $before = $session->query_safe($last_value);
foreach my $ns (1_500_000_000, 500_000_000, -500_000_000)
{
	$clock->put($end - $ns);
	end_here("a feed, $ns ns from the end", @feed_calls);
	is($session->query_safe($last_value), $before, "a feed, $ns ns from the end: nothing is written");
}

# An upper bound that no clock has brought about: in nanoseconds the second one is 384 of 65 bits.
$clock->put($now);
foreach my $us ('9223372036854775807', '18446744073709552')
{
	$session->query_safe("SELECT uuidv7_feed_reset(); SELECT setval('fast_uuid_upper_bound', $us)");
	my $other = RawSession->start($node);
	is($other->outcome("SELECT $_"), '55000', "an upper bound of $us: $_ is refused") foreach @feed_calls;
	is($other->query_safe($last_value), $us, "an upper bound of $us is kept");
	$other->quit;
}
$session->quit;
$node->stop;
done_testing();
