# The scripts of script/, run with other commands in front of those that they call.

package Scripts;

use strict;
use warnings;

use Exporter qw(import);
use IO::Pty;
use IPC::Run;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(instead run_script start_in_pipe start_in_terminal server_version packages_missing bare_debian asked);

# Put a shell script into a directory, under the name of a command.
sub instead
{
	my ($directory, $command, $text) = @_;
	my $file = "$directory/$command";
	append_to_file($file, "#!/bin/bash\n$text\n");
	chmod(0755, $file) or die "$file: $!";
	return;
}

# Run a script, with these commands in front and these variables; its status, and what
# it printed and complained of.
sub run_script
{
	my ($commands, $variables, @command) = @_;
	my ($out, $err) = ('', '');
	local %ENV = (%ENV, PATH => "$commands:$ENV{PATH}", %$variables);
	delete $ENV{PG_VERSION} unless $variables->{PG_VERSION};
	IPC::Run::run(\@command, '<', '/dev/null', '>', \$out, '2>', \$err, IPC::Run::timeout(300));
	return ($? >> 8, $out, $err);
}

# Start a script with these variables, which writes to a pipe; its number, and what
# reads the pipe.
sub start_in_pipe
{
	my ($variables, $script) = @_;
	pipe(my $reader, my $writer) or die "pipe: $!";
	my $pid = fork() // die "fork: $!";
	if ($pid == 0)
	{
		%ENV = (%ENV, %$variables);
		$SIG{PIPE} = 'DEFAULT';
		open(STDIN, '<', '/dev/null') && open(STDOUT, '>&', $writer) && open(STDERR, '>', '/dev/null') or die "pipe: $!";
		exec $script or die "$script: $!";
	}
	close $writer;
	$reader->blocking(0);
	return ($pid, $reader);
}

# The same in a terminal, which is its controlling one.
sub start_in_terminal
{
	my ($variables, $script) = @_;
	my $terminal = IO::Pty->new;
	my $pid      = fork() // die "fork: $!";
	if ($pid == 0)
	{
		%ENV = (%ENV, %$variables);
		$terminal->make_slave_controlling_terminal;
		my $slave = $terminal->slave;
		open(STDIN, '<&', $slave) && open(STDOUT, '>&', $slave) && open(STDERR, '>&', $slave) or die "terminal: $!";
		exec $script or die "$script: $!";
	}
	$terminal->close_slave;
	$terminal->blocking(0);
	return ($pid, $terminal);
}

# The version of the server under test, where it is one of Debian's, which the scripts
# work with.
sub server_version
{
	my ($version) = `pg_config --bindir` =~ m{^/usr/lib/postgresql/(\d+)/bin$};
	return $version;
}

# Which of these packages are not installed.
sub packages_missing
{
	return grep { `dpkg-query -W -f '\${db:Status-Status}' $_ 2>/dev/null` ne 'installed' } @_;
}

# A Debian without a package, whose apt-get does what $apt says; each call is noted.
sub bare_debian
{
	my ($apt) = @_;
	my $commands = PostgreSQL::Test::Utils::tempdir();
	instead($commands, 'apt-get', qq{echo "\$*" >>$commands/asked
case " \$* " in *" --print-uris "*) asked=size ;; *" --download-only "*) asked=fetch ;; *" update "*) asked=update ;; *" install "*) asked=install ;; esac
$apt});
	instead($commands, 'apt-cache', q{case "$*" in
	"show postgresql-18" | show\ *-offered) exit 100 ;;
	show*) exit 0 ;;
	"depends postgresql") [ "$LC_ALL" = C.UTF-8 ] && echo "  Depends: postgresql-17" || echo "  Hängt ab von: postgresql-17" ;;
	search*) printf 'postgresql-%s - the server\n' 17 16 14 ;;
esac});
	instead($commands, 'dpkg-query', 'exit 1');
	instead($commands, 'find',       'exit 0');
	instead($commands, 'id',         'echo 0');
	instead($commands, $_,           'exit 0') foreach qw(mkdir sh rmdir pg_lsclusters);
	instead($commands, 'sudo',       '"$@"');
	return $commands;
}

# How often apt-get was called with this command; to fetch packages is not to install them.
sub asked
{
	my ($commands, $command) = @_;
	my @asked = grep { / \Q$command\E( |$)/ && !/--print-uris|--download-only/ } split /\n/, slurp_file("$commands/asked");
	return scalar @asked;
}

1;
