# The SQL tests pass on every server to which CONTRIBUTING.md offers them: with the library
# preloaded and what is PARALLEL SAFE, such as conversions, called in a worker; and built
# without OpenSSL.  The million of UUIDs in order.sql is left out: it takes longer than all
# the rest, and passes where script/test runs the SQL tests.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL PG_CONFIG);

# pg_regress writes where it is started.
my $build = PostgreSQL::Test::Utils::tempdir();
mkdir "$build/test" or die "could not create a folder: $!";
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', 'expected', $build);
system_or_bail('cp', '-R', 'test/sql', 'test/installed.sh', "$build/test");
system_or_bail('make', '-s', '-C', $build, 'clean', "PG_CONFIG=$pg_config");
system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'WITH_OPENSSL=no', "PG_CONFIG=$pg_config");

my $node = PostgreSQL::Test::Cluster->new('server');
$node->init;
$node->start;
my $path = $node->safe_psql('postgres', 'SHOW dynamic_library_path');
local $ENV{PGHOST} = $node->host;
local $ENV{PGPORT} = $node->port;

my @tests = grep { $_ ne 'order' } map { s|.*/(.*)\.sql|$1|r } sort glob('test/sql/*.sql');
my $parallel = ($node->pg_version < 16 ? 'force_parallel_mode' : 'debug_parallel_query') . ' = regress';
foreach my $case (
	[ 'preloaded, parallel workers', "shared_preload_libraries = 'fast_uuid'", $parallel ],
	[ 'without OpenSSL', "dynamic_library_path = '$build:$path'" ])
{
	my ($name, @settings) = @$case;
	open(my $conf, '>', $node->data_dir . '/variant.conf') or die "could not write: $!";
	print $conf map { "$_\n" } @settings;
	close $conf;
	$node->append_conf('postgresql.conf', "include 'variant.conf'\n") if $name =~ /^preloaded/;
	$node->restart;

	is($node->safe_psql('postgres', "LOAD 'fast_uuid'; SHOW fast_uuid.source"),
		$name =~ /OpenSSL/ ? 'getrandom' : 'openssl', "$name: the build that is meant");
	my ($out, $err) = run_command([ 'make', '-s', '-C', $build, 'installcheck', 'TAP_TESTS=', "PG_CONFIG=$pg_config", "REGRESS=@tests" ]);
	like($out, qr/All ${\scalar @tests} tests passed/, "$name: the SQL tests pass")
	  or diag(-e "$build/regression.diffs" ? slurp_file("$build/regression.diffs") : $err);
}

$node->stop;
done_testing();
