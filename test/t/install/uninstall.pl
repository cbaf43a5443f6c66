# The way out, as doc/install.md has it: what uses the extension is found and given another
# default, ids stay, "make uninstall" leaves no file.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $page = slurp_file('doc/install.md');
my ($drop)   = $page =~ /^```sql\n([^`]*DROP EXTENSION.*?)^```$/ms;
my ($search) = $page =~ /^```sql\n([^`]*prosrc.*?)^```$/ms;
my ($checklist) = slurp_file('doc/security.md') =~ /^(SELECT name, setting, sourcefile.*?)^```$/ms;
$search .= $checklist;

# A database that uses it in many ways
my $node = PostgreSQL::Test::Cluster->new('in_use');
$node->init;
$node->append_conf('postgresql.conf', q{
fast_uuid.buffer_size = '1kB'
session_preload_libraries = 'fast_uuid'});
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE ROLE app;
ALTER ROLE app SET fast_uuid.source = 'urandom';
ALTER ROLE app SET session_preload_libraries = 'fast_uuid';
GRANT SET ON PARAMETER fast_uuid.allowed_sources TO app;
ALTER DATABASE postgres SET fast_uuid.vdso = 'off';
CREATE TABLE "Item" ("Id" uuid PRIMARY KEY DEFAULT uuidv7_fast());
CREATE TABLE event (id uuid DEFAULT coalesce(NULL, uuidv7_fast('urandom'))) PARTITION BY RANGE (id);
CREATE TABLE event_past PARTITION OF event DEFAULT;
CREATE TABLE event_present PARTITION OF event
  FOR VALUES FROM (uuidv7_fast_min('2026-01-01 00:00+00')) TO (MAXVALUE);
CREATE TABLE seen (id uuid, at timestamptz GENERATED ALWAYS AS (uuidv7_fast_timestamp(id)) STORED);
CREATE TABLE other (id uuid, n bigint DEFAULT uuidv7_fast_ns(uuidv7_fast()));
CREATE FUNCTION in_text() RETURNS uuid LANGUAGE sql AS 'SELECT uuidv7_fast()';
CREATE FUNCTION with_setting() RETURNS int LANGUAGE sql
  SET fast_uuid.source = 'getrandom' AS 'SELECT 1';
INSERT INTO "Item" DEFAULT VALUES;
INSERT INTO event DEFAULT VALUES});
my $contents = q{
SELECT "Id" FROM "Item" UNION ALL SELECT id FROM event ORDER BY 1;
SELECT count(*) FROM event_present};
my $before = $node->safe_psql('postgres', $contents);
$node->safe_psql('postgres', 'CREATE FUNCTION uuidv7() RETURNS uuid RETURN gen_random_uuid()')
  if $node->pg_version < 18;

unlike($node->safe_psql('postgres', $search), qr/^(uuidv7_|fast_uuid)\w*\(/m,
	'the search does not list the extension itself');
my ($code, $out, $err) = $node->psql('postgres', $drop, on_error_stop => 0);
is(join(', ', sort $err =~ /^(?:.*DETAIL:  )?(.*) depends on function /mg),
	'column at of table seen, default value for column n of table other',
	'what is left after the defaults is refused and named');
$node->safe_psql('postgres', q{
DROP TABLE seen;
ALTER TABLE other ALTER n DROP DEFAULT});
$node->safe_psql('postgres', $drop);
is($node->safe_psql('postgres', $contents), $before, 'dropped: ids and partitions stay');
is($node->safe_psql('postgres', q{
SELECT count(*) FROM pg_attrdef WHERE pg_get_expr(adbin, adrelid) = 'uuidv7()'}),
	'4', 'the other default, also of partitions and the partitioned table');

my $found = $node->safe_psql('postgres', $search);
like($found, $_, "the search has found $_") foreach
  qr/^in_text\(\)$/m, qr/^with_setting\(\)\|/m,
  qr/^\|app\|fast_uuid\.source=urandom\|/m,
  qr/^\|app\|session_preload_libraries=fast_uuid\|/m,
  qr/^postgres\|-\|fast_uuid\.vdso=off\|/m,
  qr/^fast_uuid\.allowed_sources\|.*app=s/m,
  qr{^fast_uuid\.buffer_size\|1kB\|.*postgresql\.conf\|}m,
  qr{^session_preload_libraries\|fast_uuid\|.*postgresql\.conf\|}m;
$node->stop;

# Its files, of a copy, because other tests copy the checkout: with what was built there, if
# that was for this server
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);
my $installed = PostgreSQL::Test::Utils::tempdir();
my $build     = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-Rp', grep({ -e } qw(.built_for fast_uuid.so)),
	'Makefile', 'fast_uuid.control', 'src', 'sql', 'feed', $build);
my %installs = (
	'.'    => [ map { "fast_uuid$_" } '.so', '.control', '_postgresql_18_names.sql' ],
	'feed' => [ map { "fast_feed$_" } '.so', '.control' ]);
foreach my $folder (sort keys %installs)
{
	my @make = ('make', '-s', '-C', "$build/$folder", "DESTDIR=$installed");
	system_or_bail(@make, 'install');
	like(`find $installed -type f`, qr{/\Q$_\E$}m, "make install: $_ is there") foreach @{ $installs{$folder} };
	system_or_bail(@make, 'uninstall');
	is(`find $installed -type f`, '', "make uninstall in $folder: no file is left");
}
done_testing();
