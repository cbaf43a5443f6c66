# Hypertables of TimescaleDB partitioned by the id, in chunks of a day: rows with
# keys by default, in bulk and of given times go to the chunk of their time, no
# row is lost, and a range of ids reads only the chunks it needs.  Once by
# TimescaleDB's own understanding of version 7 ids (2.23 and later), once by
# uuidv7_fast_timestamp().

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use Together;

my $node = PostgreSQL::Test::Cluster->new('timescaledb');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'UTC'");
$node->start;
if (!offers($node, 'timescaledb', '2, 23'))
{
	$node->stop;
	plan skip_all => 'TimescaleDB 2.23, the first to partition by a version 7 UUID, is not installed';
}
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'timescaledb'\ntimescaledb.telemetry_level = off");
$node->restart;
$node->safe_psql(
	'postgres', q{
SET client_min_messages = error;
CREATE EXTENSION timescaledb;
CREATE EXTENSION fast_uuid;
CREATE FUNCTION time_of(uuid) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
  RETURN uuidv7_fast_timestamp($1);
});

sub is_true
{
	my ($sql, $name) = @_;
	is($node->safe_psql('postgres', $sql), 't', $name);
	return;
}

sub chunks_of
{
	my ($sql) = @_;
	my $plan = $node->safe_psql('postgres', "EXPLAIN (COSTS OFF) $sql");
	my %chunks = map { $_ => 1 } $plan =~ / on (_hyper_\w+_chunk)/g;
	return scalar keys %chunks;
}

# Midnight ten days ago, the start of a chunk.
my $start = $node->safe_psql('postgres', q{SELECT date_trunc('day', now() - interval '10 days')});
my $later = "'$start'::timestamptz + interval '";
my $end   = $node->safe_psql('postgres', "SELECT ${later}24 h'");
my $last  = $node->safe_psql('postgres', "SELECT ${later}23 h 59 min 59.999 s'");
my %ways  = (
	by_id       => "interval '1 day'",
	by_function => "interval '1 day', partition_func => 'time_of'::regproc");

