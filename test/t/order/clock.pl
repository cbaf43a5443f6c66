# A clock that cannot be read, and one whose time no UUID can hold, are errors, whatever is
# asked, and nothing is generated.  So is the end of the nanoseconds.  From any other step of
# the clock keys go on.

use strict;
use warnings;

use Errno qw(EINVAL);
use List::Util qw(max);
use PostgreSQL::Test::Cluster;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('clock');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\n");
my $clock = KnownClock->new($node);
my $now = 1_800_000_000_999_999_999;
my $end = 18_446_744_073_000_000_000;
$clock->put($now);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = RawSession->start($node);

my @keys = ('uuidv7_fast()', "uuidv7_fast('xorshift128+')", "uuidv7_fast(interval '0')",
	'uuidv7_fast_array(1)', 'uuidv7_fast_array(1000)');
sub check_errors
{
	my ($what, $error, @calls) = @_;
	foreach my $call (@calls)
	{
		$session->query("SELECT $call");
		like($session->{error}, qr/^$error\|/, "$what: $call is an error");
	}
	return;
}

sub latest_key { return KnownClock::ns_of($session->query_safe('SELECT uuidv7_fast()')) }

my $unreadable = '58000 could not read the system clock: Invalid argument';
my $out_of_range = '22008 time out of range for a generated UUID';
foreach my $case (
	{ clock => 'cannot be read', fails => EINVAL, error => $unreadable },
	{ clock => 'shows a time before 1970', fails => -1, error => $out_of_range },
	{ clock => 'shows a time after 2554', at => $end + 709_551_615, error => $out_of_range })
{
	my $latest = latest_key();
	$clock->fail($case->{fails}) if $case->{fails};
	$clock->put($case->{at}) if $case->{at};
	check_errors("a clock that $case->{clock}", $case->{error}, @keys);
	like($session->outcome('SELECT uuidv7_fast_at(now())'), qr/^value/, '... not a given time');
	$clock->fail(0);
	$clock->put($now);
	is(latest_key(), $latest + 1, '... then the session goes on, where it was');
}

# Whatever the clock does, a key has its time or the nanosecond after the latest key; so has each
# of an array, which here is longer than what one reading of the clock serves.
my ($hour, $day) = (3_600_000_000_000, 86_400_000_000_000);
my $latest_ns = latest_key();
foreach my $step (0, 1, -1, 1000, -$hour, 500, $hour, $day, -$day - $hour)
{
	$clock->step($step);
	my $ids = join "\n", map { $session->query_safe("SELECT $_") } 'uuidv7_fast()',
	  'unnest(uuidv7_fast_array(600))', "uuidv7_fast('getrandom') FROM generate_series(1, 9)";
	my @expected = map { $latest_ns = max($clock->now, $latest_ns + 1) } 1 .. 610;
	is(join(' ', map { KnownClock::ns_of($_) } split /\n/, $ids),
		"@expected", "keys, after a step of $step ns");
}
$clock->put($now);

# Each nanosecond up to the last, and no further.
$clock->put($end - 300);
my $ids = join "\n", map { $session->query_safe("SELECT $_") }
  'uuidv7_fast()', 'unnest(uuidv7_fast_array(256))', 'uuidv7_fast() FROM generate_series(1, 43)';
is( join(' ', map { $end - KnownClock::ns_of($_) } split /\n/, $ids),
	join(' ', reverse 1 .. 300), 'keys: the last nanoseconds there are');
check_errors('at the end', $out_of_range, @keys);
$clock->put($now);
check_errors('far behind', $out_of_range, @keys);
$session->quit;
$session = RawSession->start($node);
$clock->put($now);    # OpenSSL may have read it
is(latest_key(), $now, 'keys: a new session begins with the clock');

$session->quit;
$node->stop;
done_testing();
