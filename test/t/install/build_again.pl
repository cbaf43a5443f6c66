# What was built for another server, or with other flags, is built again; what was
# built with the same ones is not.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL PG_CONFIG);

my $build = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
mkdir "$build/test" or die "could not create a folder: $!";
system_or_bail('cp', '-R', 'test/modules', "$build/test/modules");
system_or_bail('make', '-s', '-C', $build, 'clean', "PG_CONFIG=$pg_config");

# Another server: the same one, with its headers in another place.
my ($headers) = run_command([ $pg_config, '--pkgincludedir' ]);
my $other = "$build/other";
symlink($headers, "$build/headers") or die "could not link: $!";
append_to_file($other, "#!/bin/sh\n[ \"\$1\" = --pkgincludedir ] && echo $build/headers || exec $pg_config \"\$@\"\n");
chmod(0755, $other) or die "could not chmod: $!";

# What make says of two objects of the library, and one that only tests load.
my @objects = ('src/entropy/openssl.o', 'src/feed/in_flight.o', 'test/modules/stat_pack.so');

sub make
{
	my ($out, $err) = run_command([ 'make', '-s', '-C', $build, @objects, 'COPT=-O0', @_ ]);
	return "$out$err";
}

sub objects_have
{
	my ($symbol) = @_;
	my ($symbols) = run_command([ 'nm', map { "$build/$_" } @objects ]);
	return $symbols =~ /\b$symbol\b/ ? 1 : 0;
}

sub built_at
{
	return map { (Time::HiRes::stat("$build/$_"))[9] } @objects;
}

my $again = qr/^fast_uuid: built for another server or with other flags before: building again$/;
is(make("PG_CONFIG=$pg_config"), '', 'nothing is said of a first build');
foreach my $case (
	[ 'without OpenSSL', 0, 0, 'WITH_OPENSSL=no' ],
	[ 'with OpenSSL again', 1, 0 ],
	[ 'with test points', 1, 1, 'TEST_POINTS=yes' ],
	[ 'without them again', 1, 0 ])
{
	my ($name, $openssl, $test_points, @variables) = @$case;
	like(make("PG_CONFIG=$pg_config", @variables), $again, "built $name: it is said");
	is(objects_have('RAND_bytes'), $openssl, "built $name: OpenSSL is called or not");
	is(objects_have('fuuid_test_point'), $test_points, "built $name: test points are there or not");
}

my @before = built_at();
is(make("PG_CONFIG=$pg_config"), '', 'the same again: nothing is said');
is_deeply([ built_at() ], \@before, 'and nothing is built');
like(make("PG_CONFIG=$other"), $again, 'for another server: it is said');
my @after = built_at();
cmp_ok($after[$_], '>', $before[$_], "for another server: $objects[$_] is built again") foreach 0 .. $#objects;
system_or_bail('make', '-s', '-C', $build, 'clean', "PG_CONFIG=$pg_config");
is(join(' ', glob("$build/.built*")), '', 'make clean: what was noted is removed');

done_testing();
