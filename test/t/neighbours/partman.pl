# Partitions by pg_partman, as doc/partitions.md has them, on a server whose time zone
# has changes of clock: no gap in more than a year, each row in the partition of its
# time, only the partitions of a span are read, old ones are dropped.  And what the page
# warns of does happen.

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
if ($node->safe_psql('postgres', q{
SELECT count(*) FROM pg_available_extensions WHERE name = 'pg_partman'
   AND string_to_array(substring(default_version FROM '^\d+\.\d+'), '.')::int[] >= '{5, 2}'}) eq '0')
{
	$node->stop;
	plan skip_all => 'pg_partman 5.2, the first to partition by a UUID, is not installed';
}

my $page = 'doc/partitions.md';
my ($set_up, $daily) = map { $_->{sql} } grep { $_->{extension} eq 'pg_partman' } examples($page);
my ($search) = map { $_->{sql} } grep { $_->{sql} =~ /previous_ends/ } examples($page);

sub query
{
	my ($sql) = @_;
	return $node->safe_psql('postgres', "SET client_min_messages = warning;\n$sql");
}

sub gaps
{
	my ($table) = @_;
	return query($search =~ s/'event'/'$table'/r);
}

sub partitions
{
	my ($table) = @_;
	return query("SELECT count(*) FROM partman.show_partitions('public.$table')");
}

sub partitions_read
{
	my ($table) = @_;
	my $plan = query(qq{
SELECT format('EXPLAIN (COSTS OFF) SELECT FROM $table WHERE id >= %L AND id < %L', uuidv7_fast_min(month AT TIME ZONE 'UTC'),
              uuidv7_fast_min((month + interval '1 month') AT TIME ZONE 'UTC'))
  FROM date_trunc('month', now() AT TIME ZONE 'UTC') AS month
\\gexec});
	my %read = map { $_ => 1 } $plan =~ / on (${table}_(?:p\d+|default))(?!\w)/g;
	return scalar keys %read;
}

# More than a year ahead, also without rows.
my $far_ahead = 'UPDATE partman.part_config SET premake = 14, infinite_time_partitions = true';

query('CREATE EXTENSION fast_uuid');
query($set_up);
query($far_ahead);
query($daily);
cmp_ok(partitions('page_view'), '>=', 18, 'partitions are created for more than a year ahead');
is(gaps('page_view'), '', 'there is no gap between them');

query(q{
INSERT INTO page_view (path) SELECT 'now' FROM generate_series(1, 100);
INSERT INTO page_view SELECT uuidv7_fast_at(t), 'given'
  FROM generate_series(now() - interval '2 months', now() + interval '13 months', '1 hour') AS t});
is(query('SELECT count(*) FROM page_view_default'), '0', 'every row has a partition');
is( query(q{
SELECT count(*) FROM page_view
 WHERE tableoid::regclass::text <> 'page_view_p' || to_char(uuidv7_fast_timestamp(id) AT TIME ZONE 'UTC', 'YYYYMM01')}),
	'0', 'and is in that of its month in UTC');
is(partitions_read('page_view'), '1', 'for one month one partition is read');

# The month before the present one is dropped; rows of others stay.
my $kept = q{SELECT count(*) FROM page_view WHERE id >= uuidv7_fast_min(date_trunc('month', now() AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')};
my $before = query($kept);
query("UPDATE partman.part_config SET retention = '1 day'");
query($daily);
is(query('SELECT count(*) FROM page_view'), query(q{
SELECT count(*) FROM page_view
 WHERE id >= uuidv7_fast_min(date_trunc('month', (now() - interval '1 day') AT TIME ZONE 'UTC') AT TIME ZONE 'UTC')}),
	'months that have ended are dropped');
is(query($kept), $before, 'with no row of the present one or a later one');

# pg_partman's own bounds are before the ids of a month, and those of the month before
# do not end with it.
query(q{
CREATE TABLE own (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id);
SET timezone = 'UTC';
SELECT partman.create_parent('public.own', 'id', '1 month',
  p_time_encoder => 'partman.uuid7_time_encoder', p_time_decoder => 'partman.uuid7_time_decoder')});
is(partitions_read('own'), '2', "with pg_partman's own bounds two are read");

# Without one time zone for all there is a gap.
query(q{
CREATE TABLE two_zones (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id);
SELECT partman.create_parent('public.two_zones', 'id', '1 month',
  p_time_encoder => 'public.uuidv7_fast_min', p_time_decoder => 'partman.uuid7_time_decoder')});
is(gaps('two_zones'), '', 'created under New York: no gap');
query($far_ahead);
query($daily);
isnt(gaps('two_zones'), '', 'continued under UTC: a gap');
query(q{
CREATE TABLE by_hour (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id);
SELECT partman.create_parent('public.by_hour', 'id', '1 hour', p_premake => 1,
  p_time_encoder => 'public.uuidv7_fast_min', p_time_decoder => 'partman.uuid7_time_decoder');
SELECT partman.create_partition_time('public.by_hour',
  ARRAY(SELECT generate_series(timestamptz '2025-11-02 00:00-04', '2025-11-02 04:00-05', '1 hour')))});
like(gaps('by_hour'), qr/^by_hour_p20251102_020000\|2025-11-02 02:00:00-05\|2025-11-02 01:00:00-05$/m,
	'by the hour: a gap where daylight saving time ends');

# A row of the future in the DEFAULT partition is in the way.
query(q{
CREATE TABLE in_the_way (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id);
SET timezone = 'UTC';
SELECT partman.create_parent('public.in_the_way', 'id', '1 month', p_premake => 1,
  p_time_encoder => 'public.uuidv7_fast_min', p_time_decoder => 'partman.uuid7_time_decoder');
INSERT INTO in_the_way VALUES (uuidv7_fast_at(now() + interval '6 months')), (gen_random_uuid())});
like(query('SELECT * FROM partman.check_default()'), qr/^public\.in_the_way_default\|2$/m, 'rows without a partition are counted');
query($far_ahead);
my ($code, $out, $err) = $node->psql('postgres', $daily, on_error_stop => 1);
like($out . $err, qr/would be violated by some row/, 'and one of the future prevents its partition');

$node->stop;
done_testing();
