# "make installcheck" says in one sentence what is missing before it tests anything: no
# installation, another server than the one that is meant; and that another build is
# tested than the one that was made here.

use strict;
use warnings;

use lib 'test/perl';
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

my $real = $ENV{PG_CONFIG} // 'pg_config';
my ($version) = `$real --version` =~ /^PostgreSQL (\d+)/;
my $build     = PostgreSQL::Test::Utils::tempdir();
my $commands  = PostgreSQL::Test::Utils::tempdir_short();    # PGXS takes no blank in PG_CONFIG
mkdir "$_" or die "mkdir: $!" foreach "$build/test", "$commands/share", "$commands/library", "$commands/library/own";
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', $build);
system_or_bail('cp', 'test/installed.sh', "$build/test");
append_to_file("$build/fast_uuid.so", 'this build');
append_to_file("$commands/library/fast_uuid.so", 'this build');

# A server that is not there, and answers by a file.
instead($commands, 'pg_config', qq{case \$1 in
	--bindir) echo $commands ;;
	--sharedir) echo $commands/share ;;
	--pkglibdir) echo $commands/library ;;
	*) exec $real "\$@" ;;
esac});
instead($commands, 'psql', qq{case "\$*" in
	*server_version_num*) [ "\$RUNNING" ] && echo "\$RUNNING" ;;
	*"CREATE EXTENSION"*) [ ! "\$STATE" ] || echo "ERROR:  \$STATE" >&2 ;;
	*dynamic_library_path*) echo "\${SEARCHED:-/nowhere:$commands/library:\\\$libdir}" ;;
esac});

# With these variables, and these arguments of make: its status, whether it has come to
# the tests, and its own words.
sub installcheck
{
	my ($variables, @arguments) = @_;
	local %ENV = %ENV;
	delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL PG_CONFIG TEMP_CONFIG);
	my ($status, $out, $err) = run_script($commands, { RUNNING => "${version}0002", STATE => '', %$variables },
		'make', '-s', '-C', $build, 'installcheck', "PG_CONFIG=$commands/pg_config", @arguments);
	return ($status, $out =~ /^(?:\+\+\+|# \+\+\+) regress/m ? 'tested' : 'not tested', join '', grep { /^fast_uuid:/ } split /^/, $err);
}

my @sql     = ('TAP_TESTS=', 'REGRESS=one');
my $other   = $version + 1;
my $install = qr/make && sudo make install, with the same PG_CONFIG=\.\.\., comes first\n/;

# As servers of various versions say that there is no such extension.
my ($status, $tested, $said);
foreach my $state ('0A000', '58P01')
{
	($status, $tested, $said) = installcheck({ STATE => $state }, @sql);
	is("$status $tested", '2 not tested', "not on the running server, $state: refused");
	like($said, qr/\Afast_uuid: not installed on the running server: $install\z/, "not on the running server, $state: what to do");
}

($status, $tested, $said) = installcheck({ STATE => '25006' }, @sql);
is("$tested: $said", 'tested: ', 'anything else: pg_regress says so');

($status, $tested, $said) = installcheck({ RUNNING => "${other}0002" }, @sql);
is("$status $tested", '2 not tested', 'another server runs: refused');
like($said, qr/\Afast_uuid: the running server is PostgreSQL $other, \S+ is of $version: name the right one.*PGPORT\n\z/,
	'another server runs: which');

($status, $tested, $said) = installcheck({ RUNNING => '' }, @sql);
is("$tested: $said", 'tested: ', 'no server runs: pg_regress says so');

($status, $tested, $said) = installcheck({}, @sql);
is("$tested: $said", 'tested: ', 'installed, this build: tested');

append_to_file("$commands/library/fast_uuid.so", ' and more');
($status, $tested, $said) = installcheck({}, @sql);
is("$tested: $said", "tested: fast_uuid: testing $commands/library/fast_uuid.so, which is another build than the one here (sudo make install)\n",
	'installed, another build: said');

append_to_file("$commands/library/own/fast_uuid.so", 'this build');
($status, $tested, $said) = installcheck({ SEARCHED => '$libdir/own:$libdir' }, @sql);
is("$tested: $said", 'tested: ', 'a directory below $libdir: the library there counts');
($status, $tested, $said) = installcheck({ SEARCHED => "$commands/*:$commands/library/own" }, @sql);
is("$tested: $said", 'tested: ', 'a directory with a name like a pattern: none but that one');

# The server tests have servers of their own.
@sql = ('REGRESS=', 'TEST_MODULES=', 'PROVE_TESTS=none', 'PROVE=true');
($status, $tested, $said) = installcheck({ RUNNING => '' }, @sql);
is($status, 2, 'server tests, not installed: refused');
like($said, qr/\Afast_uuid: not installed: $install\z/, 'server tests, not installed: what to do');

($status, $tested, $said) = installcheck({ RUNNING => '', TEMP_CONFIG => "$commands/conf" }, @sql);
is($said, '', 'server tests, with settings that say where it is: not refused');

done_testing();
