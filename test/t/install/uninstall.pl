# The way out, as doc/install.md has it: what uses the extension is found and given another
# default, ids stay, "make uninstall" leaves no file.

use strict;
use warnings;

use File::Find;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

my ($search, $drop) = map { $_->{sql} } grep { $_->{sql} =~ /DROP EXTENSION|pg_db_role_setting/ } examples('doc/install.md');

# A database that uses it in many ways.
my $node = PostgreSQL::Test::Cluster->new('in_use');
$node->init;
$node->append_conf('postgresql.conf', "fast_uuid.buffer_size = '1kB'\nsession_preload_libraries = 'fast_uuid'");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE app;
ALTER ROLE app SET fast_uuid.source = 'urandom';
GRANT SET ON PARAMETER fast_uuid.allowed_sources TO app;
ALTER DATABASE postgres SET fast_uuid.max_clock_lead = '10 s';
CREATE TABLE "Item" ("Id" uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text);
CREATE TABLE event (id uuid DEFAULT coalesce(NULL, uuidv7_fast('getrandom')), n int) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event FOR VALUES FROM (MINVALUE) TO (uuidv7_fast_min('2026-01-01 00:00+00'));
CREATE TABLE event_present PARTITION OF event FOR VALUES FROM (uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE TABLE kept (id uuid DEFAULT gen_random_uuid());
CREATE TABLE seen (id uuid, at timestamptz GENERATED ALWAYS AS (uuidv7_fast_timestamp(id)) STORED);
CREATE TABLE feed (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), position bigint DEFAULT uuidv7_feed_position());
CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON feed FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE FUNCTION in_text() RETURNS uuid LANGUAGE sql AS 'SELECT uuidv7_feed_id()';
CREATE FUNCTION with_setting() RETURNS int LANGUAGE sql SET fast_uuid.source = 'getrandom' AS 'SELECT 1';
INSERT INTO "Item" (name) VALUES ('first');
INSERT INTO event (n) VALUES (1)});
my $contents = q{SELECT "Id" FROM "Item" UNION ALL SELECT id FROM event ORDER BY 1; SELECT count(*) FROM event_present};
my $before = $node->safe_psql('postgres', $contents);

unlike($node->safe_psql('postgres', $search), qr/^(uuidv7_|fast_uuid)\w*\(/m, 'the search before that does not list the extension itself');
my ($code, $out, $err) = $node->psql('postgres', $drop, on_error_stop => 0);
is_deeply([ sort $err =~ /^(?:.*DETAIL:  )?(.*) depends on function /mg ],
	[ 'column at of table seen', 'default value for column position of table feed', 'trigger zz_guard on table feed' ],
	'what is left after the defaults is refused and named, and nothing else');
$node->safe_psql('postgres', 'DROP TABLE seen; DROP TRIGGER zz_guard ON feed; ALTER TABLE feed ALTER position DROP DEFAULT');
($code, $out, $err) = $node->psql('postgres', $drop, on_error_stop => 1);
is("$code$err", '0', 'then the extension can be dropped');
is($node->safe_psql('postgres', $contents), $before, 'ids and partitions are what they were');
$node->safe_psql('postgres', q{INSERT INTO "Item" (name) VALUES ('next')});
is($node->safe_psql('postgres', q{SELECT count(*) FROM "Item" WHERE "Id"::text ~ '^.{14}4'}), '1', 'new ids come from the other default');
is( $node->safe_psql('postgres', q{
SELECT count(*) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) = 'gen_random_uuid()'}),
	'6', 'those of partitions, of the partitioned table and of a feed too');
my $found = $node->safe_psql('postgres', $search);
like($found, qr/^in_text\(\)$/m, 'a function whose body is a text is found');
like($found, qr/^with_setting\(\)$/m, 'a function with a setting');
like($found, qr/^\|app\|\{fast_uuid\.source=urandom\}$/m, 'the setting of a role');
like($found, qr/^postgres\|-\|\{"?fast_uuid\.max_clock_lead=10 s"?\}$/m, 'the setting of a database');
like($found, qr/^fast_uuid\.allowed_sources\|.*app=s/m, 'a grant on a setting');
like($found, qr{postgresql\.conf\|\d+\|fast_uuid\.buffer_size\|1kB$}m, 'a setting in the file');
like($found, qr{postgresql\.conf\|\d+\|session_preload_libraries\|fast_uuid$}m, 'a library to preload');

# CASCADE instead, in another database, takes along what doc/operations.md lists.
$node->safe_psql('postgres', 'CREATE DATABASE cascaded');
$node->safe_psql('cascaded', q{
CREATE EXTENSION fast_uuid;
CREATE DOMAIN key AS uuid DEFAULT uuidv7_fast();
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), other key, version uuid, ns bigint GENERATED ALWAYS AS (uuidv7_fast_ns(id)) STORED);
CREATE TRIGGER zz_guard BEFORE INSERT ON item FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE TRIGGER zz_stamp BEFORE INSERT OR UPDATE ON item FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_stamp('version');
CREATE POLICY recent ON item USING (uuidv7_fast_timestamp(id) > '2026-01-01');
CREATE RULE again AS ON DELETE TO item DO ALSO SELECT uuidv7_fast();
CREATE STATISTICS together ON uuidv7_fast_ns(id), version FROM item;
CREATE TABLE by_time (id uuid) PARTITION BY RANGE (uuidv7_fast_timestamp(id));
CREATE TABLE by_id (id uuid) PARTITION BY RANGE (id);
CREATE TABLE by_id_past PARTITION OF by_id FOR VALUES FROM (MINVALUE) TO (uuidv7_fast_min('2026-01-01 00:00+00'));
DROP EXTENSION fast_uuid CASCADE});
is($node->safe_psql('cascaded', q{
SELECT oid::regclass FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p') ORDER BY relname;
SELECT attname FROM pg_attribute WHERE attrelid = 'item'::regclass AND attnum > 0 AND NOT attisdropped ORDER BY attnum;
SELECT tgname FROM pg_trigger UNION ALL SELECT polname FROM pg_policy UNION ALL SELECT stxname FROM pg_statistic_ext
 UNION ALL SELECT rulename FROM pg_rewrite WHERE ev_class = 'item'::regclass}),
	"by_id\nby_id_past\nitem\nid\nversion", 'CASCADE drops tables, columns and triggers that depend on a function');
$node->stop;

# Its files.
sub files
{
	my ($folder) = @_;
	my @files;
	find(sub { push @files, $File::Find::name if -f }, $folder);
	return sort @files;
}

# Of a copy: without the suite's flags make builds again, while other tests copy.
my $installed = PostgreSQL::Test::Utils::tempdir();
my $build     = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-Rp', 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
my @make = ('make', '-s', '-C', $build, 'COPT=-O0', "DESTDIR=$installed");
system_or_bail(@make, 'install');
my @files = files($installed);
ok(scalar(grep { m{/fast_uuid\.so$} } @files), 'make install: the library is there');
system_or_bail(@make, 'uninstall');
is(join("\n", files($installed)), '', 'make uninstall: no file is left of ' . @files);
done_testing();
