# Built in another directory than the checkout, and by somebody whose umask lets nobody
# else read, it is installed like any other: the same files, which the server can read.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Utils;
use Test::More;

# In a copy: without the suite's flags make builds again, while other tests copy.
my $source   = getcwd();
my $checkout = PostgreSQL::Test::Utils::tempdir_short();
my $build    = PostgreSQL::Test::Utils::tempdir_short();
system_or_bail('cp', '-Rp', 'Makefile', 'fast_uuid.control', 'src', 'sql', $checkout);
chdir $checkout or die "chdir: $!";

my @make = ('make', '-s', 'PG_CONFIG=' . ($ENV{PG_CONFIG} // 'pg_config'));
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

# What is installed below a directory
sub installed
{
	my ($directory) = @_;
	return `cd $directory && find . -type f | sort`;
}

system_or_bail(@make, 'COPT=-O0', 'install', "DESTDIR=$build/here");
umask 0077;
chdir $build or die "chdir: $!";
push @make, 'COPT=-O0', '-f', "$checkout/Makefile";
command_ok([ @make, 'install', "DESTDIR=$build/elsewhere" ], 'built elsewhere');
is(installed('elsewhere'), installed('here'), 'the same files are installed');
is(`nm -D --defined-only --format=posix fast_uuid.so | cut -d ' ' -f 1`,
	`nm -D --defined-only --format=posix $checkout/fast_uuid.so | cut -d ' ' -f 1`, 'with the same functions');
is(`find elsewhere -path '*/bitcode/*' ! -perm -o=r`, '', 'all bitcode can be read by everybody');
is(`find elsewhere ! -path '*/bitcode*' -type f ! -perm -o=r`, '', 'so can the other files');
command_fails_like([ @make, $_ ], qr/works in the checkout alone: make -C \Q$checkout\E/, "make $_: where it works")
  foreach qw(installcheck unit warnings benchmark);

chdir $source or die "chdir: $!";
done_testing();
