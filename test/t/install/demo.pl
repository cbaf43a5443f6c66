# script/demo in a terminal of 80 columns and 24 lines, from a checkout that nobody may
# write to: it ends by itself, whatever pager there is, every line fits, the results are
# on the last screen, and nothing stays.

use strict;
use warnings;

use lib 'test/perl';
use IO::Pty;
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

my $version = server_version() or plan skip_all => 'the scripts work with the servers of Debian and Ubuntu';
my @missing = packages_missing(qw(gcc make libssl-dev), "postgresql-$version", "postgresql-server-dev-$version");
plan skip_all => "script/demo would install @missing" if @missing;

# A pager that is asked waits for a key, as all do.
my $commands = PostgreSQL::Test::Utils::tempdir();
my $pager    = 'echo --More--; read -r key </dev/tty';
instead($commands, $_, $pager) foreach qw(more less pager);
my $home = PostgreSQL::Test::Utils::tempdir();
append_to_file("$home/.psqlrc", "\\pset pager always\n\\pset expanded on\n");

my $checkout  = "$home/checkout";
my $temporary = PostgreSQL::Test::Utils::tempdir_short();
mkdir $checkout or die "mkdir: $!";
chmod(0755, $temporary) or die "chmod: $!";
system_or_bail('sh', '-c', "cp -R Makefile fast_uuid.control script sql src $checkout && chmod -R a-w $checkout");

my $terminal = IO::Pty->new;
$terminal->slave->set_winsize(24, 80);
my $pid = fork() // die "fork: $!";
if ($pid == 0)
{
	%ENV = (%ENV, PAGER => 'more', PSQL_PAGER => 'less', PATH => "$commands:$ENV{PATH}", HOME => $home, TERM => 'xterm',
		PG_VERSION => $version, TMPDIR => $temporary);
	$terminal->make_slave_controlling_terminal;
	my $slave = $terminal->slave;
	open(STDIN, '<&', $slave) && open(STDOUT, '>&', $slave) && open(STDERR, '>&', $slave) or die "terminal: $!";
	exec "$checkout/script/demo" or die "script/demo: $!";
}
$terminal->close_slave;

my $shown = '';
my $ended = eval {
	local $SIG{ALRM} = sub { die "it waits\n" };
	alarm $PostgreSQL::Test::Utils::timeout_default;
	while (sysread($terminal, my $some, 65536)) { $shown .= $some }
	waitpid($pid, 0);
	alarm 0;
	1;
};
my $status = $?;
if (!$ended)
{
	alarm 0;
	kill 'TERM', $pid;
	while (sysread($terminal, my $some, 65536)) { $shown .= $some }
	waitpid($pid, 0);
}
ok($ended, 'it ends by itself');
is($status, 0, 'and well') or diag($shown);
unlike($shown, qr/--More--|\(END\)/, 'no pager is asked');
my @lines = split /\r?\n/, $shown;
is(join("\n", grep { length > 80 } @lines), '', 'no line is longer than the terminal is wide');
is(scalar(grep { /^ [0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12} \| \d\d:\d\d:\d\d\.\d{3} \| / } @lines), 11,
	'each row is on a line of its own');
my $screen = join "\n", @lines[ -23 .. -1 ];
like($screen, qr/^ without the watermark \| early +\| +\| +1$/m, 'on the last screen: without the watermark a row is missed');
like($screen, qr/^ with the watermark +\| +\| late, early \| +0$/m, 'on the last screen: with it none is');
is(scalar(() = $screen =~ /^ \S+ +\| +\d+ \| +1000000$/mg), 4, 'on the last screen: how fast each source is');
like($shown, qr/\n==> Done[^\n]+\n\z/, 'nothing else is said at the end');
is(join(' ', glob("$temporary/*")), '', 'nothing stays');
system('chmod', '-R', 'u+w', $checkout);

done_testing();
