# What recipes promise besides that they run: partitions without a gap in any time zone,
# text forms that sort and can be read back, and masks that hide what they are said to hide.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my $node = PostgreSQL::Test::Cluster->new('recipes');
$node->init;
$node->start;

sub query
{
	my ($database, $sql) = @_;
	return $node->safe_psql($database, "SET client_min_messages = warning;\n$sql");
}

sub new_database
{
	my ($name, @statements) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	query($name, $_) foreach 'CREATE EXTENSION fast_uuid', @statements;
	return;
}

# The SQL of a page that matches.
sub find_examples
{
	my ($page, $pattern) = @_;
	return grep { /$pattern/ } map { $_->{sql} } examples("doc/$page.md");
}

new_database('others', find_examples('install', qr/uuidv7_ms/));
is(query('others', q{
SELECT bool_and(uuidv7_fast_timestamp(id) BETWEEN date_trunc('milliseconds', now()) AND ended)
  FROM (SELECT uuidv7_ms() AS id, clock_timestamp() AS ended FROM generate_series(1, 99)) AS made}),
	't', 'the function in SQL: version 7, with the time');
is(query('others', q{
SELECT bool_and(uuidv7_ms_timestamp(id) = date_trunc('milliseconds', t)
                AND uuidv7_ms_timestamp(id) = uuidv7_fast_timestamp(id)
                AND uuidv7_ms_min(t) = uuidv7_fast_min(t) AND id BETWEEN uuidv7_ms_min(t) AND uuidv7_fast_max(t))
  FROM (SELECT t, uuidv7_ms(t) AS id
          FROM generate_series(timestamptz '1970-01-01', '2200-01-01', '99 days 1.234567 s') AS t) AS made}),
	't', '... with a given time, which the other functions know');
is(query('others', q{
SELECT uuidv7_ms_timestamp(gen_random_uuid()), uuidv7_ms_timestamp(overlay(uuidv7_ms()::text PLACING '0' FROM 20)::uuid),
       uuidv7_ms_timestamp(NULL), uuidv7_ms_min(NULL), uuidv7_ms(NULL)}), '||||', '... and which is NULL of other UUIDs');
is(query('others', q{SELECT uuidv7_ms_min('10889-08-02 05:31:50.655+00')}), 'ffffffff-ffff-7000-8000-000000000000',
	'... up to the last time of version 7');
for my $function (qw(uuidv7_ms uuidv7_ms_min)) {
	for my $time ('1969-12-31 23:59:59.9+00', '4713-01-01 BC', '10889-08-02 05:31:50.656+00', '20000-01-01') {
		$node->psql('others', "SELECT $function('$time')", stderr => \my $error);
		like($error, qr/invalid input syntax for type uuid/, "... and $function() refuses $time");
	}
}

