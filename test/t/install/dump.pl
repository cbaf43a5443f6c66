# pg_dump of tables whose keys are defaults restores into an empty server, by the owner of the
# database, who is no superuser.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
my $new = PostgreSQL::Test::Cluster->new('new');
foreach my $node ($old, $new)
{
	$node->init;
	$node->start;
	$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN');
	$node->safe_psql('postgres', 'CREATE DATABASE app OWNER owner');
}

$old->safe_psql('app', q{
SET ROLE owner;
CREATE SCHEMA ids;
CREATE EXTENSION fast_uuid SCHEMA ids;
CREATE SCHEMA app;
SET search_path = app, ids;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  made timestamptz GENERATED ALWAYS AS (uuidv7_fast_timestamp(id)) STORED);
CREATE TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7_fast('getrandom')) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event DEFAULT;
CREATE TABLE event_present PARTITION OF event
  FOR VALUES FROM (uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE VIEW today AS SELECT * FROM event WHERE id >= uuidv7_fast_min(date_trunc('day', now()));
INSERT INTO item SELECT FROM generate_series(1, 1000);
INSERT INTO event SELECT FROM generate_series(1, 1000);
INSERT INTO event SELECT uuidv7_fast_at('2025-06-01') FROM generate_series(1, 500)});

my $contents = q{
SET search_path = app, ids;
SELECT md5(string_agg(item::text, ',' ORDER BY id)) FROM item;
SELECT md5(string_agg(tableoid::regclass || id::text, ',' ORDER BY id)) FROM event;
SELECT count(*) FROM today;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY 1;
SELECT pg_get_expr(relpartbound, oid) FROM pg_class ORDER BY 1};
my $dump    = $old->basedir . '/dump';
my @dump    = ('pg_dump', '--format=custom', '-f', $dump, '-d', $old->connstr('app'));
my @restore = ('pg_restore', '--exit-on-error', $dump, '-d');
$old->command_ok([ @dump, '-U', 'owner' ], 'dumped by the owner');
$new->command_ok([ @restore, $new->connstr('app'), '-U', 'owner' ], 'restored by the owner');
is($new->safe_psql('app', $contents), $old->safe_psql('app', $contents),
	'the same tables, defaults and bounds');
is($new->safe_psql('app', q{
SET search_path = app, ids;
INSERT INTO item DEFAULT VALUES RETURNING id >= ALL (SELECT id FROM item);
INSERT INTO event DEFAULT VALUES RETURNING id >= ALL (SELECT id FROM event)}),
	"t\nt", 'new rows come after all others');

$_->stop foreach $old, $new;
done_testing();
