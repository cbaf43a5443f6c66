# Two servers that replicate one table to each other, with keys generated on each side by
# default, insert with both clocks standing still at the same instant, so that only the random
# bits keep the sides apart: no row is lost, no key conflicts.  8 sessions generate UUIDs on the
# same 1000 nanoseconds, and any two are equal with a probability below 28 * 1000 / 2^54 = 2e-12.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use Faults;
use Sessions;
use RawSession;

my @nodes = map { PostgreSQL::Test::Cluster->new($_) } 'left', 'right';
$_->init(allows_streaming => 'logical') foreach @nodes;
my ($left, $right) = @nodes;

# 16 and later filter by origin.  In 15 each side publishes its own rows.
my $filters = $left->pg_version >= 16;
foreach my $node (@nodes)
{
	my $name = $node->name;
	my $own = $filters ? '' : "WHERE (site = '$name') WITH (publish = 'insert')";
	start_with_fake_clock($node);
	$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), site text DEFAULT '$name');
CREATE PUBLICATION item FOR TABLE item $own});
}
foreach my $node (@nodes)
{
	my $other = $node == $left ? $right : $left;
	my $with = 'copy_data = false' . ($filters ? ', origin = none' : '');
	$node->safe_psql('postgres', "CREATE SUBSCRIPTION on_${\ $node->name}"
		  . " CONNECTION '${\ $other->connstr} dbname=postgres' PUBLICATION item WITH ($with)");
}

# Sessions of both sides, from every source.
my $instant = time + 5;
stop_clock($_, $instant) foreach @nodes;
my @sessions;
foreach my $source (available_sources($left))
{
	push @sessions, map { RawSession->start($_, "SET fast_uuid.source = '$source'") } @nodes;
}
$_->send('INSERT INTO item SELECT FROM generate_series(1, 1000)') foreach @sessions;
$_->receive foreach @sessions;
is(join('', map { $_->{error} } @sessions), '', 'both sides insert by default');
set_clock_offset($_, '+0') foreach @nodes;
foreach my $node (@nodes)
{
	my $errors = 'SELECT coalesce(sum(apply_error_count), 0) FROM pg_stat_subscription_stats';
	my $rows = 1000 * @sessions;
	wait_for($node, "SELECT (SELECT count(*) FROM item) >= $rows OR ($errors) > 0");
	is($node->safe_psql('postgres', $errors), '0', 'no conflict on the ' . $node->name);
}
my $contents = 'SELECT id, site FROM item ORDER BY id';
is($left->safe_psql('postgres', $contents), $right->safe_psql('postgres', $contents), 'equal');

# The first 74 bits are the time and the constant fields.
is($left->safe_psql('postgres', q{
SELECT count(*) FROM (
  SELECT FROM item GROUP BY ('x' || replace(id::text, '-', ''))::bit(74)
  HAVING count(DISTINCT site) = 2) AS same}),
	'1000', 'the sides did use the same nanoseconds');
$_->safe_psql('postgres', "DROP SUBSCRIPTION on_${\ $_->name}") foreach @nodes;
$_->stop foreach @nodes;
done_testing();