my @shown = slurp_file('doc/guide.md') =~ /^ ([-0-9a-f]{36} \| (?:Ada|Grace))$/mg;
is(query('others', join '', find_examples('guide', qr/fast_uuid\.seed/)),
	join("\n", @shown) =~ s/ //gr, 'a seed with a start time: the ids that the page shows');

# Where old rows get ids, a row that has one keeps it, if it is at the same place of another partition.
my @fills = map { /^(DO \$\$\n.*?^END \$\$;)/msg } find_examples('guide', qr/uuidv7_fast_at\(created_at\)/);
new_database('partitioned', q{
CREATE TABLE customer (id uuid, created_at timestamptz) PARTITION BY RANGE (created_at);
CREATE TABLE orders (id int, uid uuid, created_at timestamptz) PARTITION BY RANGE (created_at);
CREATE TABLE order_line (order_id int, order_uid uuid);
CREATE TABLE customer_old PARTITION OF customer FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
CREATE TABLE customer_new PARTITION OF customer DEFAULT;
CREATE TABLE orders_old PARTITION OF orders FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
CREATE TABLE orders_new PARTITION OF orders DEFAULT;
INSERT INTO customer VALUES (NULL, '2025-01-01'), (uuidv7_fast(), now());
INSERT INTO orders SELECT 1, * FROM customer;
CREATE TABLE before AS SELECT * FROM customer}, @fills);
is(query('partitioned', q{
SELECT count(customer.id), count(uid), count(before.id), bool_and(customer.id = before.id AND uid = before.id)
  FROM before LEFT JOIN customer USING (created_at) LEFT JOIN orders USING (created_at)
 WHERE before.id IS NOT NULL}), '1|1|1|t', 'ids of old rows: a row of another partition keeps its own');

# From November 2026 to December 2027.
my ($first_month, $more_months) = find_examples('partitions', qr/event_/);

sub check_partitions
{
	my ($database, $zone) = @_;
	is(query($database, qq{
INSERT INTO event SELECT uuidv7_fast_at(t AT TIME ZONE 'UTC')
  FROM generate_series(timestamp '2026-11-02', '2027-12-30', '30 minutes') AS t;
SELECT count(DISTINCT tableoid), bool_and(tableoid::regclass::text =
       'event_' || to_char(uuidv7_fast_timestamp(id) AT TIME ZONE '$zone', 'YYYY_MM'))
  FROM event}), '14|t', "months of $zone: each row is in the partition of its month there");
	return;
}

new_database('utc', "ALTER DATABASE utc SET timezone = 'Asia/Kolkata'", $first_month, $more_months);
check_partitions('utc', 'UTC');
new_database('elsewhere', "ALTER DATABASE elsewhere SET timezone = 'Pacific/Auckland'",
	'CREATE TABLE event (id uuid PRIMARY KEY) PARTITION BY RANGE (id)',
	$more_months =~ s/'UTC'/'America\/New_York'/gr =~ s/2026-12-01/2026-11-01/r);
check_partitions('elsewhere', 'America/New_York');

# What ended more than a year ago is dropped, and nothing else.
my ($drop) = find_examples('partitions', qr/DROP TABLE/);
query('others', q{
CREATE FUNCTION ago(age interval) RETURNS uuid LANGUAGE sql RETURN uuidv7_fast_min(now() - age);
CREATE TABLE event (id uuid) PARTITION BY RANGE (id);
CREATE TABLE older PARTITION OF event FOR VALUES FROM (MINVALUE) TO (ago('2 years'));
CREATE TABLE old PARTITION OF event FOR VALUES FROM (ago('2 years')) TO (ago('1 year 1 hour'));
CREATE TABLE young PARTITION OF event
  FOR VALUES FROM (ago('1 year 1 hour')) TO (ago('1 year -1 hour'));
CREATE TABLE rest PARTITION OF event DEFAULT});
my $partitions = q{SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid)
  FROM pg_inherits WHERE inhparent = 'event'::regclass};
query('others', $drop);
is(query('others', $partitions), 'young rest', 'what is old is dropped');

# Text forms.
new_database('public_ids', find_examples('public-ids', qr/base32hex_to_uuid\(short/), q{
CREATE TABLE sample AS SELECT unnest(uuidv7_fast_array(500)) AS id
  UNION ALL SELECT gen_random_uuid() FROM generate_series(1, 2000)
  UNION ALL SELECT repeat(c, 32)::uuid FROM unnest(string_to_array('0 1 7 8 e f', ' ')) AS c});
is(query('public_ids', q{
SELECT bool_and(base32hex_to_uuid(short) = id AND base32hex_to_uuid(lower(short)) = id),
       bool_and(base32hex_to_uuid(id::text) = id),
       bool_and((id > previous) = (short COLLATE "C" > uuid_to_base32hex(previous) COLLATE "C"))
  FROM (SELECT id, uuid_to_base32hex(id) AS short, lag(id) OVER (ORDER BY md5(id::text)) AS previous
          FROM sample) AS pairs}), 't|t|t', 'base32hex: back again, in the order of the ids');
is(query('public_ids', q{SELECT uuid_to_base32hex('01a20055-bd1d-7db2-b848-01d3c1880329')}),
	'06H00LDT3LUR5E28079S320354', 'the text that PostgreSQL 19 encodes');
foreach my $malformed ('', '06H00LDT3LUR5E28079S320355', '06H00LDT3LUR5E28079S3203540')
{
	my ($code, $out, $err) = $node->psql('public_ids', "SELECT base32hex_to_uuid('$malformed')");
	like($err, qr/invalid input syntax for type uuid/, "'$malformed' is an error");
}

SKIP:
{
	my $available = query('postgres', 'SELECT name FROM pg_available_extensions');
	skip q{pgcrypto, of the server's contrib modules, is not installed}, 2
	  unless $available =~ /^pgcrypto$/m;
	query('public_ids', 'CREATE TABLE customer (id uuid PRIMARY KEY DEFAULT uuidv7_fast())');
	query('public_ids', join '', find_examples('public-ids', qr/pgcrypto/));
	is(query('public_ids', q{
SELECT bool_and(unmask(mask(id)) = id), count(DISTINCT left(mask(id)::text, 13))
  FROM unnest(uuidv7_fast_array(1000)) AS id}),
		't|1000', 'masks: back again, and those of one moment begin with other bits');
	query('public_ids', 'CREATE ROLE app; GRANT SELECT ON customer TO app');
	my ($code, $out, $err) =
	  $node->psql('public_ids', 'SET ROLE app; SELECT unmask(id) FROM customer');
	like($err, qr/permission denied for function/, 'not for those without a privilege');
}

$node->stop;
done_testing();
