# The scripts of script/, run with other commands in front of those that they call.

package Scripts;

use strict;
use warnings;

use Exporter qw(import);
use IPC::Run;
use PostgreSQL::Test::Utils;

our @EXPORT = qw(instead run_script server_version packages_missing);

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

1;
