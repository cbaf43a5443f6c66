# A build without OpenSSL: the source is listed, refused with the reason, and
# the default is another strong one.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

my $build = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
system_or_bail('make', '-s', '-C', $build, 'clean',         'PG_CONFIG=pg_config');
system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'WITH_OPENSSL=no', 'PG_CONFIG=pg_config');
my ($symbols) = run_command([ 'nm', '-D', "$build/fast_uuid.so" ]);
unlike($symbols, qr/RAND_bytes/, 'the library does not call OpenSSL');

# To go on with OpenSSL is to build again, also what JIT inlines, which make may build first.
command_fails_like([ 'make', '-C', $build, "src/entropy/openssl.$_", 'CC=gcc -nostdinc', 'PG_CONFIG=pg_config' ],
	qr/apt install libssl-dev;.*make WITH_OPENSSL=no/, "openssl.$_ without OpenSSL's headers: what to install, or how to do without")
  foreach 'o', 'bc';

my $node = PostgreSQL::Test::Cluster->new('without_openssl');
$node->init;
$node->start;
$node->safe_psql('postgres',
	"CREATE FUNCTION uuidv7_fast() RETURNS uuid AS '$build/fast_uuid', 'uuidv7_fast' LANGUAGE c;"
	  . "CREATE FUNCTION uuidv7_fast(text) RETURNS uuid AS '$build/fast_uuid', 'uuidv7_fast_from' LANGUAGE c;"
	  . 'CREATE FUNCTION fast_uuid_sources() RETURNS TABLE (name text, cryptographic bool, available bool, allowed bool, current bool,'
	  . " implementation text, reason text) AS '$build/fast_uuid' LANGUAGE c");

is($node->safe_psql('postgres', 'SELECT uuidv7_fast() IS NOT NULL; SHOW fast_uuid.source'),
	"t\ngetrandom", 'the default is getrandom');

sub check_refused
{
	my ($sql, $name) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	isnt($code, 0, "$name is refused");
	like($err, qr/ERROR:  0A000: entropy source "openssl" is not available/, "$name: what is wrong");
	like($err, qr/DETAIL:  fast_uuid was built without OpenSSL\./, "$name: why");
	return;
}

check_refused("LOAD '$build/fast_uuid'; SET fast_uuid.source = 'openssl'; SELECT uuidv7_fast()", 'the setting');
check_refused("SELECT uuidv7_fast('openssl')", 'the argument');
is($node->safe_psql('postgres', 'SELECT name, available, implementation IS NULL, reason FROM fast_uuid_sources() LIMIT 1'),
	'openssl|f|t|fast_uuid was built without OpenSSL.', 'the list of sources says so');
is($node->safe_psql('postgres', "SELECT count(DISTINCT uuidv7_fast(s)) FROM unnest(ARRAY['getrandom', 'urandom', 'xorshift128+']) AS s"),
	3, 'the other sources work');

$node->stop;
done_testing();
