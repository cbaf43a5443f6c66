# Partitions by pg_partman, as doc/partitions.md has them, on a server whose time zone has
# changes of clock: no gap in more than a year, each row in the partition of its time, only
# the partitions of a span are read, old ones are dropped.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my $node = PostgreSQL::Test::Cluster->new('partman');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'America/New_York'");
$node->start;
my $offered = $node->safe_psql('postgres', q{
SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_partman'
   AND string_to_array(substring(default_version FROM '^\d+\.\d+'), '.')::int[] >= '{5, 2}'});
if (!$offered)
{
	$node->stop;
	plan skip_all => 'pg_partman 5.2, the first to partition by a UUID, is not installed';
}

my @recipe = examples('doc/partitions.md');
my ($set_up, $daily) = map { $_->{sql} } grep { $_->{extension} eq 'pg_partman' } @recipe;

sub query
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', "SET client_min_messages = warning;\n$sql");
}

# More than a year ahead, also without rows.
my $far_ahead = 'UPDATE partman.part_config SET premake = 14, infinite_time_partitions = true';
query("CREATE EXTENSION fast_uuid; $set_up; $far_ahead; $daily");
query(q{
INSERT INTO page_view (path) SELECT 'now' FROM generate_series(1, 100);
INSERT INTO page_view SELECT uuidv7_fast_at(t), 'given'
  FROM generate_series(now() - interval '2 months', now() + interval '13 months', '1 hour') AS t});
is(query(q{
SELECT count(*) FROM page_view
 WHERE tableoid::regclass::text <>
       'page_view_p' || to_char(uuidv7_fast_timestamp(id) AT TIME ZONE 'UTC', 'YYYYMM01')}),
	'0', 'each row is in the partition of its month in UTC');
my @read = query(q{
SELECT format('EXPLAIN (COSTS OFF) SELECT FROM page_view WHERE id >= %L AND id < %L',
              uuidv7_fast_min(month AT TIME ZONE 'UTC'),
              uuidv7_fast_min((month + interval '1 month') AT TIME ZONE 'UTC'))
  FROM date_trunc('month', now() AT TIME ZONE 'UTC') AS month
\gexec}) =~ / on (page_view_(?:p\d+|default))(?!\w)/g;
is(@read, 1, 'for one month one partition is read');

# The month before the present one is dropped; rows of others stay.
my $kept = query(q{
SELECT count(*) FROM page_view
 WHERE id >= uuidv7_fast_min(
       date_trunc('month', (now() - interval '1 day') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')});
query("UPDATE partman.part_config SET retention = '1 day'; $daily");
is(query('SELECT count(*) FROM page_view'), $kept, 'months that have ended are dropped');
$node->stop;
done_testing();
