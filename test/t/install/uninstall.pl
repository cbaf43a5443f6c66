# The way out, as doc/install.md has it: what uses the extension is found and given another
# default, ids stay, "make uninstall" leaves no file.  And what a server does whose
# configuration still names the library after that.

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
ALTER DATABASE postgres SET fast_uuid.max_clock_lead = '10 s';
CREATE TABLE "Item" ("Id" uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text);
CREATE TABLE event (id uuid DEFAULT coalesce(NULL, uuidv7_fast('getrandom')), n int) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event FOR VALUES FROM (MINVALUE) TO (uuidv7_fast_min('2026-01-01 00:00+00'));
CREATE TABLE event_present PARTITION OF event FOR VALUES FROM (uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE TABLE kept (id uuid DEFAULT gen_random_uuid());
CREATE TABLE seen (id uuid, at timestamptz GENERATED ALWAYS AS (uuidv7_fast_timestamp(id)) STORED);
CREATE FUNCTION in_text() RETURNS uuid LANGUAGE sql AS 'SELECT uuidv7_fast()';
CREATE FUNCTION with_setting() RETURNS int LANGUAGE sql SET fast_uuid.source = 'getrandom' AS 'SELECT 1';
INSERT INTO "Item" (name) VALUES ('first');
INSERT INTO event (n) VALUES (1)});
my $contents = q{SELECT "Id" FROM "Item" UNION ALL SELECT id FROM event ORDER BY 1; SELECT count(*) FROM event_present};
my $before = $node->safe_psql('postgres', $contents);

unlike($node->safe_psql('postgres', $search), qr/^(uuidv7_fast|fast_uuid)/m, 'the search before that does not list the extension itself');
my ($code, $out, $err) = $node->psql('postgres', $drop, on_error_stop => 0);
like($err, qr/cannot drop extension fast_uuid.*DETAIL:  column at of table seen depends on function uuidv7_fast_timestamp\(uuid,boolean\)\n\S*HINT/s,
	'what is left after the defaults is refused and named, and nothing else');
$node->safe_psql('postgres', 'DROP TABLE seen');
($code, $out, $err) = $node->psql('postgres', $drop, on_error_stop => 1);
is("$code$err", '0', 'then the extension can be dropped');
is($node->safe_psql('postgres', $contents), $before, 'ids and partitions are what they were');
$node->safe_psql('postgres', q{INSERT INTO "Item" (name) VALUES ('next')});
is($node->safe_psql('postgres', q{SELECT count(*) FROM "Item" WHERE "Id"::text ~ '^.{14}4'}), '1', 'new ids come from the other default');
is( $node->safe_psql('postgres', q{
SELECT count(*) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) = 'gen_random_uuid()'}),
	'5', 'those of partitions and of the partitioned table too');
my $found = $node->safe_psql('postgres', $search);
like($found, qr/^in_text\(\)$/m, 'a function whose body is a text is found');
like($found, qr/^with_setting\(\)$/m, 'a function with a setting');
like($found, qr/^\|app\|\{fast_uuid\.source=urandom\}$/m, 'the setting of a role');
like($found, qr/^postgres\|-\|\{"?fast_uuid\.max_clock_lead=10 s"?\}$/m, 'the setting of a database');
like($found, qr{postgresql\.conf\|\d+\|fast_uuid\.buffer_size\|1kB$}m, 'a setting in the file');
like($found, qr{postgresql\.conf\|\d+\|session_preload_libraries\|fast_uuid$}m, 'a library to preload');
$node->stop;

# Its files.
sub files
{
	my ($folder) = @_;
	my @files;
	find(sub { push @files, $File::Find::name if -f }, $folder);
	return sort @files;
}

my $installed = PostgreSQL::Test::Utils::tempdir();
my @make = ('make', '-s', "DESTDIR=$installed");
system_or_bail(@make, 'install');
my @files = files($installed);
my ($library) = grep { m{/fast_uuid\.so$} } @files;
ok($library, 'make install: the library is there');
$library =~ s/\.so$//;

# A server that preloads that file, and has a table whose ids come from it.
$node = PostgreSQL::Test::Cluster->new('left_behind');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = '$library'\nfast_uuid.source = 'getrandom'");
$node->start;
$node->safe_psql('postgres', qq{
CREATE FUNCTION uuidv7_fast() RETURNS uuid AS '$library', 'uuidv7_fast' LANGUAGE c;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text);
INSERT INTO item (name) VALUES ('before')});
my $session = $node->background_psql('postgres', on_error_stop => 0);
$session->query_safe(q{INSERT INTO item (name) VALUES ('before')});

system_or_bail(@make, 'uninstall');
is(join("\n", files($installed)), '', 'make uninstall: no file is left of ' . @files);

my $missing = qr/could not access file "\Q$library\E": No such file or directory/;
$session->query_safe(q{INSERT INTO item (name) VALUES ('session that has used it')});
$session->quit;
($code, $out, $err) = $node->psql('postgres', q{INSERT INTO item (name) VALUES ('new session')});
like($err, qr/ERROR:  $missing/, 'a new session of the running server: an insertion by default is an error');
is($node->safe_psql('postgres', 'SELECT count(*) FROM item'), '3', 'rows can be read');
$node->stop;
is($node->start(fail_ok => 1), 0, 'the server does not start again');
like(slurp_file($node->logfile), qr/FATAL:  $missing/, 'and says why');

# What the page says to do.
command_ok([ 'pg_ctl', '-s', '-w', '-D', $node->data_dir, '-l', $node->logfile, '-o', '-c shared_preload_libraries=', 'start' ],
	'it starts without the library');
$node->_update_pid(1);
is($node->safe_psql('postgres', q{ALTER TABLE item ALTER id SET DEFAULT gen_random_uuid(); INSERT INTO item (name) VALUES ('after'); SELECT count(*) FROM item}),
	'4', 'rows can be read and, with another default, added');
is($node->safe_psql('postgres', 'SHOW fast_uuid.source'), 'getrandom', 'a setting left behind does no harm');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''");
$node->restart;

$node->append_conf('postgresql.conf', "session_preload_libraries = '$library'");
$node->restart;
($code, $out, $err) = $node->psql('postgres', 'SELECT 1');
like($err, qr/FATAL:  $missing/, 'named in session_preload_libraries: no connection');
$node->stop;
done_testing();
