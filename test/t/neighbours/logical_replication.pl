# Two servers that replicate one table to each other, with keys made on each
# side by default: both insert at once, no row is lost, no key conflicts, and
# each session keeps its order, on both sides.  Once with the clocks right, and
# once with both clocks standing still at the same instant, so that only the
# random bits keep the sides apart.  8 sessions then make values on the same
# 1000 nanoseconds, and any two of them are equal with a probability below
# 28 * 1000 / 2^54 = 2e-12.
#
# 16 and later filter by origin.  15 can do it with a row filter: each side
# publishes its own rows.

use strict;
use warnings;

use POSIX qw(strftime);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use Together;

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
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
}

my $version = $node{left}->safe_psql('postgres', 'SHOW server_version_num');

# 19 counts errors of tables and of sequences apart.
my $sync_errors = $version >= 190000 ? 'sync_table_error_count' : 'sync_error_count';
my $subscription_errors =
  "SELECT coalesce(sum(apply_error_count + $sync_errors), 0) FROM pg_stat_subscription_stats";

# Sessions of both sides, from every source and under both orders.  True if all
# have succeeded.
sub insert_on_both_sides
{
	my ($table, $when) = @_;
	my @work;
	foreach my $side (@sides)
	{
		foreach my $n (0 .. $#sources)
		{
			my $ordering = $n % 2 ? 'instance' : 'session';
			push @work,
			  [
				$node{$side},
				"SET fast_uuid.source = '$sources[$n]'; SET fast_uuid.ordering = '$ordering'",
				qq{
DO \$\$
BEGIN
  FOR i IN 1..$rows LOOP
    INSERT INTO $table (session, counter) VALUES ('$side $n, $when', i);
    IF i % 10 = 0 THEN COMMIT; END IF;
  END LOOP;
END \$\$}
			  ];
		}
	}
	return is(run_together(@work), '', "$table, $when: both sides insert by default");
}

# Until each side has that many rows, or has failed.
sub wait_for_rows
{
	my ($table, $count) = @_;
	foreach my $side (@sides)
	{
		$node{$side}->poll_query_until('postgres',
			"SELECT (SELECT count(*) FROM $table) >= $count OR ($subscription_errors) > 0")
		  or diag("$side does not receive its rows");
	}
	return;
}

sub check
{
	my ($table, $when, $expected) = @_;
	my %contents;
	foreach my $side (@sides)
	{
		is($node{$side}->safe_psql('postgres', $subscription_errors), '0', "$table, $when: no conflict on the $side");
		is( $node{$side}->safe_psql(
				'postgres', qq{
SELECT count(*), count(DISTINCT id), bool_and(id > previous)
  FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY counter) AS previous FROM $table) AS pairs}),
			"$expected|$expected|t", "$table, $when: every row once on the $side, in the order of its session");
		$contents{$side} =
		  $node{$side}->safe_psql('postgres', "SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM $table AS t");
	}
	is($contents{left}, $contents{right}, "$table, $when: both sides are equal");
	return;
}

my %ways = (by_row_filter => {
		publication  => sub { "FOR TABLE by_row_filter WHERE (site = '$_[0]') WITH (publish = 'insert')" },
		subscription => 'copy_data = false'
	});
$ways{by_origin} = {
	publication  => sub { 'FOR TABLE by_origin' },
	subscription => 'copy_data = false, origin = none'
} if $version >= 160000;

foreach my $table (sort keys %ways)
{
	my $way = $ways{$table};
	foreach my $side (@sides)
	{
		$node{$side}->safe_psql(
			'postgres', qq{
CREATE TABLE $table (
  id      uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  site    text NOT NULL DEFAULT '$side',
  session text NOT NULL,
  counter int  NOT NULL,
  changed text
);
CREATE PUBLICATION $table } . $way->{publication}->($side));
	}
	foreach my $side (@sides)
	{
		$node{$side}->safe_psql('postgres',
				"CREATE SUBSCRIPTION ${table}_to_$side CONNECTION \$\$"
			  . $node{ $other{$side} }->connstr('postgres')
			  . "\$\$ PUBLICATION $table WITH ($way->{subscription})");
	}

	my $each = 2 * @sources * $rows;
	insert_on_both_sides($table, 'clocks right') and wait_for_rows($table, $each);
	check($table, 'clocks right', $each);

	# Later than any value of instance order so far.
	my $instant = strftime('%Y-%m-%d %H:%M:%S', localtime(time + 5));
	set_clock_offset($node{$_}, $instant) foreach @sides;
	my $inserted = insert_on_both_sides($table, 'one standing clock');
	set_clock_offset($node{$_}, '+0') foreach @sides;
	wait_for_rows($table, 2 * $each) if $inserted;
	check($table, 'one standing clock', 2 * $each);

	# The first 74 bits are the time and the constant fields.
	cmp_ok(
		$node{left}->safe_psql(
			'postgres', qq{
SELECT count(*) FROM (
  SELECT FROM $table WHERE session LIKE '%standing%'
   GROUP BY ('x' || replace(id::text, '-', ''))::bit(74) HAVING count(DISTINCT site) = 2) AS same}),
		'>=', $rows, "$table: the sides did use the same nanoseconds");
	next unless $table eq 'by_origin';

	# Each side changes and removes rows that the other has made.
	is( run_together(
			map {
				[
					$node{$_},
					"UPDATE by_origin SET changed = 'on the $_' WHERE site = '$other{$_}' AND counter % 2 = 0",
					"DELETE FROM by_origin WHERE site = '$other{$_}' AND counter % 5 = 1"
				]
			} @sides),
		'', 'by_origin: each side changes rows of the other');
	$node{$_}->wait_for_catchup("by_origin_to_$other{$_}") foreach @sides;
	check($table, 'after changes', 2 * $each * 4 / 5);
	is( $node{left}->safe_psql('postgres', 'SELECT changed, count(*) FROM by_origin WHERE changed IS NOT NULL GROUP BY 1 ORDER BY 1'),
		join("\n", map { "on the $_|" . $each * 2 / 5 } @sides), 'by_origin: every change has arrived');
}

foreach my $side (@sides)
{
	unlike(slurp_file($node{$side}->logfile), qr/ERROR: |conflict|duplicate/, "the log of the $side has no error");
}
foreach my $side (@sides)
{
	$node{$side}->safe_psql('postgres', "DROP SUBSCRIPTION ${_}_to_$side") foreach sort keys %ways;
}
$node{$_}->stop foreach @sides;
done_testing();