foreach my $table (sort keys %ways)
{
	$node->safe_psql(
		'postgres', qq{
CREATE TABLE $table (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), session text NOT NULL, counter int NOT NULL);
SELECT create_hypertable('$table', by_range('id', $ways{$table}))});

	# By default, one by one and in bulk, in several sessions, for which the
	# first to come makes the chunks; and a row for each hour since the start.
	my @work = map {
		[
			$node,
			"DO \$\$ BEGIN FOR i IN 1..500 LOOP INSERT INTO $table (session, counter) VALUES ('session $_', i); END LOOP; END \$\$",
			"INSERT INTO $table (session, counter) SELECT 'session $_', generate_series(501, 2000)",
			"INSERT INTO $table SELECT uuidv7_fast_set(2000), 'session $_', generate_series(2001, 4000)"
		]
	} 1 .. 3;
	push @work, map {
		[
			$node,
			"INSERT INTO $table SELECT uuidv7_fast_at('$start'::timestamptz + n * interval '1 hour'), 'given $_', n"
			  . ' FROM generate_series(0, 239) AS n'
		]
	} 1 .. 2;
	push @work,
	  [ $node, "INSERT INTO $table VALUES (uuidv7_fast_at('1970-01-01'), 'ends', 1), (uuidv7_fast_at('10889-08-01'), 'ends', 2)" ];
	is(run_together(@work), '', "$table: all sessions insert");

	my $count = 3 * 4000 + 2 * 240 + 2;
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*), count(DISTINCT id), bool_and(id > previous)
  FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY counter) AS previous FROM $table) AS pairs}),
		"$count|$count|t", "$table: no row is lost, none is there twice, each session kept its order");
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*) FROM $table AS t JOIN timescaledb_information.chunks
    ON format('%I.%I', chunk_schema, chunk_name)::regclass = t.tableoid
 WHERE uuidv7_fast_timestamp(id) >= range_start AND uuidv7_fast_timestamp(id) < range_end
   AND range_end - range_start = interval '1 day'}),
		$count, "$table: every row is in the chunk of its time");
	is( $node->safe_psql(
			'postgres', qq{
SELECT count(*) FROM $table
 WHERE session LIKE 'given%' AND uuidv7_fast_timestamp(id) = '$start'::timestamptz + counter * interval '1 hour'}),
		'480', "$table: given times come back");
	my $chunks = $node->safe_psql('postgres', "SELECT count(*) FROM show_chunks('$table')");
	cmp_ok($chunks, '>=', 13, "$table: there is a chunk for each day");

	# A range reads its chunks, be it known when the query is planned or when it
	# starts, and finds what a plain table holds.  Where the chunks are those of
	# a function, it must be a range of that function.
	$node->safe_psql('postgres', "CREATE TABLE plain_$table AS SELECT * FROM $table");
	my $one = $node->safe_psql('postgres', "SELECT id FROM $table WHERE session = 'given 1' AND counter = 100");
	my ($value, $from) = $table eq 'by_function' ? ('time_of(id)', '') : ('id', 'uuidv7_fast_min');
	foreach my $range (
		[ 'a day',             "$value >= $from('$start') AND $value < $from('$end')",               1 ],
		[ 'parts of two days', "$value >= $from(${later}20 h') AND $value < $from(${later}30 h')",   2 ],
		[ 'from a time on',    "$value >= $from(now() - interval '5 days')",                         $chunks - 6 ],
		[ 'before a time',     "$value < $from(${later}49 h')",                                      4 ],
		[ 'ids of a day',      "id >= uuidv7_fast_min('$start') AND id <= uuidv7_fast_max('$last')", 1 ],
		[ 'one given id',      "id = '$one'",                                                        1 ])
	{
		my ($name, $condition, $expected) = @$range;
		cmp_ok(chunks_of("SELECT * FROM $table WHERE $condition"), '<=', $expected, "$table: $name, chunks that are read");
		is_true(
			qq{
SELECT (SELECT count(*) > 0 FROM $table WHERE $condition)
   AND (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM $table AS t WHERE $condition)
     = (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM plain_$table AS t WHERE $condition)},
			"$table: $name, the rows are those of a plain table");
	}

	my ($code, $out, $err) = $node->psql('postgres', "INSERT INTO $table VALUES (gen_random_uuid(), 'other', 1)");
	like($err, qr/is not a version 7 UUID|"public.time_of" returned NULL/, "$table: an id without a time is refused");

	# Retention: whole days go, and no other.
	$node->safe_psql('postgres', "SELECT drop_chunks('$table', older_than => '$start'::timestamptz + interval '3 days')");
	is_true(
		qq{
SELECT (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM $table AS t)
     = (SELECT md5(string_agg(t::text, ',' ORDER BY id)) FROM plain_$table AS t
         WHERE id >= uuidv7_fast_min('$start'::timestamptz + interval '3 days'))},
		"$table: dropping old chunks drops the old rows and no other");
}

# Digits below a millisecond may be rounded either way.
is_true(
	q{SELECT bool_and(uuid_timestamp(id) = uuidv7_fast_timestamp(id)
            AND abs(extract(epoch FROM uuid_timestamp_micros(id) - uuidv7_fast_timestamp(id, true))) <= 0.000001)
        FROM plain_by_id}, 'TimescaleDB reads the same times from the ids');
is_true(
	q{SELECT bool_and(to_uuidv7_boundary(t) = uuidv7_fast_min(t))
        FROM generate_series('2020-01-01'::timestamptz, '2030-01-01', '1 day 1 hour 1 minute 1.001 s') AS t},
	'and has the same bounds for a time');

# As the page has it, in sessions of another time zone than the server's.
$node->safe_psql('postgres', 'CREATE DATABASE page');
my ($recipe) = map { $_->{sql} } grep { $_->{extension} eq 'timescaledb' } examples('doc/partitions.md');
my ($code, $out, $err) = $node->psql('page',
	"SET timezone = 'America/New_York'; SET client_min_messages = error; CREATE EXTENSION fast_uuid;\n$recipe", on_error_stop => 1);
is($code, 0, 'the recipe runs') or diag($err);
is( $node->safe_psql(
		'page', q{
SET timezone = 'America/New_York';
INSERT INTO reading SELECT uuidv7_fast_at(t), 1 FROM generate_series(now() - interval '13 months', now(), '1 hour') AS t;
SELECT count(*) > 390, bool_and(range_start AT TIME ZONE 'UTC' = date_trunc('day', range_start AT TIME ZONE 'UTC')),
       bool_and(range_end - range_start = interval '24 hours')
  FROM timescaledb_information.chunks WHERE hypertable_name = 'reading'}),
	't|t|t', 'and its chunks are days of UTC through a year with both changes of clock');

$node->stop;
done_testing();
