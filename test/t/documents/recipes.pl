# What recipes promise besides that they run: partitions without a gap in any time zone,
# text forms that sort and can be read back, masks that hide what they are said to hide,
# and what SERIALIZABLE does to keys that grow at the right-hand end.

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
my $version = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);

sub query
{
	my ($database, $sql) = @_;
	return $node->safe_psql($database, "SET client_min_messages = warning;\n$sql");
}

sub new_database
{
	my ($name) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	query($name, 'CREATE EXTENSION fast_uuid');
	return;
}

# Without the extension's generator.
new_database('faq');
query('faq', $_->{sql}) foreach examples('doc/faq.md');
is( query('faq', q{
SELECT bool_and(uuidv7_fast_timestamp(id) BETWEEN date_trunc('milliseconds', began) AND ended), count(DISTINCT id)
  FROM (SELECT clock_timestamp() AS began, uuidv7_ms() AS id, clock_timestamp() AS ended FROM generate_series(1, 1000)) AS generated}),
	't|1000', 'the function in SQL: version 7, of that millisecond, each another');

# The same ids again.
new_database('guide');
my ($seeded) = map { $_->{sql} } grep { $_->{sql} =~ /fast_uuid\.seed/ } examples('doc/guide.md');
is(query('guide', $seeded), join("\n", map { s/ +//gr } slurp_file('doc/guide.md') =~ /^ (\d +\| [-0-9a-f]{36})$/mg),
	'a seed and times: the ids that the page shows');

# Those of the page, from November 2026 to December 2027.
my @partitions = grep { !$_->{extension} } examples('doc/partitions.md');
my ($search) = map { $_->{sql} } grep { $_->{sql} =~ /previous_ends/ } @partitions;

sub check_partitions
{
	my ($database, $zone, $name) = @_;
	is(query($database, $search), '', "$name: no gap between partitions");
	is( query($database, qq{
INSERT INTO event SELECT uuidv7_fast_at(t AT TIME ZONE 'UTC')
  FROM generate_series(timestamp '2026-11-02', '2027-12-30', '30 minutes') AS t;
SELECT count(*) = 48 * 423 + 1, count(DISTINCT tableoid), bool_and(tableoid::regclass::text =
       'event_' || to_char(uuidv7_fast_timestamp(id) AT TIME ZONE '$zone', 'YYYY_MM')) FROM event}),
		't|14|t', "$name: a row for every half an hour is in the partition of its month there");
	return;
}

foreach my $zone ('UTC', 'America/New_York', 'Asia/Kolkata')
{
	my $database = 'partitions_' . lc($zone =~ s/\W/_/gr);
	new_database($database);
	query('postgres', "ALTER DATABASE $database SET timezone = '$zone'");
	query($database, $_->{sql}) foreach @partitions;
	check_partitions($database, 'UTC', "months of UTC, created under $zone");

	# Months of that zone, created under another.
	next if $zone eq 'UTC';
	new_database("of_$database");
	query("of_$database", 'CREATE TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id)');
	my ($create) = map { $_->{sql} =~ s/'UTC'/'$zone'/gr =~ s/2027-01-01/2026-11-01/r } grep { $_->{sql} =~ /gexec/ } @partitions;
	query("of_$database", "SET timezone = 'Pacific/Auckland';\n$create");
	check_partitions("of_$database", $zone, "months of $zone");
}

my ($drop_old) = map { $_->{sql} } grep { $_->{sql} =~ /DROP TABLE/ } @partitions;
new_database('old_partitions');
query('old_partitions', q{
CREATE TABLE click (id uuid) PARTITION BY RANGE (id);
CREATE TABLE click_default PARTITION OF click DEFAULT;
CREATE TABLE click_older PARTITION OF click FOR VALUES FROM (MINVALUE) TO (uuidv7_fast_min(now() - interval '2 years'));
CREATE TABLE click_old PARTITION OF click
  FOR VALUES FROM (uuidv7_fast_min(now() - interval '2 years')) TO (uuidv7_fast_min(now() - interval '1 year 1 hour'));
CREATE TABLE click_young PARTITION OF click
  FOR VALUES FROM (uuidv7_fast_min(now() - interval '1 year 1 hour')) TO (uuidv7_fast_min(now() - interval '1 year -1 hour'))});
my ($readers, $drop) = $drop_old =~ /(.*?;\n)\n(.*)/s;
query('old_partitions', $readers);

sub check_dropped
{
	my ($name, $change, $left) = @_;
	query('old_partitions', "$change;\n$drop");
	is(query('old_partitions', q{SELECT string_agg(inhrelid::regclass::text, ' ' ORDER BY inhrelid) FROM pg_inherits}), $left, $name);
	return;
}

check_dropped('what a reader has not read to the end stays', q{
INSERT INTO click_reader VALUES ('up to date', uuidv7_fast()), ('slow', uuidv7_fast_min(now() - interval '3 years'))},
	'click_default click_older click_old click_young');
check_dropped('what all readers have read is dropped',
	q{UPDATE click_reader SET read_up_to = uuidv7_fast_min(now() - interval '18 months') WHERE name = 'slow'},
	'click_default click_old click_young');
check_dropped('without readers all that ended more than a year ago is dropped, and nothing else',
	'DELETE FROM click_reader', 'click_default click_young');

query('partitions_utc', 'DROP TABLE event_2027_05');
like(query('partitions_utc', $search), qr/^event_2027_06\|/, 'a gap is found');

# Text forms.
my @public = examples('doc/public-ids.md');
new_database('public_ids');
query('public_ids', $_->{sql}) foreach grep { !$_->{extension} && !$_->{version} } @public;
query('public_ids', q{
CREATE TABLE sample AS SELECT unnest(uuidv7_fast_array(500)) AS id
  UNION ALL SELECT gen_random_uuid() FROM generate_series(1, 2000)
  UNION ALL SELECT uuidv7_fast_at(to_timestamp(n * 1e7)) FROM generate_series(0, 1000) AS n
  UNION ALL SELECT repeat(c, 32)::uuid FROM unnest(string_to_array('0 1 7 8 e f', ' ')) AS c});
is( query('public_ids', q{
SELECT bool_and(base32hex_to_uuid(short) = id AND base32hex_to_uuid(lower(short)) = id AND base32hex_to_uuid(id::text) = id),
       bool_and(short ~ '^[0-9A-V]{26}$'),
       bool_and((id > previous) = (short COLLATE "C" > uuid_to_base32hex(previous) COLLATE "C"))
  FROM (SELECT id, uuid_to_base32hex(id) AS short, lag(id) OVER (ORDER BY md5(id::text)) AS previous FROM sample) AS pairs}),
	't|t|t', 'base32hex: back again, 26 characters, in the order of the ids');
is( query('public_ids', q{SELECT uuid_to_base32hex('01a20055-bd1d-7db2-b848-01d3c1880329')}),
	'06H00LDT3LUR5E28079S320354', 'the text that PostgreSQL 19 encodes');
SKIP:
{
	skip 'base32hex is built in from PostgreSQL 19 on', 1 if $version < 19;
	is( query('public_ids', q{
SELECT bool_and(rtrim(encode(id::bytea, 'base32hex'), '=') = uuid_to_base32hex(id) AND decode(uuid_to_base32hex(id), 'base32hex')::uuid = id)
  FROM sample}), 't', 'the same as the built-in encoding');
}
foreach my $malformed ('', '06H00LDT3LUR5E28079S32035', '06H00LDT3LUR5E28079S320355', '06H00LDT3LUR5E28079S3203540', '06H00LDT3LUR5E28079S32W354')
{
	my ($code, $out, $err) = $node->psql('public_ids', "\\set VERBOSITY sqlstate\nSELECT base32hex_to_uuid('$malformed')");
	like($err, qr/22P02/, "'$malformed' is an error");
}

# Masks.
SKIP:
{
	skip 'pgcrypto, of the server\'s contrib modules, is not installed', 6
	  if query('public_ids', q{SELECT count(*) FROM pg_available_extensions WHERE name = 'pgcrypto'}) eq '0';
	query('public_ids', $_->{sql}) foreach grep { $_->{extension} eq 'pgcrypto' } @public;
	is(query('public_ids', 'SELECT bool_and(unmask(mask(id)) = id AND mask(id) <> id), count(DISTINCT mask(id)) = count(DISTINCT id) FROM sample'),
		't|t', 'masks: back again, each id has one of its own');

	# Of 1000 ids of one moment, each bit of the masks is set in about half: six
	# standard deviations are 95.
	query('public_ids', 'CREATE TABLE moment AS SELECT id, mask(id) FROM unnest(uuidv7_fast_array(1000)) AS id');
	my $bits = q{
SELECT count(*) FROM (
  SELECT sum(get_bit(uuid_send(%s), n)) AS ones FROM moment, generate_series(0, 127) AS n GROUP BY n) AS bits
 WHERE ones NOT BETWEEN 405 AND 595};
	is(query('public_ids', sprintf($bits, 'mask')), '0', 'no bit of a mask tells of the moment');
	cmp_ok(query('public_ids', sprintf($bits, 'id')), '>=', 54, 'the same look sees it in the ids');
	query('public_ids', 'CREATE ROLE app; GRANT SELECT ON customer TO app');
	foreach my $call ('mask(id)', 'unmask(id)')
	{
		my ($code, $out, $err) = $node->psql('public_ids', "SET ROLE app; SELECT $call FROM customer");
		like($err, qr/permission denied for function/, "$call: only for roles that it is granted to");
	}
	query('public_ids', 'GRANT EXECUTE ON FUNCTION mask, unmask TO app');
	my ($code, $out, $err) = $node->psql('public_ids', "SET ROLE app; SELECT mask(id) IS NULL FROM customer LIMIT 1; SELECT key FROM mask_key");
	like($err, qr/permission denied for table mask_key/, 'a role that may mask does not see the key');
}

# Under SERIALIZABLE what a transaction reads is remembered by pages of the index.
new_database('serializable');
query('serializable', q{
CREATE TABLE plain (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), tenant int);
CREATE TABLE by_tenant (id uuid DEFAULT uuidv7_fast(), tenant int, PRIMARY KEY (tenant, id));
CREATE TABLE child (plain uuid REFERENCES plain);
CREATE TABLE late_child (plain uuid REFERENCES plain DEFERRABLE INITIALLY DEFERRED);
INSERT INTO plain (tenant) SELECT n % 3 FROM generate_series(1, 20000) AS n;
INSERT INTO by_tenant (tenant) SELECT n % 3 FROM generate_series(1, 20000) AS n;
ANALYZE});

# Three transactions that insert one after the other and work with that row at once.
# The number of those that fail.
sub failures
{
	my ($table, $then) = @_;
	my $failures = 0;
	my @sessions = map { $node->background_psql('serializable', on_error_stop => 0) } 0 .. 2;
	my $run = sub {
		my ($n, $sql) = @_;
		$sessions[$n]->{stderr} = '';
		$sessions[$n]->query($sql);
		return $sessions[$n]->{stderr} =~ /could not serialize access/;
	};
	foreach my $n (0 .. 2)
	{
		$run->($n, 'BEGIN ISOLATION LEVEL SERIALIZABLE; SET LOCAL enable_seqscan = off');
		$run->($n, "INSERT INTO $table (tenant) VALUES ($n) RETURNING id \\gset");
		$run->($n, $then =~ s/tenant = \?/tenant = $n/r) if $then;
	}
	foreach my $n (2, 1, 0)
	{
		$failures++ if $run->($n, 'COMMIT');
	}
	$_->quit foreach @sessions;
	return $failures;
}

is(failures('plain', ''), 0, 'SERIALIZABLE, insertions alone: none fails');
is(failures('plain', q{SELECT FROM plain WHERE id = :'id'}), 1, 'each reads its row again: one fails');
is(failures('plain', q{INSERT INTO child VALUES (:'id')}), 1, 'a foreign key reads it: one fails');
is(failures('plain', q{INSERT INTO late_child VALUES (:'id')}), 0, 'a foreign key that is checked at the end: none fails');
is(failures('by_tenant', q{SELECT FROM by_tenant WHERE tenant = ? AND id = :'id'}), 0, 'a key that begins with the tenant: none fails');

$node->stop;
done_testing();
