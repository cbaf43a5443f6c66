# Built without OpenSSL, preloaded, with a parallel worker for whatever may run in one: the
# SQL tests pass.  The source "openssl" is refused with the reason, and not the default.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

# pg_regress writes where it is started.
my $build = PostgreSQL::Test::Utils::tempdir();
my @make  = ('make', '-s', '-C', $build, 'PG_CONFIG=' . ($ENV{PG_CONFIG} // 'pg_config'));
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL PG_CONFIG);
mkdir "$build/test" or die "could not create a folder: $!";
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', 'expected', $build);
system_or_bail('cp', '-R', glob('test/sql test/*.sh'), "$build/test");
system_or_bail(@make, 'clean');
system_or_bail(@make, 'fast_uuid.so', 'WITH_OPENSSL=no');
my $node = PostgreSQL::Test::Cluster->new('server');
$node->init;
$node->start;
my $path     = $node->safe_psql('postgres', 'SHOW dynamic_library_path');
my $parallel = $node->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query';
$node->append_conf('postgresql.conf', qq{
dynamic_library_path = '$build:$path'
shared_preload_libraries = 'fast_uuid'
$parallel = regress});
$node->restart;
is($node->safe_psql('postgres', 'SHOW fast_uuid.source'), 'getrandom', 'the default source');

# All but those of a million UUIDs, or of as many statements as would need a worker each.
my @tests = map { s{^test/sql/(.*)\.sql$}{$1}r } glob('test/sql/*.sql');
@tests = grep { !/^(arguments|format|ordering)$/ } @tests;
local %ENV = (%ENV, PGHOST => $node->host, PGPORT => $node->port);
command_like([ @make, 'installcheck', 'TAP_TESTS=', "REGRESS=@tests" ],
	qr/All ${\scalar @tests} tests passed/, 'the SQL tests pass');
diag(slurp_file("$build/regression.diffs")) if -e "$build/regression.diffs";

my ($code, $out, $err) = $node->psql('postgres', q{
CREATE EXTENSION fast_uuid;
\set VERBOSITY verbose
SELECT uuidv7_fast('openssl')});
like($err, qr/ERROR:  0A000: .*"openssl" is not available\nDETAIL:  .* built without OpenSSL\./,
	'refused, with the reason');
$node->stop;
done_testing();
