# A script that is interrupted while packages are fetched ends at once.  While they are
# unpacked and configured it ends when that is done, whatever comes: dpkg hears nothing
# of it, and no package stays half-configured.

use strict;
use warnings;

use lib 'test/perl';
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;
use Watchdog;

# The version that the suite runs on is none that is offered there.
delete $ENV{PG_VERSION};
# A suite that was started in the background ignores these, and so would the scripts.
$SIG{$_} = 'DEFAULT' foreach qw(INT QUIT);

# As apt-get starts dpkg: with the default reaction to signals.
my $apt = q{begin()
{
	: >$asked.begun
	until [ -e go ] || [ ! -e $asked.begun ]; do read -r -t 0.1 <>nothing || true; done
	seq 20000
	! read -r answer || : >question
	: >$asked.done
}
cd "${0%/*}"
case $asked in
	update) [ "$AT" != update ] || begin; echo "Hit:1 http://mirror bookworm InRelease" ;;
	size) printf '%s\n' "'http://mirror/p/this_1.deb' this_1.deb 209 MD5Sum:0" "Need to get 209 MB of archives." ;;
	fetch) [ "$AT" != fetch ] || begin ;;
	install) export asked; export -f begin; exec env --default-signal=INT,HUP,QUIT,PIPE bash -c begin ;;
esac};

sub start
{
	my ($at, $start, %instead) = @_;
	my $commands = bare_debian($apt);
	unlink map { "$commands/$_" } keys %instead;
	instead($commands, $_, $instead{$_}) foreach keys %instead;
	system_or_bail('mkfifo', "$commands/nothing");
	instead($commands, 'apt-config', qq{echo "archives='$commands/archives/'"});
	mkdir "$commands/archives" or die "mkdir: $!";
	append_to_file("$commands/archives/$_", '') foreach qw(this_1.deb other_1.deb);
	my ($pid, $terminal) = $start->({ PATH => "$commands:$ENV{PATH}", AT => $at }, 'script/demo');
	my $shown = '';
	my $read = sub {
		while (defined fileno($terminal) && sysread($terminal, my $some, 65536)) { $shown .= $some }
		return $shown;
	};
	wait_until("the script is at it: $at", sub { $read->(); -e "$commands/$at.begun" });
	return ($commands, $pid, $terminal, $read);
}

sub status_of
{
	my ($pid, $read) = @_;
	wait_until('the script has ended', sub { $read->(); waitpid($pid, 1) == $pid });
	return $? & 127 ? 'signal ' . ($? & 127) : $? >> 8;
}

my ($commands, $pid, $terminal, $read) = start('fetch', \&start_in_terminal);
syswrite $terminal, "\003";
is(status_of($pid, $read), 130, 'Ctrl-C while packages are fetched: the script ends');
ok(!-e "$commands/fetch.done", 'at once');
is(asked($commands, 'install'), 0, 'and nothing is installed');
ok(-e "$commands/archives/this_1.deb", 'what was fetched stays for the next time');

foreach my $case (
	[ 'Ctrl-C', 130, sub { syswrite $_[0], "\003" }, '^C' ],
	[ 'Ctrl-\\', 131, sub { syswrite $_[0], "\034" }, '^\\' ],
	[ 'the closing of the terminal', 129, sub { close $_[0] } ],
	[ 'the end of what reads its pipe', 141, sub { close $_[0] }, undef, \&start_in_pipe ])
{
	my ($name, $expected, $interrupt, $echo, $start) = @$case;
	($commands, $pid, $terminal, $read) = start('install', $start // \&start_in_terminal);
	like($read->(), qr/\n==> Unpacking and configuring; Ctrl-C is answered when that is done\r?\n/, "$name: said before");
	$interrupt->($terminal);
	# The terminal shows the key once it has sent the signal.
	wait_until('the terminal has taken the key', sub { index($read->(), $echo) >= 0 }) if $echo;
	append_to_file("$commands/go", '');
	is(status_of($pid, $read), $expected, "$name: the script ends");
	ok(-e "$commands/install.done", "$name: when all is configured");
	ok(!-e "$commands/question", "$name: nobody is asked");
	ok(!-e "$commands/archives/this_1.deb", "$name: what was fetched is gone from apt's cache");
	ok(-e "$commands/archives/other_1.deb", "$name: what was there before is not");
}

# sudo can give what it runs a terminal of its own.  What is typed there reaches that
# alone, and what reads lists or fetches is ended by it.
my %sudo = (id => 'echo 1000', sudo => 'echo $$ >${0%/*}/number; exec setsid "$@"');
foreach my $at (qw(update fetch install))
{
	($commands, $pid, $terminal, $read) = start($at, \&start_in_terminal, %sudo);
	kill 'INT', -slurp_file("$commands/number") or die "kill: $!";
	append_to_file("$commands/go", '') if $at eq 'install';
	is(status_of($pid, $read), 130, "sudo with a terminal of its own, $at: Ctrl-C ends the script");
	is(-e "$commands/$at.done" ? 1 : 0, $at eq 'install' ? 1 : 0, "sudo with a terminal of its own, $at: when it should");
	is(asked($commands, 'install'), $at eq 'install' ? 1 : 0, "sudo with a terminal of its own, $at: nothing else begins");
}

done_testing();
