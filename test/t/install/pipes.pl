# Scripts do not end without a word: no reader in a pipe ends before its writer, which
# a signal would end then, now and then; and whatever fails is named.

use strict;
use warnings;

use lib 'test/perl';
use Cwd qw(getcwd);
use PostgreSQL::Test::Utils;
use Scripts;
use Test::More;

# A signal that was ignored when a shell began, as by nohup, cannot be trapped there.
$SIG{$_} = 'DEFAULT' foreach qw(HUP INT QUIT PIPE TERM);

# Quoted strings and other words up to the end of a command.
my $command = qr/(?:'[^']*'|"(?:[^"\\]|\\.)*"|\\.|[^'"|;&()\n])*/s;

# Readers in pipes that end early, or can: grep does with its output in /dev/null.
sub early_readers
{
	my ($script) = @_;
	my @found;
	while ($script =~ /(?<!\|)\|&?(?!\|)[\s\\({]*((head|grep|egrep|fgrep|sed|awk|read)\b($command)(?:[|;&)\n]+ *\/dev\/null)?)/g)
	{
		my ($reader, $name, $arguments) = ($1, $2, $3);
		pos($script) -= length($reader);
		$arguments =~ s/\bEND \{[^'}]*\}//g;
		push @found, "$name$arguments"
		  if $name =~ /^(?:head|read)$/
		  || $name =~ /grep$/ && $arguments =~ /(?: -[A-Za-z]*[qmlL]|--(?:quiet|silent|max-count|files-with))|>\s*\/dev\/null/
		  || $name eq 'sed'   && $arguments =~ m{['"/;\d\$\{]\s*[qQ]\s*\d*\s*(?:['";\}]|$)}
		  || $name eq 'awk'   && $arguments =~ /\bexit\b/;
	}
	return @found;
}

my @early = (
	'cat a | head -n 1',                             "cat a | awk '/b/ { print; exit }'",
	'cat a | grep -qFx b || c',                      'cat a | (grep -Ex -m 1 -- b)',
	"cat a |\n\tgrep b >/dev/null",                  "cat a | sed -n '/b/{p;q}'",
	'cat a | sort | sed 1q | cat',                   'cat a | read -r b',
	"cat a | awk 'END { print } /b/ { exit 1 }' | c");
is(scalar(early_readers($_)), 1, "found: " . s{\s+}{ }gr) foreach @early;
my @late = ('a || grep -q b c', 'cat a | tail -n 1', 'grep -m 1 a b | sort', "a | awk '{ n++ } END { exit n }'", "a | sed 's/q/x/' | grep -c q");
is(join("\n", early_readers($_)), '', "not found: $_") foreach @late;

my @scripts = grep { -f } glob('script/* .ci/run test/mutants/run test/installed.sh test/upgrade/* packaging/* debian/rules debian/tests/*');
cmp_ok(scalar(@scripts), '>', 20, 'the scripts are there');
is(join("\n", early_readers(slurp_file($_))), '', "$_: every reader in a pipe reads all") foreach @scripts;

# With writers that have far more to say than a pipe holds, a script begins all the same.
my $commands = PostgreSQL::Test::Utils::tempdir_short();
my $begun    = "$commands/begun";
instead($commands, 'dpkg-query', 'exit 1');
instead($commands, 'apt-cache',
	'case $1 in depends) seq -f "  Depends: postgresql-%.0f" 17 100000 ;; policy) seq -f "  Candidate: 17.%.0f" 9 100000 ;; esac');
instead($commands, $_, "touch $begun; exit 99") foreach qw(apt-get sudo mkdir);
my ($status, $out, $err) = run_script($commands, {}, 'script/demo');
ok(-e $begun, 'a long answer of apt-cache is read to its end') or diag("status $status\n$out\n$err");

# What a script says that fails in this way.
my $script = "$commands/script";
my $here   = getcwd();
sub said
{
	my ($text) = @_;
	my $name = $text =~ s{\s+}{ }gr;
	unlink $script;
	append_to_file($script, ". '$here/script/common.sh'\nfails()\n{\n\t$text\n\techo on\n}\nfails\n");
	my ($status, $out, $err) = run_script($commands, {}, 'env', '--default-signal=PIPE', 'bash', $script);
	is($out, '', "$name: the script ends");
	return "$status $err";
}
my $where = qr/\Q$script\E, line 4:\n\t/;
foreach my $text ('yes | head -n 1 >/dev/null', 'found=$(yes | head -n 1)', "yes |\n\t\thead -n 1 >/dev/null")
{
	like(said($text), qr/^141 .*: failed with status 141 \(SIGPIPE\) in \Q$script\E, line [45]:\n\t\Q$text\E\n\z/, "@{[ $text =~ s{\s+}{ }gr ]}: named");
}
like(said("bash -c 'kill -KILL \$\$'"), qr/^137 .*failed with status 137 \(SIGKILL\) in ${where}bash -c 'kill/s, 'killed: named');
like(said('false'), qr/^1 .*failed with status 1 in ${where}false\n\z/, 'failed: named');
like(said("kill -$_ \$\$"), qr/^\d+ \n.*: ended by SIG$_; its servers and their directory are gone\n\z/, "SIG$_: named") foreach qw(HUP INT QUIT PIPE TERM);
like(said('die "a reason"'), qr/^1 \n.*: a reason\n\z/, 'a reason that was given is the last word');

done_testing();
