# pg_dump of tables whose keys are made by default restores into an empty server.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init;
$old->start;
$old->safe_psql(
	'postgres', q{
CREATE SCHEMA ids;
CREATE EXTENSION fast_uuid SCHEMA ids;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast(), name text);
CREATE TABLE token (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast('getrandom'), made timestamptz
  GENERATED ALWAYS AS (ids.uuidv7_fast_timestamp(id)) STORED);
CREATE TABLE event (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast(), n int) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event
  FOR VALUES FROM (MINVALUE) TO (ids.uuidv7_fast_min('2026-01-01 00:00+00'));
CREATE TABLE event_present PARTITION OF event
  FOR VALUES FROM (ids.uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE VIEW today AS SELECT * FROM event WHERE id >= ids.uuidv7_fast_min(date_trunc('day', now()));
INSERT INTO item (name) SELECT 'item ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO token SELECT FROM generate_series(1, 10);
INSERT INTO event (n) SELECT generate_series(1, 1000);
INSERT INTO event (id, n) SELECT ids.uuidv7_fast_at('2025-06-01'), n FROM generate_series(1, 500) AS n;
});

my $new = PostgreSQL::Test::Cluster->new('new');
$new->init;
$new->start;

my $contents = q{
SELECT md5(string_agg(id::text || name, ',' ORDER BY id)) FROM item;
SELECT md5(string_agg(id::text || made, ',' ORDER BY id)) FROM token;
SELECT md5(string_agg(tableoid::regclass::text || id || n, ',' ORDER BY id)) FROM event;
SELECT count(*) FROM event_past;
SELECT count(*) FROM today;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN ('item'::regclass, 'token'::regclass, 'event'::regclass) ORDER BY 1;
SELECT pg_get_expr(relpartbound, oid) FROM pg_class WHERE relispartition AND relkind = 'r' ORDER BY 1;
};
my $before = $old->safe_psql('postgres', $contents);

foreach my $format ('plain', 'custom')
{
	my $dump = $old->basedir . "/dump.$format";
	$old->command_ok([ 'pg_dump', '--format', $format, '--file', $dump, '-d', $old->connstr('postgres') ],
		"$format: dumped");
	$new->safe_psql('postgres', "CREATE DATABASE $format");
	if ($format eq 'plain')
	{
		$new->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-f', $dump, '-d', $new->connstr($format) ],
			"$format: restored");
	}
	else
	{
		$new->command_ok([ 'pg_restore', '--exit-on-error', '-d', $new->connstr($format), $dump ],
			"$format: restored");
	}
	is($new->safe_psql($format, $contents), $before, "$format: the same tables, defaults and bounds");
	is( $new->safe_psql(
			$format,
			q{INSERT INTO item (name) VALUES ('new'); INSERT INTO event (n) VALUES (0);
			  SELECT name FROM item ORDER BY id DESC LIMIT 1; SELECT n, tableoid::regclass FROM event ORDER BY id DESC LIMIT 1}),
		"new\n0|event_present",
		"$format: new rows come after all others");
}

$old->stop;
$new->stop;
done_testing();
