# Every source, and every library of the tests, compiles with musl's headers, with each
# warning an error.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'needs musl-gcc' if system('command -v musl-gcc >/dev/null') != 0;

# musl has its own headers alone: those of the kernel and of OpenSSL are the system's.
my $headers = PostgreSQL::Test::Utils::tempdir();
my ($multiarch) = run_command([ 'gcc', '-print-multiarch' ]);
my ($server) = run_command([ 'pg_config', '--includedir-server' ]);
my @flags = qw(-fsyntax-only -O2 -Wall -Wextra -Werror -Isrc -D_GNU_SOURCE);
push @flags, '-DFUUID_WITH_OPENSSL', '-DFUUID_VERSION="musl"', '-DFEED_VERSION="musl"', '-isystem', $server;
foreach my $from ('/usr/include', "/usr/include/$multiarch")
{
	my $to = "$headers/" . ($from =~ s{/}{_}gr);
	mkdir $to or die "$to: $!";
	foreach my $name (grep { -e "$from/$_" } qw(asm asm-generic linux openssl))
	{
		symlink("$from/$name", "$to/$name") or die "$to/$name: $!";
	}
	push @flags, '-idirafter', $to;
}

foreach my $file (glob('src/*.c src/*/*.c test/modules/*.c feed/src/*.c'))
{
	my ($out, $err) = run_command([ 'musl-gcc', @flags, $file ]);
	is($err, '', "$file compiles");
}

done_testing();
