# What users meet in script/demo and its like: --help; one sentence for what is wrong, before
# anything is begun; and that nothing stays.

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
append_to_file("$commands/df", "#!/bin/sh\necho Avail; echo 149\n");
chmod(0755, "$commands/df") or die "chmod: $!";
check_refused('has 149 MB left, and this needs 150', 'script/demo');

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
