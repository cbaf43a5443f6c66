# fast_uuid.allowed_sources in the configuration file: at the start, after a
# reload in existing sessions, with parallel workers, and in any order of lines.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('allowlist');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $living = $node->background_psql('postgres', on_error_stop => 0);
is($living->query_safe("SET fast_uuid.source = 'xorshift128+'; SELECT uuidv7_fast() IS NOT NULL"),
	't', 'without an allowlist a session chooses its source');

sub reload
{
	my ($settings) = @_;
	$node->append_conf('postgresql.conf', $settings);
	$node->reload;
	return;
}

# A session takes over the new file before its next statement, some time after
# the signal; ask until it has.
sub wait_for_allowlist
{
	my ($expected) = @_;
	foreach (1 .. 100 * $PostgreSQL::Test::Utils::timeout_default)
	{
		return 1 if $living->query('SHOW fast_uuid.allowed_sources') eq $expected;
	}
	return 0;
}

# In this order the file names a source that the list before it did not allow.
reload("fast_uuid.source = 'getrandom'\nfast_uuid.allowed_sources = 'getrandom, urandom'\n");
ok(wait_for_allowlist('getrandom, urandom'), 'an existing session learns of the allowlist by a reload');
is($living->query('SELECT uuidv7_fast()'), '', 'its source is outside, and makes no value');
like($living->{stderr}, qr/entropy source "xorshift128\+" is not allowed/, 'the error says so');
like($living->{stderr}, qr/HINT:  The setting "fast_uuid.allowed_sources" allows: getrandom, urandom\./,
	'the hint names the setting');
is($living->query("SELECT uuidv7_fast('urandom') IS NOT NULL"), 't', 'an allowed source works in it');
is($living->query('RESET fast_uuid.source; SHOW fast_uuid.source; SELECT uuidv7_fast() IS NOT NULL'),
	"getrandom\nt", 'and so does the one from the file');

is($node->safe_psql('postgres', 'SELECT uuidv7_fast() IS NOT NULL; SHOW fast_uuid.source'),
	"t\ngetrandom", 'a new session starts with the source from the file');

