# A clock that cannot be read, and one whose time no UUID can hold, are errors, whatever is
# asked; nothing is generated, and nothing is reset.  So is the end of the nanoseconds.

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
my $now = 1_800_000_000_999_999_999;
my $end = 18_446_744_073_000_000_000;
$clock->put($now);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = RawSession->start($node, 'SET fast_uuid.buffer_size = 0');

my @keys = ('uuidv7_fast()', "uuidv7_fast('xorshift128+')", "uuidv7_fast(interval '0')",
	'(uuidv7_fast_array(1))[1]', 'uuidv7_fast_set(1)');
my @feed_ids =
  ('uuidv7_feed_id()', "uuidv7_feed_id('xorshift128+')", 'uuidv7_feed_position()');
my @others = ('uuidv7_fast_array(1000)', 'fast_uuid_stats()', 'uuidv7_feed_watermark()',
	'uuidv7_feed_wait(0)', 'uuidv7_feed_reset()', 'fast_uuid_observe(uuidv7_fast_min(now()))',
	'uuidv7_feed_observe(uuidv7_fast_min(now()))');
my $drawn = 'SELECT sum(refills) FROM fast_uuid_sources()';
my $unreadable = '58000 could not read the system clock: Invalid argument';
my $out_of_range = '22008 time out of range for a generated UUID';
foreach my $case (
	{ clock => 'cannot be read', fails => EINVAL, error => $unreadable },
	{ clock => 'shows a time before 1970', fails => -1, error => $out_of_range },
	{ clock => 'shows a time after 2554', at => $end + 709_551_615, error => $out_of_range })
{
	my $what = "a clock that $case->{clock}";
	my $latest = $session->query_safe('SELECT uuidv7_fast()');
	my $before = $session->query_safe($drawn);
	$clock->fail($case->{fails}) if $case->{fails};
	$clock->put($case->{at}) if $case->{at};
	foreach my $call (@keys, @feed_ids, @others)
	{
		$session->query("SELECT $call");
		like($session->{error}, qr/^$case->{error}\|/, "$what: $call is an error");
	}
	like($session->outcome('SELECT uuidv7_fast_at(now())'),
		qr/^value /, "$what: a given time needs no clock");
	is($session->query_safe($drawn), $before + 1, '... for which alone something was drawn');
	$clock->fail(0);
	$clock->put($now);
	is( KnownClock::ns_of($session->query_safe('SELECT uuidv7_fast()')),
		KnownClock::ns_of($latest) + 1, '... then the session goes on, where it was');
}

# A reset that fails because of the clock resets nothing.
$clock->put($now + 100_000_000_000);
my $ahead = $session->query_safe('SELECT uuidv7_feed_id()');
$clock->fail(-1);
is($session->outcome('SELECT uuidv7_feed_reset()'), '22008', 'a clock before 1970: no reset');
$clock->fail(0);
$clock->put($now);
is($session->query("SELECT uuidv7_feed_id() > '$ahead'"), 't', '... and ids go on from before');
$session->query_safe('SELECT uuidv7_feed_reset()');

# Each nanosecond up to the last, and no further.
sub end_here
{
	my ($what, @calls) = @_;
	is($session->outcome("SELECT $_"), '22008', "$what: $_ is an error") foreach @calls;
	return;
}

sub observe_key
{
	my ($seconds) = @_;
	my $time = "2554-07-21 23:34:${seconds}Z";
	return $session->outcome("SELECT fast_uuid_observe(uuidv7_fast_max('$time'))");
}

$clock->put($end - 300);
my $ids = join "\n", map { $session->query_safe("SELECT $_") }
  'uuidv7_fast()', 'unnest(uuidv7_fast_array(256))', 'uuidv7_fast_set(43)';
is( join(' ', map { $end - KnownClock::ns_of($_) } split /\n/, $ids),
	join(' ', reverse 1 .. 300), 'keys: the last nanoseconds there are');
end_here('keys', @keys);
is(observe_key('33'), '22008', 'keys: observed beyond the end');
is(observe_key('32.999'), 'value ', 'keys: observed at the end');
$clock->put($now);
end_here('keys, with a clock that is right again, and behind', 'uuidv7_fast()');
$session->query_safe('SELECT fast_uuid_reset_ordering()');
is(KnownClock::ns_of($session->query('SELECT uuidv7_fast()')), $now, 'keys: a reset leads back');

# Positions end where type bigint does, feed ids two seconds before the end, so that the upper
# bound stays in range.
$clock->put(2**63 - 1024);
my $position = $session->query_safe('SELECT uuidv7_feed_position()');
cmp_ok($position, '>=', 2**63 - 1024, 'a position of 2262');
$clock->put($end - 10_000_000_000);
end_here('positions', 'uuidv7_feed_position()', 'uuidv7_feed_position_watermark()');
$session->query_safe('SELECT uuidv7_feed_id()');
my $bound = $session->query_safe('SELECT last_value FROM fast_uuid_upper_bound');
foreach my $ns (1_500_000_000, 500_000_000, -500_000_000)
{
	$clock->put($end - $ns);
	end_here("a feed, $ns ns from the end", @feed_ids);
}
is($session->query_safe('SELECT last_value FROM fast_uuid_upper_bound'),
	$bound, 'a feed near the end: no upper bound is written');
$session->quit;
$node->stop;
done_testing();
