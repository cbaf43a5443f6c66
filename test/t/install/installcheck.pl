# The SQL tests pass on every server to which CONTRIBUTING.md offers them: with the library
# preloaded and what is PARALLEL SAFE, such as conversions, called in a worker; and built
# without OpenSSL, where the source is listed, refused with the reason, and another strong
# one is the default.  The million of UUIDs in order.sql is left out: it takes longer than
# all the rest, and passes where script/test runs the SQL tests.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $pg_config = 'PG_CONFIG=' . ($ENV{PG_CONFIG} // 'pg_config');
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL PG_CONFIG);

# pg_regress writes where it is started.
my $build = PostgreSQL::Test::Utils::tempdir();
mkdir "$build/test" or die "could not create a folder: $!";
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', 'expected', $build);
system_or_bail('cp', '-R', 'test/sql', 'test/installed.sh', "$build/test");
system_or_bail('make', '-s', '-C', $build, 'clean', $pg_config);
system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'WITH_OPENSSL=no', $pg_config);
unlike((run_command([ 'nm', '-D', "$build/fast_uuid.so" ]))[0], qr/RAND_bytes/, 'a library without OpenSSL does not call it');

# To go on with OpenSSL is to build again, also what JIT inlines, which make may build first.
command_fails_like([ 'make', '-C', $build, "src/entropy/openssl.$_", 'CC=gcc -nostdinc', $pg_config ],
	qr/apt install libssl-dev;.*make WITH_OPENSSL=no/, "openssl.$_ without OpenSSL's headers: what to install, or how to do without")
  foreach 'o', 'bc';

my $node = PostgreSQL::Test::Cluster->new('server');
$node->init;
$node->start;
my $path = $node->safe_psql('postgres', 'SHOW dynamic_library_path');
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;
my @tests = grep { $_ ne 'order' } map { s|.*/(.*)\.sql|$1|r } sort glob('test/sql/*.sql');

sub check_on
{
	my ($name, $default, $settings) = @_;
	$node->append_conf('postgresql.conf', $settings);
	$node->restart;
	is($node->safe_psql('postgres', "LOAD 'fast_uuid'; SHOW fast_uuid.source"), $default, "$name: the default source of the build that is meant");
	my ($out, $err) = run_command([ 'make', '-s', '-C', $build, 'installcheck', 'TAP_TESTS=', $pg_config, "REGRESS=@tests" ]);
	like($out, qr/All ${\scalar @tests} tests passed/, "$name: the SQL tests pass")
	  or diag(-e "$build/regression.diffs" ? slurp_file("$build/regression.diffs") : $err);
	return;
}

my $parallel = $node->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';
check_on('preloaded, parallel workers', 'openssl', "shared_preload_libraries = 'fast_uuid'\n$parallel = regress\n");
check_on('without OpenSSL', 'getrandom', "shared_preload_libraries = ''\n$parallel = off\ndynamic_library_path = '$build:$path'\n");

$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
foreach my $sql ("SET fast_uuid.source = 'openssl'; SELECT uuidv7_fast()", "SELECT uuidv7_fast('openssl')")
{
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	like($err, qr/ERROR:  0A000: entropy source "openssl" is not available\nDETAIL:  fast_uuid was built without OpenSSL\./, "refused: $sql");
}
is($node->safe_psql('postgres', 'SELECT name, available, implementation IS NULL, reason FROM fast_uuid_sources() LIMIT 1'),
	'openssl|f|t|fast_uuid was built without OpenSSL.', 'the list of sources says so');
is($node->safe_psql('postgres', "SELECT count(DISTINCT uuidv7_fast(s)) FROM unnest(ARRAY['getrandom', 'urandom', 'xorshift128+']) AS s"),
	3, 'the other sources work');

$node->stop;
done_testing();
