# What a script runs beside its throwaway server finds that one, and none where it is gone:
# not one of the user's.  A signal ends everything at once, whenever it comes.

use strict;
use warnings;

use Cwd qw(getcwd);
use POSIX qw(WNOHANG);
use PostgreSQL::Test::Utils;
use Test::More;

my ($version) = `pg_config --bindir` =~ m{^/usr/lib/postgresql/(\d+)/bin$};
plan skip_all => 'the scripts work with the servers of Debian and Ubuntu' unless $version;

# A signal that was ignored when a shell began, as by nohup, cannot be trapped there.
$SIG{$_} = 'DEFAULT' foreach qw(HUP INT QUIT PIPE TERM);

my $directory = PostgreSQL::Test::Utils::tempdir_short();
my $temporary = PostgreSQL::Test::Utils::tempdir_short();
my $script    = "$directory/script";
%ENV = (%ENV, PG_VERSION => $version, TMPDIR => $temporary, PGHOST => '/tmp', PGPORT => '5432');
append_to_file($script, '. ' . getcwd() . q{/script/common.sh
find_version
make_place
mkdir "$work/tmp"
with_server bash -euc '
	touch "$HOME/at_work"
	psql -XAtqc "SELECT 1 FROM pg_sleep(${HOLD:-0})"
	"$(dirname "$PG_CONFIG")/pg_ctl" -s -D "$HOME/server" -m immediate stop
	psql -XAtqc "SELECT 2"'
});

sub check_nothing_stays
{
	my ($name) = @_;
	my $running = `cat /proc/[0-9]*/cmdline 2>/dev/null | grep -ao '$temporary/[f]ast_uuid.*'`;
	is($running, '', "$name: no process stays");
	is(join(' ', glob("$temporary/*")), '', "$name: no directory stays");
	return;
}

my ($out, $err) = run_command([ 'bash', $script ]);
is($out, '1', 'the throwaway server answers, and nothing where it is gone');
like($err, qr{"$temporary/fast_uuid\.\w+/tmp/\.s\.\S+" failed: No such file}, '... no other');
check_nothing_stays('at the end');

# While initdb, or the server, is at work: as Ctrl-C, to the process group; else to the script.
$ENV{HOLD} = 600;
foreach my $case ('INT PG_VERSION', 'INT at_work', 'TERM at_work', 'HUP at_work')
{
	my ($signal, $file) = split / /, $case;
	my $said = "$directory/said";
	my $pid  = fork() // die "fork: $!";
	if ($pid == 0)
	{
		setpgrp;
		exec "exec bash $script >$said 2>&1" or die "bash: $!";
	}
	1 until `find $temporary -name '$file' 2>/dev/null` || waitpid($pid, WNOHANG);
	kill $signal, ($signal eq 'INT' ? -$pid : $pid);
	waitpid($pid, 0);
	my $ended = "\n$script: ended by SIG$signal; its servers and their directory are gone\n";
	is(slurp_file($said), $ended, "$case: the script says so, and nothing else is said");
	check_nothing_stays($case);
}
done_testing();
