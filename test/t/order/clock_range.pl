# Clocks at the limits: one that counts microseconds; one before 1970 and one after 2554,
# which make no value.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;

require_fake_clock();

# A clock of microseconds.
my $node = PostgreSQL::Test::Cluster->new('coarse');
$node->init;
{
	local $ENV{LD_PRELOAD} = getcwd() . '/test/modules/preload_coarse_clock.so';
	$node->start;
}
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

is( $node->safe_psql(
		'postgres', q{
CREATE TABLE made AS SELECT n, before, uuidv7_fast() AS id, clock_timestamp() AS after
  FROM (SELECT n, clock_timestamp() AS before FROM generate_series(1, 20000) AS n OFFSET 0) AS calls;
SELECT count(*), count(DISTINCT id), bool_and(id > previous)
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM made) AS pairs}),
	'20000|20000|t', 'a clock of microseconds: every value is different, in strict order');
is( $node->safe_psql(
		'postgres', q{
SELECT bool_and(uuidv7_fast_timestamp(id, true) BETWEEN before AND after + interval '1 us') FROM made}),
	't', 'a clock of microseconds: the microsecond is the clock\'s');

is($node->safe_psql('postgres', 'SELECT cardinality(uuidv7_fast_array(1000)), count(*) FROM uuidv7_fast_set(1000)'),
	'1000|1000', 'a clock of microseconds: bulk');
$node->stop;

# Clocks that no value can hold.
my $far = PostgreSQL::Test::Cluster->new('far');
$far->init;
start_with_fake_clock($far);
$far->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
my $session = $far->background_psql('postgres', on_error_stop => 0);
is($session->query_safe('SELECT uuidv7_fast() IS NOT NULL'), 't', 'a value before the clock goes astray');
foreach my $case ([ 'before 1970', -1_900_000_000 ], [ 'after 2554', 17_000_000_000 ])
{
	my ($when, $offset) = @$case;
	set_clock_offset($far, sprintf('%+d', $offset));
	foreach my $call ('uuidv7_fast()', 'uuidv7_fast_array(3)', 'uuidv7_fast_set(3)', "uuidv7_fast(interval '1 s')")
	{
		$session->{stderr} = '';
		is($session->query("\\set VERBOSITY verbose\nSELECT $call"), '', "a clock $when: $call makes nothing");
		like($session->{stderr}, qr/ERROR:  22008: time out of range for a generated UUID/,
			"a clock $when: $call says so");
	}
	set_clock_offset($far, '+0');
	$session->{stderr} = '';
	is($session->query_safe('SELECT uuidv7_fast_timestamp(uuidv7_fast()) > clock_timestamp() - interval \'1 minute\''),
		't', 'the clock returned: values again');
}

# A reset that fails because of the clock resets nothing.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 2 if $far->pg_version < 17;
	set_clock_offset($far, '+100');
	my $ahead = $session->query_safe("SET fast_uuid.ordering = 'durable';\nSELECT uuidv7_fast()");
	set_clock_offset($far, '-1900000000');
	$session->{stderr} = '';
	$session->query('SELECT fast_uuid_reset_ordering()');
	like($session->{stderr}, qr/ERROR:  22008: time out of range/, 'a clock before 1970: no reset under durable order');
	set_clock_offset($far, '+0');
	$session->{stderr} = '';
	is($session->query_safe("SELECT uuidv7_fast() > '$ahead'"), 't', 'and UUIDs continue from those before');
}
$session->quit;
$far->stop;

done_testing();
