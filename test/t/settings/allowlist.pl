# fast_uuid.allowed_sources where the library is preloaded: at the start, after a reload in
# existing sessions, with parallel workers, and for as long as it is set.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;
use Watchdog;

my $node = PostgreSQL::Test::Cluster->new('allowlist');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

sub configure
{
	my (@settings) = @_;
	$node->append_conf('postgresql.conf', join("\n", @settings, ''));
	return;
}

# A session takes over the new file before its next statement, some time after the signal.
sub wait_for_allowlist
{
	my ($session, $expected) = @_;
	my $show = 'SHOW fast_uuid.allowed_sources';
	wait_until("the allowlist $expected", sub { $session->query($show) eq $expected });
	return;
}

# --- An existing session

my $living = RawSession->start($node, "SET fast_uuid.source = 'xorshift128+'");
like($living->outcome('SELECT uuidv7_fast()'), qr/value/, 'without an allowlist a session chooses');

# In this order the file names a source that the list before it did not allow.
configure("fast_uuid.source = 'getrandom'", "fast_uuid.allowed_sources = 'getrandom, urandom'");
$node->reload;
wait_for_allowlist($living, 'getrandom, urandom');
$living->query('SELECT uuidv7_fast()');
is( $living->{error},
	'42501 entropy source "xorshift128+" is not allowed||'
	  . 'The setting "fast_uuid.allowed_sources" allows: getrandom, urandom.',
	'after a reload its source is outside');
is($living->query_safe('SELECT name FROM fast_uuid_sources() WHERE current AND NOT allowed'),
	'xorshift128+', '... and still its current one');
like($living->outcome("SELECT uuidv7_fast('urandom')"), qr/value/, 'an allowed one works');
is($living->query_safe('RESET fast_uuid.source; SHOW fast_uuid.source'),
	'getrandom', 'so does the one from the file');
like($living->outcome('SELECT uuidv7_fast()'), qr/value/, 'by default');
is($node->safe_psql('postgres', 'SELECT uuidv7_fast() IS NOT NULL; SHOW fast_uuid.source'),
	"t\ngetrandom", 'a new session starts with the source from the file');

# A session whose source is no longer allowed, and which has a seed, starts workers all the same.
$node->safe_psql('postgres', 'CREATE TABLE input AS SELECT n FROM generate_series(1, 100000) AS n;'
	  . ' ALTER TABLE input SET (parallel_workers = 2)');
my $leader = RawSession->start($node,
	'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
	'SET min_parallel_table_scan_size = 0', 'SET parallel_leader_participation = off',
	"SET fast_uuid.seed = '42'", "SET fast_uuid.source = 'urandom'",
	"SET fast_uuid.allowed_sources = 'getrandom'");
is($leader->outcome("SELECT count(uuidv7_fast('getrandom')) FROM input"),
	'value 100000', 'a parallel query of a session whose own source is no longer allowed');
$leader->quit;

# --- A wrong list in the file: at a reload the server keeps the list that it has, and does
# not start with it.

my $wrong = qr/invalid value for parameter "fast_uuid\.allowed_sources": "openssl, typo"/;
configure("fast_uuid.allowed_sources = 'openssl, typo'");
my $log_before = -s $node->logfile;
$node->reload;
$node->wait_for_log($wrong, $log_before);
is($node->safe_psql('postgres', 'SHOW fast_uuid.allowed_sources'),
	'getrandom, urandom', 'a wrong list at a reload: the list is kept');
is($living->query_safe('SHOW fast_uuid.allowed_sources'), 'getrandom, urandom', 'in a session too');
like($living->outcome('SELECT uuidv7_fast()'), qr/value/, 'which generates');
$living->quit;

$node->stop;
$log_before = -s $node->logfile;
is($node->start(fail_ok => 1), 0, 'a wrong list: the server does not start');
like(slurp_file($node->logfile, $log_before), qr/FATAL:  $wrong/, 'and says why');
configure("fast_uuid.allowed_sources = 'OpenSSL, GetRandom'");

# Nor with a wrong source, for which it would take the default.
foreach my $source ('opensl', 'openssl, getrandom', '')
{
	configure("fast_uuid.source = '$source'");
	$log_before = -s $node->logfile;
	is($node->start(fail_ok => 1), 0, "the wrong source \"$source\": the server does not start");
	like(slurp_file($node->logfile, $log_before),
		qr/FATAL:  invalid value for parameter "fast_uuid\.source": "$source"/, '... and says why');
}
configure("fast_uuid.source = 'GetRandom'");
$node->start;
is($node->safe_psql('postgres', 'SHOW fast_uuid.source'), 'getrandom', 'the name of a source, in any case');
$node->safe_psql('postgres', 'CREATE ROLE stored LOGIN; CREATE ROLE stored_here LOGIN');
foreach my $setting ("allowed_sources = 'openssl, typo'", "source = 'opensl'")
{
	foreach my $alter ('SYSTEM', 'DATABASE postgres', 'ROLE ALL', 'ROLE stored',
		'ROLE stored IN DATABASE postgres')
	{
		my ($code) = $node->psql('postgres', "ALTER $alter SET fast_uuid.$setting");
		is($code, 3, "ALTER $alter SET fast_uuid.$setting is refused");
	}
}
foreach my $packet ({ options => '-c fast_uuid.allowed_sources=typo' },
	{ 'fast_uuid.allowed_sources' => 'typo' })
{
	my $refused = RawSession->connect($node, %$packet);
	like($refused->{error}, qr/^22023 invalid value .*"typo"/, 'a wrong list of the client is refused');
}

