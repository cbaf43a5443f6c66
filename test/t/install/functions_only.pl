# The extension consists of functions, each for everybody, and its script of statements in which no
# object of a hostile schema can have a part.  So what schema tools, GRANT ... ON ALL and dumps do
# does not meet it.  Nor does the library have a part in shared memory, locks, WAL, or the ends of
# transactions: a session that has generated looks like one that has not.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('functions');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE ROLE app; CREATE DATABASE app OWNER owner');

# Default privileges change nothing, as the script revokes and grants nothing.
$node->safe_psql('app', 'ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO app;'
	  . ' ALTER DEFAULT PRIVILEGES GRANT ALL ON TABLES TO app');
my @as_owner = (extra_params => [ '-U', 'owner' ]);
$node->safe_psql('app', q{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION own() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast())}, @as_owner);
is($node->safe_psql('app', q{
SELECT DISTINCT classid::regclass FROM pg_depend AS d JOIN pg_extension AS e ON refobjid = e.oid
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' AND extname = 'fast_uuid'}),
	'pg_proc', 'its members are functions');
is($node->safe_psql('app', q{
SELECT count(*) FROM pg_proc WHERE probin = 'fast_uuid' AND proacl IS NOT NULL}), '0', '... each for PUBLIC');
is($node->safe_psql('app', q{
SELECT string_agg(relname, ' ') FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind <> 'i'}),
	'item', '... and there is no relation that a tool could find');
my ($code, $out, $err) = $node->psql('app', 'REVOKE EXECUTE ON FUNCTION own() FROM PUBLIC;'
	  . ' GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA public TO app', @as_owner);
unlike($err, qr/ERROR/, 'GRANT ... ON ALL FUNCTIONS by the owner of the database');
is($node->safe_psql('app', q{SELECT has_function_privilege('app', 'own()', 'EXECUTE')}), 't', '... grants');

# In the script nothing is looked up but types.
my $script = slurp_file('sql/fast_uuid--1.0.sql') =~ s/^(?:--|\\echo).*\n//mgr;
$script =~ s/'[^']*'/''/g;
is(join("\n", grep { !/^\s*(?:CREATE FUNCTION|COMMENT ON FUNCTION)\b/ } $script =~ /([^;]*\S[^;]*);/g),
	'', 'the script creates functions and comments on them');

# What the library takes of the server
my $library = $node->config_data('--pkglibdir') . '/fast_uuid.so';
($library) = grep { -e } map { "$_/fast_uuid.so" }
  split(/:/, $node->safe_psql('postgres', 'SHOW dynamic_library_path') =~ s/\$libdir/$node->config_data('--pkglibdir')/er);
my $symbols = `nm -D --undefined-only '$library'`;
like($symbols, qr/\bDefineCustomEnumVariable\b/, 'the symbols of the library');
unlike($symbols, qr/Xact|ResourceOwner|Shmem|DSM|LWLock|Lock(?:Acquire|Relation)|XLog|Buffer(?!_)|SPI_|(?:relation|table)_open|Callback/,
	'... are not those of shared memory, locks, WAL, tables or callbacks');

# What a session has after it has generated
my $session = RawSession->start($node);
$session->query_safe($_) foreach 'CREATE EXTENSION fast_uuid', 'SELECT uuidv7_fast()', 'BEGIN';
my $state = q{
SELECT pg_current_xact_id_if_assigned(), (SELECT count(*) FROM pg_locks WHERE pid = pg_backend_pid()),
       (SELECT count(*) FROM pg_shmem_allocations WHERE name ILIKE '%fast%uuid%')};
my $before = $session->query_safe($state);
$session->query_safe($_) foreach 'SELECT count(uuidv7_fast()) FROM generate_series(1, 10000)',
  'SELECT count(*) FROM fast_uuid_sources()', 'SELECT cardinality(uuidv7_fast_array(10000))';
is($session->query_safe($state), $before, 'no transaction number, no lock, no shared memory');
$session->quit;
$node->stop;
done_testing();
