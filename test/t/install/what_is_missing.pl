# What a person reads whose machine lacks something that the build or the tests need.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Utils;
use Test::More;

my $pg_config_of_server = $ENV{PG_CONFIG} // 'pg_config';
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL PG_CONFIG);
# A server of this machine would be asked whether the extension is there.
$ENV{PGHOST} = '/nonexistent';

command_fails_like([ 'make', 'PG_CONFIG=false' ],
	qr/Install them \(Debian, Ubuntu: apt install postgresql-server-dev-all;/,
	'without pg_config: a sentence that says what to install');
command_fails_like([ 'make', 'PG_CONFIG=false', 'install' ],
	qr/Install them/, 'make install without pg_config: the same');

# What was built for, where there are several.
my ($of_server) = (run_command([ $pg_config_of_server, '--version' ]))[0] =~ /PostgreSQL (\S+)/;
command_like([ 'make', 'which-server', 'OBJS=', 'shlib=', "PG_CONFIG=$pg_config_of_server" ],
	qr{^fast_uuid for PostgreSQL \Q$of_server\E \(/.*pg_config\)$}m, 'make ends with the server that it built for');

# A pg_config without the server's headers: with the makefiles of PGXS, as
# Debian's client brings them, and without.
my ($pgxs) = run_command([ $pg_config_of_server, '--pgxs' ]);
foreach my $makefile ($pgxs, '/nonexistent/pgxs.mk')
{
	my $pg_config = PostgreSQL::Test::Utils::tempdir() . '/pg_config';
	append_to_file($pg_config,
		"#!/bin/sh\ncase \$1 in --version) echo 'PostgreSQL 17.4 (Debian)';; --pgxs) echo $makefile;;"
		  . " --includedir-server) echo /nonexistent;; esac\n");
	chmod(0755, $pg_config) or die "could not chmod: $!";
	command_fails_like([ 'make', '-B', "PG_CONFIG=$pg_config", 'includedir_server=/nonexistent' ],
		qr/apt install postgresql-server-dev-17;/, "the sentence names the version where it is known: PGXS in $makefile");
	next unless $makefile eq $pgxs;
	foreach my $without ('TEST_MODULES=', 'TAP_TESTS=')
	{
		command_like([ 'make', '-n', 'installcheck', $without, "PG_CONFIG=$pg_config" ],
			qr/pg_regress/, "to test what is installed, no headers are asked for with $without");
	}
	command_fails_like([ 'make', $_, 'includedir_server=/nonexistent', "PG_CONFIG=$pg_config" ],
		qr/apt install postgresql-server-dev-17;/, "make $_: the same")
	  foreach 'installcheck', 'unit', 'test-modules', 'benchmark';
}
# A directory that nobody may write to.
SKIP:
{
	skip 'root may write everywhere', 1 if $> == 0;
	my $checkout  = getcwd();
	my $directory = PostgreSQL::Test::Utils::tempdir();
	chmod(0555, $directory) or die "chmod: $!";
	chdir $directory or die "chdir: $!";
	command_fails_like([ 'make', '-f', "$checkout/Makefile", "PG_CONFIG=$pg_config_of_server" ],
		qr{\Afast_uuid: \Q$directory\E cannot be written to\. Build in another directory: make -f \Q$checkout\E/Makefile\nmake: .*\n\z},
		'where nothing can be written: one sentence');
	chdir $checkout or die "chdir: $!";
	chmod(0755, $directory) or die "chmod: $!";
}
ok(!grep({ slurp_file($_) =~ /nonexistent/ } glob('.built*')), 'what could not be built for is not remembered');

# What the tests need of Perl.
my $perl5lib = $ENV{PERL5LIB};
foreach my $case ([ 'IPC::Run', 'libipc-run-perl', 'perl-IPC-Run' ], [ 'Test::More', 'perl', 'perl-Test-Simple' ])
{
	my ($module, $debian, $fedora) = @$case;
	my ($folder, $file) = split /::/, $module;
	my $hidden = PostgreSQL::Test::Utils::tempdir();
	mkdir "$hidden/$folder" or die "could not create a folder: $!";
	append_to_file("$hidden/$folder/$file.pm", "die 'hidden';\n");
	local $ENV{PERL5LIB} = join ':', $hidden, $perl5lib // ();
	command_fails_like([ 'make', 'installcheck' ],
		qr/need Perl's $module, .*apt install $debian; .*dnf install $fedora\)$/m, "without $module: what to install");
}
command_fails_like([ 'make', $_, 'PROVE=/nonexistent/prove' ],
	qr/need prove, .*apt install perl; .*dnf install perl-Test-Harness\)$/m, "make $_ without prove: what to install")
  foreach 'installcheck', 'unit';

command_fails_like([ 'make', 'openssl-headers', 'CC=gcc -nostdinc' ],
	qr/apt install libssl-dev;.*make WITH_OPENSSL=no/, 'without OpenSSL: what to install, or how to do without');
my @headers = map { "-I" . s/\n//r } '/usr/include', '/usr/include/' . qx(gcc -print-multiarch), qx(gcc -print-file-name=include);
command_ok([ 'make', 'openssl-headers', 'CC=gcc -nostdinc', "COPT=@headers" ], 'OpenSSL where COPT says');
command_fails_like([ 'make', 'src/entropy/openssl.o', 'CC=no_compiler' ], qr/^make: no_compiler: /m, 'without a compiler: that it is missing');
command_ok([ 'make', 'openssl-headers', 'CC=gcc -nostdinc', 'WITH_OPENSSL=no' ],
	'a build without OpenSSL does not ask for it');

done_testing();
