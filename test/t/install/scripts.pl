# What users meet in script/demo, make and their like: --help; one sentence for what is wrong,
# before anything is begun; and that nothing stays.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

# Whatever a script begins with: it is noted, and fails.
my $commands = PostgreSQL::Test::Utils::tempdir();
my $begun    = "$commands/begun";
foreach my $command (qw(apt-get apt-cache sudo debootstrap unshare mktemp mkdir make tar python3))
{
	append_to_file("$commands/$command", "#!/bin/sh\necho $command >>$begun; exit 99\n");
	chmod(0755, "$commands/$command") or die "chmod: $!";
}

# Run a script with those commands in front: the first sentence that it complains of
sub check_refused
{
	my ($sentence, @command) = @_;
	local $ENV{PATH} = "$commands:$ENV{PATH}";
	my ($out, $err) = run_command(\@command);
	like($err, qr/\A\n\S+: .*$sentence/, "refused: @command");
	ok(!-e $begun, '... before anything is begun');
	return;
}

delete $ENV{PG_VERSION};
foreach my $script (grep { -x } glob('script/*'))
{
	my ($help, $err) = run_command([ $script, '--help' ]);
	$help =~ s/^(?=.)/# /mg;
	$help =~ s/^$/#/mg;
	like(slurp_file($script), qr/\A#![^\n]*\n\Q$help\E\n/, "$script --help: its first comment");
	check_refused('"wrong_word"',          $script, 'wrong_word');
	check_refused('"--wrong"',             $script, '--wrong');
	check_refused('PostgreSQL 15 or later', 'env', 'PG_VERSION=14', $script);
}
check_refused('there is no directory /nonexistent', 'env', 'TMPDIR=/nonexistent', 'script/demo');
mkdir "$commands/with a space" or die "could not create a folder: $!";
check_refused('has a space in its name', 'env', "TMPDIR=$commands/with a space", 'script/demo');
append_to_file("$commands/df", "#!/bin/sh\necho Avail; echo 149\n");
chmod(0755, "$commands/df") or die "chmod: $!";
check_refused('has 149 MB left, and this needs 150', 'script/demo');

# With programs in front that know no options
my $lacking = PostgreSQL::Test::Utils::tempdir();
foreach my $name (qw(env realpath df tar mktemp))
{
	append_to_file("$lacking/$name", "#!/bin/sh\nexit 1\n");
	chmod(0755, "$lacking/$name") or die "chmod: $!";
}
{
	local $ENV{PATH} = "$lacking:$ENV{PATH}";
	check_refused('"wrong_word"', 'script/demo', 'wrong_word');
}

# What installs packages, where apt-get does as it is told: its last words, or what it
# would fetch, and no more lines than a small terminal has.
my $fakes = PostgreSQL::Test::Utils::tempdir();
my %fakes = (
	'sudo'       => 'case $1 in true | mkdir | rm) ;; *) exec "$@" ;; esac',
	'dpkg-query' => 'exit 1',
	'apt-cache'  => '[ "$1" = pkgnames ] && echo postgresql-17; case $2 in postgresql-[^1s]*|*-18) exit 100; esac; echo x',
	'apt-get'    => 'case "$*" in
		*" update "*) for i in 1 2 3 4 5 6 7 8 9 10; do echo "$LISTS:$i"; done ;;
		*--assume-no*) echo "0 upgraded, 130 newly installed, 0 to remove and 0 not upgraded."
			echo "Need to get 243 MB of archives."
			echo "After this operation, 1239 MB of additional disk space will be used."; exit 1 ;;
		*) echo "dlstatus:1:9.0:Retrieving"; seq 1000; echo "E: broken"; exit 100
	esac');
foreach my $name (keys %fakes)
{
	append_to_file("$fakes/$name", "#!/bin/bash\n$fakes{$name}\n");
	chmod(0755, "$fakes/$name") or die "chmod: $!";
}
my @installs = (
	{ lists => 'Err', version => 17, says => qr/no list of packages.*\nIs there a network/ },
	{ lists => 'Hit', version => 18, says => qr/has no postgresql-18\.\nIt has PostgreSQL 17; /,
		without => qr/network/ },
	{ lists => 'Hit', version => 17,
		says => qr/130 packages, 243 MB to fetch,\s1239 MB on disk.*\nE: broken\n.*be fetched; /s,
		without => qr/network|dlstatus/ });
