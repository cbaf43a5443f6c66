# A script that is ended by a signal, or whose terminal or pipe is closed, ends the
# server that it has started, and all else, before it removes the directory.

use strict;
use warnings;

use lib 'test/perl';
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;
use Watchdog;

-r "/proc/$$/environ" or plan skip_all => 'without /proc nobody knows what a script has started';
my $version = server_version() or plan skip_all => 'the scripts work with the servers of Debian and Ubuntu';
my @missing = packages_missing(qw(postgresql-common gcc make libssl-dev perl libipc-run-perl),
	"postgresql-$version", "postgresql-server-dev-$version");
plan skip_all => "the scripts would install @missing" if @missing;

sub environment
{
	my ($pid) = @_;
	open(my $file, '<', "/proc/$pid/environ") or return '';
	local $/;
	return <$file> // '';
}

# Those whose home is the directory.
sub processes
{
	my ($directory) = @_;
	return grep { /^\d+$/ && environment($_) =~ /(?:\A|\0)HOME=\Q$directory\E(?:\/|\0)/ } map { s{/proc/}{}r } glob('/proc/*');
}

# The directory in which a script works: the home of what it started.  This test may
# have such a home too.
sub directory_of
{
	my ($script) = @_;
	foreach my $pid (map { s{/proc/}{}r } glob('/proc/[0-9]*'))
	{
		my ($parent) = eval { slurp_file("/proc/$pid/status") =~ /^PPid:\s+(\d+)/m } or next;
		next unless $parent == $script;
		my ($home) = environment($pid) =~ m{(?:\A|\0)HOME=(/tmp/fast_uuid\.\w+)\0} or next;
		return $home if $home ne $ENV{HOME};
	}
	return;
}

# The number of a server that is ready, with its data somewhere below the directory.
sub server_below
{
	my ($directory) = @_;
	foreach my $file (split /\n/, `find $directory -name postmaster.pid 2>/dev/null`)
	{
		my ($pid, $state) = (split /\n/, eval { slurp_file($file) } // '')[ 0, 7 ];
		return $pid if defined $state && $state =~ /^ready/;
	}
	return;
}

foreach my $case (
	[ 'script/load', 'the signal TERM', 143, sub { kill 'TERM', $_[0] } ],
	[ 'script/load', 'the closing of the terminal', 129, sub { close $_[1] } ],
	[ 'script/demo', 'Ctrl-C', 130, sub { syswrite $_[1], "\003" } ],
	[ 'script/demo', 'the end of what reads its pipe', 141, sub { close $_[1] }, \&start_in_pipe ])
{
	my ($script, $what, $expected, $end, $start) = @$case;
	my $name = "$script and $what";
	my ($pid, $terminal) = ($start // \&start_in_terminal)->({ PG_VERSION => $version, SECONDS_PER_SOURCE => 1000 }, $script);

	# What it prints is taken off the terminal, so that it does not wait for that.
	my $read      = sub { 1 while defined fileno($terminal) && sysread($terminal, my $some, 65536) };
	my $directory = wait_until("$script works", sub { $read->(); directory_of($pid) });
	my $server    = wait_until("$script has a server", sub { $read->(); server_below($directory) });
	ok(-d $directory && kill(0, $server), "$name: a server runs");

	$end->($pid, $terminal);
	my $ended = wait_until("$script has ended", sub { $read->(); waitpid($pid, 1) == $pid });
	my $status = $?;
	is($status & 127 ? 'signal ' . ($status & 127) : $status >> 8, $expected, "$name: the status says what has ended it");
	# One that has given up its data directory takes a moment to be gone.
	ok(eval { wait_until('the server is gone', sub { !kill 0, $server }) }, "$name: the server has ended");
	is(join(' ', processes($directory)), '', "$name: so has all else that was started");
	ok(!-e $directory, "$name: the directory is gone");
}

done_testing();
