# pg_dump of tables whose keys are defaults restores into an empty server.  The
# order goes on there by the clock; after the page's recipe also where that is behind.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->start;
$old->safe_psql('postgres', q{
CREATE SCHEMA ids;
CREATE EXTENSION fast_uuid SCHEMA ids;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast(), name text,
  made timestamptz GENERATED ALWAYS AS (ids.uuidv7_fast_timestamp(id)) STORED);
CREATE TABLE event (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast('getrandom'), n int) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event FOR VALUES FROM (MINVALUE) TO (ids.uuidv7_fast_min('2026-01-01 00:00+00'));
CREATE TABLE event_present PARTITION OF event FOR VALUES FROM (ids.uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE VIEW today AS SELECT * FROM event WHERE id >= ids.uuidv7_fast_min(date_trunc('day', now()));
INSERT INTO item (name) SELECT 'item ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO event (n) SELECT generate_series(1, 1000);
INSERT INTO event (id, n) SELECT ids.uuidv7_fast_at('2025-06-01'), n FROM generate_series(1, 500) AS n;
});

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->start;

my $contents = q{
SELECT md5(string_agg(id::text || name || made, ',' ORDER BY id)) FROM item;
SELECT tableoid::regclass, md5(string_agg(id::text || n, ',' ORDER BY id)) FROM event GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM today;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN ('item'::regclass, 'event'::regclass) ORDER BY 1;
SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1;
};
my $before = $old->safe_psql('postgres', $contents);

foreach my $format ('plain', 'custom')
{
	my $dump = $old->basedir . "/dump.$format";
	$old->command_ok([ 'pg_dump', '--format', $format, '--file', $dump, '-d', $old->connstr('postgres') ],
		"$format: dumped");
	$new->safe_psql('postgres', "CREATE DATABASE $format");
	my @restore = $format eq 'plain' ? ('psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump) : ('pg_restore', '--exit-on-error', $dump);
	$new->command_ok([ @restore, '-d', $new->connstr($format) ], "$format: restored");
	is($new->safe_psql($format, $contents), $before, "$format: the same tables, defaults and bounds");
	is( $new->safe_psql(
			$format,
			q{INSERT INTO item (name) VALUES ('new'); INSERT INTO event (n) VALUES (0);
			  SELECT name FROM item ORDER BY id DESC LIMIT 1; SELECT n, tableoid::regclass FROM event ORDER BY id DESC LIMIT 1}),
		"new\n0|event_present",
		"$format: new rows come after all others");
}

# The owner of a database, who has created the extension there.
foreach my $node ($old, $new)
{
	$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE owned OWNER owner');
}
$old->safe_psql('owned', 'SET ROLE owner; CREATE EXTENSION fast_uuid; CREATE TABLE item AS SELECT uuidv7_fast_set(1000) AS id');
my $owned = $old->basedir . '/owned';
my $items = 'SELECT md5(string_agg(id::text, \',\' ORDER BY id)) FROM item';
$old->command_ok([ 'pg_dump', '-U', 'owner', '--format', 'custom', '--file', $owned, '-d', $old->connstr('owned') ],
	'dumped by the owner of the database, who is no superuser');
$new->command_ok([ 'pg_restore', '--exit-on-error', '-U', 'owner', '-d', $new->connstr('owned'), $owned ], 'and restored');
is($new->safe_psql('owned', $items), $old->safe_psql('owned', $items), 'restored by the owner: the same table');

# Durable order: the UUIDs are ten days ahead of the clock of the new server.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 if $old->safe_psql('postgres', 'SHOW server_version_num') < 170000;

	my $durable = "SET fast_uuid.ordering = 'durable'; SELECT ids.uuidv7_fast()";
	my $latest  = $old->safe_psql('postgres', q{
SET fast_uuid.ordering = 'durable'; SET fast_uuid.max_clock_lead = '20 d'; SET search_path = public, ids;
SELECT fast_uuid_observe(uuidv7_fast_min(now() + interval '10 days')); INSERT INTO item (name) VALUES ('latest') RETURNING id}) =~ s/^\n//r;
	my ($recipe) = map { $_->{sql} =~ /^(BEGIN;.*FROM replicated.*COMMIT;)$/ms } examples('doc/replication.md') or die 'the page has no such recipe';
	$recipe = "SET search_path = public, ids;\n" . ($recipe =~ s/replicated/item/r =~ s/'1 (min|day)'/'20 d'/gr);

	my $dump = $old->basedir . '/durable';
	$new->safe_psql('postgres', 'CREATE DATABASE durable');
	$old->command_ok([ 'pg_dump', '--format=custom', '--file', $dump, '-d', $old->connstr('postgres') ], 'durable order: dumped');
	$new->command_ok([ 'pg_restore', '--exit-on-error', $dump, '-d', $new->connstr('durable') ], 'durable order: restored');
	is($new->safe_psql('durable', 'SELECT upper_bound FROM ids.fast_uuid_stats() WHERE name = \'durable\''), '', 'a dump has no upper bound');
	cmp_ok($new->safe_psql('durable', $durable), 'lt', $latest, 'UUIDs begin by the clock');
	$new->safe_psql('durable', $recipe);
	cmp_ok($new->safe_psql('durable', $durable), 'gt', $latest, 'after the recipe they are beyond those of the old server');
	$new->restart;
	cmp_ok($new->safe_psql('durable', $durable), 'gt', $latest, '... and in the next incarnation');
}

$old->stop;
$new->stop;
done_testing();