foreach my $install (@installs)
{
	my $temporary = PostgreSQL::Test::Utils::tempdir_short();
	chmod(0755, $temporary) or die "chmod: $!";
	local @ENV{qw(PATH LISTS PG_VERSION TMPDIR)} =
	  ("$fakes:$ENV{PATH}", $install->{lists}, $install->{version}, $temporary);
	my ($out, $err) = run_command(['script/demo']);
	my $shown = "$out$err";
	like($shown, $install->{says}, "apt-get: $install->{lists}, PostgreSQL $install->{version}");
	unlike($shown, $install->{without}, '... and nothing else') if $install->{without};
	cmp_ok($shown =~ tr/\n//, '<', 24, '... in few lines');
	my @kept = glob("$temporary/*");
	is("@kept", join('', $shown =~ /all that it said: (\S+)/), '... nothing stays but what is named');
}

# With its password another user could be superuser there: no argument has it.
my $clients = q(eval "$(sed -n '/^run_examples/,/^}/p' script/clients)"
	example() { :; }
	libraries=
	run_examples </dev/null);
append_to_file("$commands/psql", qq{#!/bin/sh
	echo "\$*" >>$commands/arguments
	echo secret
	cat >>$commands/input\n});
chmod(0755, "$commands/psql") or die "chmod: $!";
{
	local $ENV{PATH} = "$commands:$ENV{PATH}";
	run_command([ 'bash', '-euc', $clients ]);
}
like(slurp_file("$commands/input"), qr/PASSWORD 'secret'/, 'script/clients: psql reads the password');
unlike(slurp_file("$commands/arguments"), qr/secret/, '... from no argument');

# What make says in a copy, and in an empty folder, where it builds out of the tree
my $copy = PostgreSQL::Test::Utils::tempdir();
my $elsewhere = PostgreSQL::Test::Utils::tempdir();
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', $copy);
delete local @ENV{qw(MAKEFLAGS MAKELEVEL)};
my $no_openssl = PostgreSQL::Test::Utils::tempdir();
mkdir "$no_openssl/openssl" or die "could not create a folder: $!";
append_to_file("$no_openssl/openssl/rand.h", "#error none\n");
my @makes = (
	{ in => $copy, command => 'make clean', says => '' },
	{ in => $copy, command => 'make PG_CONFIG=/nonexistent', says => 'knows of no PostgreSQL' },
	{ in => $copy, command => "make CPPFLAGS=-I$no_openssl", says => 'the headers of OpenSSL' },
	{ in => $elsewhere, command => "make -f $copy/Makefile fast_uuid.so", says => '' },
	{ in => $elsewhere, command => "make -f $copy/Makefile fast_uuid.so WITH_OPENSSL=no",
		says => '' });
foreach my $make (@makes)
{
	my $command = "cd $make->{in} && $make->{command} -s COPT=-O0 with_llvm=no";
	my ($out, $err) = run_command([ 'sh', '-c', $command ]);
	my $expected = $make->{says} ? qr/^fast_uuid: .*$make->{says}/m : qr/\A(?!.*\*\*\*)/s;
	like($err, $expected, $make->{command});
}
unlike(slurp_file("$elsewhere/.built_for"), qr/lcrypto/, 'built again, without OpenSSL');
unlike(slurp_file("$elsewhere/fast_uuid.so"), qr/libcrypto/, '... and not linked with it');

# The demo, where it would install nothing.  It has a terminal, but asks no pager, which
# would wait for a key.
my ($version) = `pg_config --bindir` =~ m{^/usr/lib/postgresql/(\d+)/bin$};
SKIP:
{
	skip 'the demo would install packages', 1
	  if !$version || system("dpkg -s libssl-dev postgresql-server-dev-$version >/dev/null 2>&1");

	my $temporary = PostgreSQL::Test::Utils::tempdir_short();
	chmod(0755, $temporary) or die "chmod: $!";
	my $demo = "stty rows 24 cols 80; PG_VERSION=$version TMPDIR=$temporary script/demo";
	my ($shown) = run_command([ 'script', '-qec', $demo, '/dev/null' ]);
	like($shown, qr/^ with the watermark +\| +\| late, early \| +0\r?$/m, 'the demo shows a feed');
	like($shown, qr/\n==> Done[^\n]+\z/, '... and ends by itself, and well');
	is(join(' ', glob("$temporary/*")), '', '... nothing stays');
}

done_testing();
