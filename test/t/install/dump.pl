# pg_dump of tables whose keys are defaults, and of feeds with their guard, restores into
# an empty server.  The order goes on there by the clock; after the page's recipe also
# where that is behind.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my ($old, $new) = map { PostgreSQL::Test::Cluster->new($_) } 'old', 'new';
foreach my $node ($old, $new)
{
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'") if $node->pg_version < 17;
	$node->start;
}
$old->safe_psql('postgres', q{
CREATE SCHEMA ids;
CREATE EXTENSION fast_uuid SCHEMA ids;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast(), name text,
  made timestamptz GENERATED ALWAYS AS (ids.uuidv7_fast_timestamp(id)) STORED);
CREATE TABLE event (id uuid PRIMARY KEY DEFAULT ids.uuidv7_fast('getrandom'), n int) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event FOR VALUES FROM (MINVALUE) TO (ids.uuidv7_fast_min('2026-01-01 00:00+00'));
CREATE TABLE event_present PARTITION OF event FOR VALUES FROM (ids.uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE TABLE feed (id uuid PRIMARY KEY DEFAULT ids.uuidv7_feed_id(), position bigint DEFAULT ids.uuidv7_feed_position());
CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON feed FOR EACH ROW EXECUTE FUNCTION ids.uuidv7_feed_guard('id');
INSERT INTO feed SELECT FROM generate_series(1, 1000);
CREATE VIEW today AS SELECT * FROM event WHERE id >= ids.uuidv7_fast_min(date_trunc('day', now()));
INSERT INTO item (name) SELECT 'item ' || n FROM generate_series(1, 1000) AS n;
INSERT INTO event (n) SELECT generate_series(1, 1000);
INSERT INTO event (id, n) SELECT ids.uuidv7_fast_at('2025-06-01'), n FROM generate_series(1, 500) AS n;
});

my $contents = q{
SELECT md5(string_agg(id::text || name || made, ',' ORDER BY id)) FROM item;
SELECT tableoid::regclass, md5(string_agg(id::text || n, ',' ORDER BY id)) FROM event GROUP BY 1 ORDER BY 1;
SELECT count(*) FROM today;
SELECT md5(string_agg(feed::text, ',' ORDER BY id)) FROM feed;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid IN ('item'::regclass, 'event'::regclass, 'feed'::regclass) ORDER BY 1;
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
	is($new->safe_psql($format, 'INSERT INTO feed DEFAULT VALUES; SELECT id = (SELECT id FROM feed ORDER BY position DESC LIMIT 1) FROM feed ORDER BY id DESC LIMIT 1'),
		't', "$format: so do those of a feed");
	like(($new->psql($format, 'INSERT INTO feed (id) VALUES (ids.uuidv7_fast())'))[2], qr/ERROR: .* of relation "feed"/, "$format: the guard is there");
}

# Data alone, into a table that has the guard.
my @data = ('pg_restore', '--data-only', '--table', 'feed', '-d', $new->connstr('custom'), $old->basedir . '/dump.custom');
$new->safe_psql('custom', 'TRUNCATE feed');
$new->command_fails_like([ @data ], qr/ERROR: .* of relation "feed"/, 'data alone: the guard refuses it');
$new->command_ok([ @data, '--disable-triggers' ], 'with --disable-triggers not');
is($new->safe_psql('custom', 'SELECT count(*) FROM feed'), '1000', '... and the rows are there');

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

# Feed ids ten days ahead of the clock of the new server.
my $next   = 'SELECT ids.uuidv7_feed_id()';
my $latest = $old->safe_psql('postgres', q{
SET fast_uuid.max_clock_lead = '20 d'; SET search_path = public, ids;
SELECT uuidv7_feed_observe(uuidv7_fast_min(now() + interval '10 days')); INSERT INTO feed DEFAULT VALUES RETURNING id}) =~ s/^\n//r;
my ($recipe) = map { $_->{sql} =~ /^(BEGIN;.*FROM replicated.*COMMIT;)$/ms } examples('doc/replication.md') or die 'the page has no such recipe';
$recipe = "SET search_path = public, ids;\n" . ($recipe =~ s/replicated/feed/r =~ s/'1 (min|day)'/'20 d'/gr);

my $ahead = $old->basedir . '/ahead';
$new->safe_psql('postgres', 'CREATE DATABASE ahead');
$old->command_ok([ 'pg_dump', '--format=custom', '--file', $ahead, '-d', $old->connstr('postgres') ], 'ahead of the clock: dumped');
$new->command_ok([ 'pg_restore', '--exit-on-error', $ahead, '-d', $new->connstr('ahead') ], 'ahead of the clock: restored');
is($new->safe_psql('ahead', q{SELECT upper_bound FROM ids.fast_uuid_stats() WHERE name = 'feed'}), '', 'a dump has no upper bound');
cmp_ok($new->safe_psql('ahead', $next), 'lt', $latest, 'feed ids begin by the clock');
$new->safe_psql('ahead', $recipe);
cmp_ok($new->safe_psql('ahead', $next), 'gt', $latest, 'after the recipe they are beyond those of the old server');
$new->restart;
cmp_ok($new->safe_psql('ahead', $next), 'gt', $latest, '... and in the next incarnation');

$old->stop;
$new->stop;
done_testing();