# A session whose source is no longer allowed, and which has a seed, starts parallel
# workers all the same.
is( $node->safe_psql(
		'postgres', q{
CREATE TABLE input AS SELECT n FROM generate_series(1, 100000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0;
SET parallel_leader_participation = off;
SET fast_uuid.seed = '42'; SET fast_uuid.source = 'urandom'; SET fast_uuid.allowed_sources = 'getrandom';
SELECT count(uuidv7_fast('getrandom')) FROM input}),
	'100000', 'a parallel query of a session whose own source is no longer allowed, and which has a seed');

reload("fast_uuid.allowed_sources = 'openssl, getrandom, urandom, xorshift128+'\n");
ok(wait_for_allowlist('openssl, getrandom, urandom, xorshift128+'), 'the allowlist is taken away by a reload');
is($living->query("SELECT uuidv7_fast('xorshift128+') IS NOT NULL"), 't', 'every source works again');

$living->quit;

# A typo in the file does not open what protects others: the server does not start.  With
# what is right, in capitals or not, it does.
$node->append_conf('postgresql.conf', "fast_uuid.allowed_sources = 'openssl, typo'\n");
$node->stop;
my $log_before = -s $node->logfile;
is($node->start(fail_ok => 1), 0, 'a wrong list: the server does not start');
like(slurp_file($node->logfile, $log_before), qr/FATAL:  invalid value for parameter "fast_uuid\.allowed_sources": "openssl, typo"/, 'and says why');
$node->append_conf('postgresql.conf', "fast_uuid.allowed_sources = 'OpenSSL, GetRandom'\n");
$node->start;

# A server at work keeps the list that it has.
reload("fast_uuid.allowed_sources = 'getrandom'\n");
$node->poll_query_until('postgres', "SELECT current_setting('fast_uuid.allowed_sources') = 'getrandom'")
  or die 'the postmaster has not read its file';
is($node->safe_psql('postgres', q{
BEGIN;
DO $$ BEGIN PERFORM uuidv7_feed_id('urandom'); EXCEPTION WHEN insufficient_privilege THEN NULL; END $$;
SELECT held_back_by IS NULL FROM fast_uuid_stats() WHERE name = 'feed';
COMMIT}), 't', 'a feed id that is refused holds nothing back');
$node->append_conf('postgresql.conf', "fast_uuid.allowed_sources = 'openssl, typo'\n");
$log_before = -s $node->logfile;
$node->reload;
$node->wait_for_log(qr/invalid value for parameter "fast_uuid\.allowed_sources": "openssl, typo"/, $log_before);
is($node->safe_psql('postgres', 'SHOW fast_uuid.allowed_sources'), 'getrandom', 'a wrong list at a reload: the list is kept');
$node->append_conf('postgresql.conf', "fast_uuid.allowed_sources = 'openssl, getrandom'\n");
$node->reload;

# Nor does one that was stored, when nobody could check it, open the one below.
$node->safe_psql('template1', 'CREATE DATABASE other TEMPLATE postgres');
$node->append_conf('postgresql.conf', "shared_preload_libraries = ''\n");
$node->restart;
my %stored = (postgres => [ 'ROLE ALL', 'getrandom' ], other => [ 'DATABASE other', 'urandom' ]);
$node->safe_psql('postgres', "ALTER $_->[0] SET fast_uuid.allowed_sources = '$_->[1], typo'") foreach values %stored;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->restart;
foreach my $database (sort keys %stored)
{
	my ($object, $source) = @{ $stored{$database} };
	my ($code, $out, $err) = $node->psql($database, "SELECT uuidv7_fast('$source') IS NOT NULL; SELECT uuidv7_fast('openssl')");
	is($out, 't', "a wrong list of $object, then preloaded: allows what it names");
	like($err, qr/entropy source "openssl" is not allowed/, 'and nothing else');
}
$node->safe_psql('postgres', 'ALTER ROLE ALL RESET fast_uuid.allowed_sources');
is(($node->psql('postgres', "ALTER SYSTEM SET fast_uuid.$_->[0] = '$_->[1]'"))[0], 3, "ALTER SYSTEM: a wrong $_->[0] is refused")
  foreach [ 'allowed_sources', 'openssl, typo' ], [ 'source', 'opensl' ];

# For how long a list holds; a set that was begun before it follows it from the next row on.
foreach my $case (
	[ "BEGIN; SET LOCAL %s = 'urandom'", '42501' ],
	[ "BEGIN; SET LOCAL %s = 'urandom'; ROLLBACK", 'value t' ],
	[ "BEGIN; SET %s = 'urandom'; ROLLBACK", 'value t' ],
	[ "BEGIN; SAVEPOINT a; SET %s = 'urandom'; ROLLBACK TO a", 'value t' ],
	[ "BEGIN; SET %s = 'urandom'; COMMIT; BEGIN; SET LOCAL %s = 'getrandom'; ROLLBACK", '42501' ])
{
	my $session = RawSession->start($node, "SET fast_uuid.source = 'getrandom'", split /; /, $case->[0] =~ s/%s/fast_uuid.allowed_sources/gr);
	is($session->outcome('SELECT uuidv7_fast() IS NOT NULL'), $case->[1], "$case->[0]: what is in force");
	$session->quit;
}
my $cursor = RawSession->start($node, 'BEGIN', "DECLARE c CURSOR FOR SELECT uuidv7_fast_set(100, 'getrandom') IS NOT NULL");
is($cursor->outcome('FETCH c'), 'value t', 'a set that was begun before');
is($cursor->outcome("SET LOCAL fast_uuid.allowed_sources = 'urandom'; FETCH c"), '42501', 'its next row follows the list');
$cursor->quit;

# A source outside of the list, for those who have another list.
{
	my ($code, $out, $err) = $node->psql('postgres', q{
SET fast_uuid.allowed_sources = 'getrandom';
SELECT uuidv7_fast('getrandom') IS NOT NULL;
CREATE ROLE elsewhere;
ALTER ROLE elsewhere SET fast_uuid.source = 'urandom';
CREATE FUNCTION with_its_own() RETURNS uuid LANGUAGE sql
  SET fast_uuid.allowed_sources = 'urandom' SET fast_uuid.source = 'urandom' AS 'SELECT uuidv7_fast()';
SELECT with_its_own() IS NOT NULL}, on_error_stop => 1);
	is("$code $out $err", "0 t\nt ", 'a source outside of the list can be set for a role and a function that have another list');
}

$node->stop;
done_testing();
