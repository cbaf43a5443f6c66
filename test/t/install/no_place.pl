# A checkout that cannot be copied, or no place for the copy: a script says so in one
# sentence before it begins anything.

use strict;
use warnings;

use lib 'test/perl';
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

my $commands  = PostgreSQL::Test::Utils::tempdir();
my $checkout  = PostgreSQL::Test::Utils::tempdir();
my $temporary = PostgreSQL::Test::Utils::tempdir_short();
my $begun     = "$commands/begun";
instead($commands, $_, "touch $begun; exit 99") foreach qw(apt-get apt-cache dpkg-query sudo make tar mktemp mkdir);
instead($commands, 'df',      'echo Avail; echo ${FREE:-100000}');
instead($commands, 'findmnt', 'echo rw,${OPTIONS:-relatime}');
system_or_bail('sh', '-c', "cp -R script $checkout && mkdir -p $checkout/test/t/a && touch $checkout/test/t/a/test.pl");
chmod(0755, $checkout, $temporary) or die "chmod: $!";

sub check_refused
{
	my ($name, $variables, $sentence, @command) = @_;
	my ($status, $out, $err) = run_script($commands, { TMPDIR => $temporary, %$variables }, @command);
	ok(!-e $begun, "$name: nothing is begun");
	unlink $begun;
	is("$status$out", '1', "$name: refused");
	like($err, qr/\A\n\S+: $sentence\n\z/, "$name: in one sentence");
	return;
}

my @test = ("$checkout/script/test", 'a/test');
foreach my $script ([ "$checkout/script/demo" ], \@test)
{
	my $name  = $script->[0] =~ s{.*/script/}{script/}r;
	my $which = qr/\Q$temporary\E/;
	my $other = qr/: name another directory with TMPDIR=\.\.\./;
	check_refused("$name, little room", { FREE => 149 }, qr/$which has 149 MB left, and this needs \d+$other/, @$script);
	check_refused("$name, no room to run", { OPTIONS => 'noexec,nosuid' }, qr/nothing can be run in $which$other/, @$script);
	check_refused("$name, no directory", { TMPDIR => '/nonexistent' }, qr{/nonexistent is no directory .*$other}, @$script);
}
my $long = "$temporary/" . 'long' x 20;
mkdir $long or die "mkdir: $!";
chmod(0755, $long) or die "chmod: $!";
check_refused('a long name', { TMPDIR => $long }, qr/\S+long is too long for the name of a socket: .*/, @test);

SKIP:
{
	skip 'root may read and write everything', 6 if $> == 0;
	check_refused('no right to write', { TMPDIR => '/' }, qr{/ is no directory that the user \S+ may write to: .*}, "$checkout/script/demo");
	chmod(0, "$checkout/script/clients") or die "chmod: $!";
	check_refused('no right to read', {}, qr{this checkout cannot be copied: the user \S+ may not read \./script/clients}, "$checkout/script/demo");
}
my ($status) = run_script($commands, { TMPDIR => $temporary }, 'script/demo');
ok(-e $begun, 'where there is room, a script begins');
done_testing();
