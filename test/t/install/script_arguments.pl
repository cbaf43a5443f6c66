# Every script answers --help, and refuses what it does not know in one sentence, before
# it begins anything.  CONTRIBUTING.md says who needs it.

use strict;
use warnings;

use lib 'test/perl';
use Cwd qw(getcwd);
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

# All that a script could begin with: it is noted, and fails.
my $commands = PostgreSQL::Test::Utils::tempdir();
my $home     = PostgreSQL::Test::Utils::tempdir();
my $links    = PostgreSQL::Test::Utils::tempdir();
my $begun    = "$commands/begun";
instead($commands, $_, qq{echo "$_ \$*" >>$begun; exit 99})
  foreach qw(apt-get apt-cache dpkg dpkg-query sudo runuser setpriv setsid debootstrap unshare mktemp mkdir make tar rm
  python3 pip npm mvn go);

# Run a script that should begin nothing.
sub answer
{
	my ($name, $variables, @command) = @_;
	my ($status, $out, $err) = run_script($commands, { HOME => $home, TMPDIR => $home, %$variables }, @command);
	is(-e $begun ? slurp_file($begun) : '', '', "$name: nothing is begun");
	unlink $begun;
	return ($status, $out, $err);
}

# It names what is wrong and where help is, in its own words.
sub check_refused
{
	my ($name, $named, $variables, $script, @arguments) = @_;
	my ($status, $out, $err) = answer($name, $variables, $script, @arguments);
	cmp_ok($status, '>', 0, "$name: refused");
	cmp_ok($status, '<=', 2, "$name: by the script itself");
	is($out, '', "$name: nothing but the complaint");
	like($err, qr/\A\Q$script\E: .*\Q$named\E.*\n(?:.+\n)?.*\Q$script\E --help.*\n\z/, "$name: named, and help is");
	unlike($err, qr/line \d+:|Traceback/, "$name: in words for a user");
	return;
}

my @scripts = grep { -x } glob('script/* test/mutants/run');
cmp_ok(scalar(@scripts), '>', 8, 'the scripts are there');

foreach my $script (@scripts)
{
	my ($status, $help, $err) = answer("$script --help", {}, $script, '--help');
	is("$status $err", '0 ', "$script --help: answered");
	like(slurp_file($script), qr/\A#!.*\n\Q@{[ $help =~ s{^(?=.)}{# }mgr =~ s{^$}{#}mgr ]}\E\n/,
		"$script --help: the comment at its head");
	like(slurp_file('CONTRIBUTING.md'), qr/^\| `\Q$script\E` \| [^|.]+\. \|/m, "$script: a sentence says who needs it");
	check_refused("$script, a wrong word", '"wrong_word"', {}, $script, 'wrong_word');
	check_refused("$script, a wrong option", '"--offlin"', {}, $script, '--offlin');
	check_refused("$script, version abc", 'PG_VERSION=abc', { PG_VERSION => 'abc' }, $script);

	# What its help says of options with values.
	while ($help =~ /^ +(--[a-z-]+) ([A-Z]+)\b/mg)
	{
		my ($option, $value) = ($1, $2);
		check_refused("$script $option", $option, {}, $script, $option);
		check_refused("$script $option=", $option, {}, $script, "$option=");
		next unless $value eq 'N';
		foreach my $wrong ('many', '-1', '1x', '99999999999999999999', $option eq '--seed' ? () : '0')
		{
			check_refused("$script $option=$wrong", $option, {}, $script, "$option=$wrong");
		}
	}
}

# What all have from script/arguments.sh and common.sh, tried with one.
my $help = (answer('script/demo --help', {}, 'script/demo', '--help'))[1];
is(join('', answer('--help among others', {}, 'script/demo', '--help', '--offlin')), "0$help", '--help is answered first');
symlink(getcwd() . '/script/demo', "$links/a link") or die "symlink: $!";
is(join('', answer('through a symbolic link', {}, "$links/a link", '--help')), "0$help", 'through a symbolic link: the same');
is(join('', answer('with CDPATH', { CDPATH => '.:/' }, 'script/demo', '--help')), "0$help", 'with CDPATH: the same');
check_refused('an empty word', '""', {}, 'script/demo', '');
check_refused("version $_", "PG_VERSION=$_", { PG_VERSION => $_ }, 'script/demo') foreach '14', '1.5';
check_refused('script/analyze without an instrument', 'ubsan, valgrind, coverage or profile', {}, 'script/analyze');
check_refused('test/mutants/run of no such file', '/no/such/file', {}, 'test/mutants/run', '--written', '/no/such/file');
check_refused('script/test --packages with a value', '--packages', {}, 'script/test', '--packages=yes');

is(join(' ', glob("$home/*")), '', 'nothing is written to the home or the temporary directory');

# The test would see a script that begins: apt-get is asked.
my ($status) = run_script($commands, { HOME => $home }, 'script/demo');
ok(-e $begun, 'a script that is not stopped begins');
done_testing();
