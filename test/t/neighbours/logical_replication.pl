# Two servers that replicate one table to each other, with keys generated on each side by
# default: both insert at once, with the clocks right, and with both clocks standing
# still at the same instant, so that only the random bits keep the sides apart.  No row
# is lost, no key conflicts, and each session keeps its order, on both sides.  In the
# second case 8 sessions generate UUIDs on the same 1000 nanoseconds, and any two of them
# are equal with a probability below 28 * 1000 / 2^54 = 2e-12.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use Simultaneous;

require_fake_clock();

my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my $rows    = 1000;    # of each session
my %other   = (left => 'right', right => 'left');
my @sides   = sort keys %other;
my %node;

foreach my $side (@sides)
{
	my $node = $node{$side} = PostgreSQL::Test::Cluster->new($side);
	$node->init(allows_streaming => 'logical');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	start_with_fake_clock($node);
	$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (
  id      uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  site    text NOT NULL DEFAULT '$side',
  session text NOT NULL,
  counter int  NOT NULL
)});

	# 16 and later filter by origin.  In 15 each side publishes its own rows.
	$node->safe_psql('postgres', 'CREATE PUBLICATION item FOR TABLE item'
		  . ($node->pg_version < 16 ? " WHERE (site = '$side') WITH (publish = 'insert')" : ''));
}
foreach my $side (@sides)
{
	my $origin = $node{$side}->pg_version < 16 ? '' : ', origin = none';
	$node{$side}->safe_psql('postgres',
		"CREATE SUBSCRIPTION to_$side CONNECTION \$\$" . $node{ $other{$side} }->connstr('postgres')
		  . "\$\$ PUBLICATION item WITH (copy_data = false$origin)");
}

# Sessions of both sides, from every source, with keys and with feed ids, until each side
# has the rows of all, or has failed.
sub insert_on_both_sides
{
	my ($when, $expected) = @_;
	my @work;
	foreach my $side (@sides)
	{
		foreach my $n (0 .. $#sources)
		{
			my ($column, $call) = $n % 2 ? ('id, ', 'uuidv7_feed_id(), ') : ('', '');
			push @work,
			  [
				$node{$side},
				"SET fast_uuid.source = '$sources[$n]'",
				"INSERT INTO item (${column}session, counter) SELECT $call'$side $n, $when', generate_series(1, $rows)"
			  ];
		}
	}
	is(run_simultaneously(@work), '', "$when: both sides insert by default");
	set_clock_offset($node{$_}, '+0') foreach @sides;

	my %contents;
	foreach my $side (@sides)
	{
		my $errors = 'SELECT coalesce(sum(apply_error_count), 0) FROM pg_stat_subscription_stats';
		$node{$side}->poll_query_until('postgres', "SELECT (SELECT count(*) FROM item) >= $expected OR ($errors) > 0")
		  or diag("$side does not receive its rows");
		is($node{$side}->safe_psql('postgres', $errors), '0', "$when: no conflict on the $side");
		is( $node{$side}->safe_psql('postgres', q{
SELECT count(*), count(DISTINCT id), bool_and(id > previous)
  FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY counter) AS previous FROM item) AS pairs}),
			"$expected|$expected|t", "$when: every row once on the $side, in the order of its session");
		$contents{$side} = $node{$side}->safe_psql('postgres', "SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM item AS t");
	}
	is($contents{left}, $contents{right}, "$when: both sides are equal");
	return;
}

my $each = 2 * @sources * $rows;
insert_on_both_sides('clocks right', $each);

# Later than any feed id so far.
my $second = time + 5;
stop_clock($node{$_}, $second) foreach @sides;
insert_on_both_sides('one standing clock', 2 * $each);

# The first 74 bits are the time and the constant fields.
cmp_ok(
	$node{left}->safe_psql('postgres', q{
SELECT count(*) FROM (
  SELECT FROM item WHERE session LIKE '%standing%'
   GROUP BY ('x' || replace(id::text, '-', ''))::bit(74) HAVING count(DISTINCT site) = 2) AS same}),
	'>=', $rows, 'the sides did use the same nanoseconds');
foreach my $side (@sides)
{
	unlike(slurp_file($node{$side}->logfile), qr/ERROR: |conflict|duplicate/, "the log of the $side has no error");
	$node{$side}->safe_psql('postgres', "DROP SUBSCRIPTION to_$side");
}
$node{$_}->stop foreach @sides;
done_testing();
