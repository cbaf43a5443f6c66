# What a script runs beside its throwaway server finds that one, and none where it is
# gone: not one of the user's.  A signal while the server starts ends everything at once.

use strict;
use warnings;

use lib 'test/perl';
use Cwd qw(getcwd);
use POSIX qw(WNOHANG);
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

my $version = server_version() or plan skip_all => 'the scripts work with the servers of Debian and Ubuntu';
$SIG{$_} = 'DEFAULT' foreach qw(HUP INT QUIT PIPE TERM);

my $directory = PostgreSQL::Test::Utils::tempdir_short();
my $temporary = PostgreSQL::Test::Utils::tempdir_short();
my $script    = "$directory/script";
append_to_file($script, ". '" . getcwd() . q{/script/common.sh'
find_version
work=$(mktemp -d "$temporary/fast_uuid.XXXXXX")
mkdir "$work/tmp"
with_server bash -euc '
	psql -XAtqc "SELECT 1"
	"$(dirname "$PG_CONFIG")/pg_ctl" -s -D "$(psql -XAtqc "SHOW data_directory")" -m immediate stop
	psql -XAtqc "SELECT 2"'
});
my %variables = (PG_VERSION => $version, TMPDIR => $temporary);

my ($status, $out, $err) = run_script($directory, \%variables, 'bash', $script);
is($out, "1\n", 'the throwaway server answers, and nothing where it is gone');
like($err, qr{"\Q$temporary\E/fast_uuid\.\w+/tmp/\.s\.PGSQL\.\d+" failed: No such file}, 'another is not looked for');
is(join(' ', glob("$temporary/*")), '', 'nothing stays');

# As Ctrl-C does it, to the process group; the others to the script alone.
foreach my $signal (qw(INT TERM HUP))
{
	unlink "$directory/said";
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		setpgrp;
		%ENV = (%ENV, %variables);
		exec "exec bash $script >$directory/said 2>&1" or die "bash: $!";
	}
	my $ended = 0;
	until (`find $temporary -name PG_VERSION 2>/dev/null`)
	{
		last if $ended = waitpid($pid, WNOHANG);
	}
	kill $signal, ($signal eq 'INT' ? -$pid : $pid);
	waitpid($pid, 0) unless $ended;
	is(slurp_file("$directory/said"), "\n$script: ended by SIG$signal; its servers and their directory are gone\n",
		"SIG$signal: the script ends with this line alone");
	is(join(' ', glob("$temporary/*")), '', "SIG$signal: no directory is left");
	is(join(' ', map { tr/\0/ /r } grep { /\Q$temporary\E/ } map { eval { slurp_file($_) } // '' } glob('/proc/[0-9]*/cmdline')),
		'', "SIG$signal: no process is left");
}
# A command that survives it.
append_to_file("$directory/survived", ". '" . getcwd() . q{/script/common.sh'
sh -c 'trap "" INT; kill -INT 0'
for i in {1..100}; do sleep 0.1; done
});
my $pid = fork() // die "fork: $!";
if ($pid == 0)
{
	setpgrp;
	exec "exec bash $directory/survived >$directory/said 2>&1" or die "bash: $!";
}
waitpid($pid, 0);
like(slurp_file("$directory/said"), qr/\A\n.*: ended by SIGINT; .*\n\z/, 'Ctrl-C is not lost on a command that survives it');
done_testing();