# Nor does one that was stored, when nobody could check it, open the one below.
$node->safe_psql('template1', 'CREATE DATABASE other TEMPLATE postgres');
configure("shared_preload_libraries = ''");
$node->restart;
$node->safe_psql('postgres', $_)
  foreach "ALTER ROLE ALL SET fast_uuid.allowed_sources = 'getrandom, typo'",
  "ALTER DATABASE other SET fast_uuid.allowed_sources = 'urandom, typo'",
  "ALTER ROLE stored SET fast_uuid.allowed_sources = 'urandom, typo'",
  "ALTER ROLE stored_here IN DATABASE postgres SET fast_uuid.allowed_sources = 'urandom, typo'";
configure("shared_preload_libraries = 'fast_uuid'");
$node->restart;
my $superuser = $node->safe_psql('postgres', 'SELECT current_user');
foreach my $stored ([ 'getrandom', $superuser, 'postgres' ], [ 'urandom', $superuser, 'other' ],
	[ 'urandom', 'stored', 'postgres' ], [ 'urandom', 'stored_here', 'postgres' ])
{
	my ($source, $role, $database) = @$stored;
	my ($code, $out, $err) = $node->psql($database,
		"SELECT uuidv7_fast('$source') IS NOT NULL; SELECT uuidv7_fast('openssl')",
		extra_params => [ '-U', $role ]);
	is($out, 't', "a wrong list that was stored, $role in $database: allows what it names");
	like($err, qr/entropy source "openssl" is not allowed/, 'and nothing else');
}
$node->safe_psql('postgres', 'ALTER ROLE ALL RESET fast_uuid.allowed_sources');

# --- For how long a list holds; a set that was begun before it follows it from the next row on.

my $list     = 'fast_uuid.allowed_sources';
my %in_force = (
	"BEGIN; SET LOCAL $list = 'urandom'" => '42501',
	"BEGIN; SET LOCAL $list = 'urandom'; ROLLBACK" => 'value t',
	"BEGIN; SET $list = 'urandom'; ROLLBACK" => 'value t',
	"BEGIN; SAVEPOINT a; SET $list = 'urandom'; ROLLBACK TO a" => 'value t',
	"SET $list = 'urandom'; BEGIN; SET LOCAL $list = 'getrandom'; ROLLBACK" => '42501');
foreach my $statements (sort keys %in_force)
{
	my $session = RawSession->start($node, "SET fast_uuid.source = 'getrandom'");
	$session->query_safe($_) foreach split /; /, $statements;
	is($session->outcome('SELECT uuidv7_fast() IS NOT NULL'), $in_force{$statements}, $statements);
	$session->quit;
}
my $cursor = RawSession->start($node, 'BEGIN',
	"DECLARE c CURSOR FOR SELECT uuidv7_fast('getrandom') IS NOT NULL FROM generate_series(1, 9)");
is($cursor->outcome('FETCH c'), 'value t', 'a cursor that was opened before');
is($cursor->outcome("SET LOCAL $list = 'urandom'; FETCH c"), '42501', 'its next row');
$cursor->quit;

# What was buffered from a source that a list of the same length no longer names is not used.
my $swapped = RawSession->start($node, "SET $list = 'getrandom, urandom'");
$swapped->query_safe("SELECT uuidv7_fast('getrandom')");
$swapped->query_safe("SET $list = 'xorshift128+, urandom'");
is($swapped->outcome("SELECT uuidv7_fast('getrandom')"), '42501', 'another list of the same length');
$swapped->query_safe("RESET $list; SELECT uuidv7_fast('getrandom')");
configure("$list = 'xorshift128+, urandom'");
$node->reload;
wait_for_allowlist($swapped, 'xorshift128+, urandom');
is($swapped->outcome("SELECT uuidv7_fast('getrandom')"), '42501', '... by a reload');
$swapped->quit;
configure("$list = 'OpenSSL, GetRandom, urandom, xorshift128+'");
$node->reload;
my $reloaded = RawSession->start($node);
wait_for_allowlist($reloaded, 'OpenSSL, GetRandom, urandom, xorshift128+');
$reloaded->quit;

# A source outside of the list can be set for those who have another list.
my $another = RawSession->start($node, "SET $list = 'getrandom'",
	'CREATE ROLE app', "ALTER ROLE app SET fast_uuid.source = 'urandom'",
	'CREATE FUNCTION with_its_own() RETURNS uuid LANGUAGE sql'
	  . " SET $list = 'urandom' SET fast_uuid.source = 'urandom' AS 'SELECT uuidv7_fast()'");
like($another->outcome('SELECT with_its_own()'), qr/value/, 'a function with a list of its own');
is(join('', @{ $another->{notices} }), '', 'no warning');
$another->quit;

$node->stop;
done_testing();
