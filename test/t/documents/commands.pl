# Every shell command that a document gives to its reader names what there is: scripts and
# programs take its options, make has its targets and variables, apt its packages.  That
# a script refuses an option that its help does not have is install/script_arguments.pl's;
# what installs and removes is run by install/extension_directory.pl and uninstall.pl.

use strict;
use warnings;

use lib 'test/perl';
use Markdown;
use PostgreSQL::Test::Utils;
use Test::More;

my $pg_config = $ENV{PG_CONFIG} // 'pg_config';
my ($bindir, $pgxs) = map { (run_command([ $pg_config, $_ ]))[0] } '--bindir', '--pgxs';
my ($major) = (run_command([ $pg_config, '--version' ]))[0] =~ /(\d+)/;
my $makefiles = join '', map { slurp_file($_) } 'Makefile', $pgxs, $pgxs =~ s{makefiles/pgxs\.mk$}{Makefile.global}r;
my $tests     = join '', map { slurp_file($_) } glob('script/* test/t/*/*.pl');
my %packages  = map { $_ => 1 } split /\n/, `apt-cache pkgnames 2>/dev/null`;

# What a program says of itself: the comment at the head of a script of ours; else its
# help, and its text where that is no machine code.
my %said;
sub said_by
{
	my ($file) = @_;
	return $said{$file} //= do
	{
		my $text = slurp_file($file);
		$file =~ /^(?:script|test)\// ? ($text =~ /\A((?:#.*\n)+)/)[0] : join('', run_command([ $file, '--help' ])) . ($text =~ /\A#!/ ? $text : '');
	};
}

sub unknown_to
{
	my ($file, @arguments) = @_;
	my $said = said_by($file) // '';
	my @named = map { /^(--[a-z-]+|-[A-Za-z])/ ? $1 : () } @arguments;
	push @named, grep { $file =~ /^script/ && /^[a-z]+$/ } @arguments ? $arguments[0] : ();
	return map { my $bare = s/^--//r; $said =~ /(?<![\w-])\Q$_\E(?![\w-])|['"|]\Q$bare\E\b/ ? () : "$file knows no $_" }
	  grep { $_ ne '--help' } @named;
}

# What is wrong with the commands of a line: they end at an operator or a comment.
sub wrong_with
{
	my ($line) = @_;
	my @wrong;
	foreach my $command (split /&&|\|\|?|;/, $line =~ s/(?:^|\s)#.*//r =~ s/"[^"]*"|'[^']*'/x/gr)
	{
		my @words = split ' ', $command =~ s/\bsudo(?: -u \w+)?\b//r;
		my @variables = map { /^([A-Z_]+)=/ ? $1 : () } @words;
		my ($program, @arguments) = grep { !/^\w+=/ } @words;
		my ($file) = grep { -x && -f } map { "$_/" . ($program // '') } $bindir, '/usr/bin';
		push @wrong, map { "nothing reads $_" } grep { $makefiles !~ /^$_\b|\$[({]$_\b/m && $tests !~ /\$\{?$_\b|\$ENV\{$_\}/ } @variables;
		next unless defined $program;
		if ($program =~ m{^script/|^test/mutants/run$}) { push @wrong, -x $program ? unknown_to($program, @arguments) : "no script $program"; }
		elsif ($program eq 'make')
		{
			push @wrong, map { "make has no target $_" }
			  grep { !/^-/ && $makefiles !~ /^[^\n\t#=]*(?<![\w-])\Q$_\E(?![\w-])[^\n=]*:(?!=)/m } @arguments;
		}
		elsif ($program =~ /^apt/ && %packages)
		{
			push @wrong, map { "apt knows no package $_" } grep { !$packages{$_} && !/-fast-uuid$/ }
			  map { s/-NN\b|-1\d\b/-$major/r } grep { !/^-|^(?:install|update|autoremove)$|[\/_]/ } @arguments;
		}
		elsif ($program =~ /^(?:psql|pg_\w+|initdb|createuser)$/ && ($file || $program !~ /cluster$/))
		{
			push @wrong, $file ? unknown_to($file, @arguments) : "no program $program";
		}
	}
	return @wrong;
}

# Commands stand in blocks, and are quoted; an option that is quoted alone is one of a
# script or of pg_dump.
my $known = join '', map { said_by($_) // '' } "$bindir/pg_dump", grep { -x } glob('script/* test/mutants/run');
my $count = 0;
sub wrong_in
{
	my ($text) = @_;
	my @commands = map { split /(?<!\\)\n/, $_->{text} } grep { $_->{language} =~ /^(?:sh|bash|shell|console)$/ } code_blocks($text);
	my @quoted = map { $_->{text} } code_spans($text);
	push @commands,
	  grep { m{^(?:(?:script/[\w-]+|test/mutants/run)(?![\w.])|make(?=$|\s)|(?:sudo|apt|apt-get|psql|initdb|createuser|pg_\w+) |[A-Z_]{4,}=\S*$)} } @quoted;
	$count += @commands;
	return ((map { my $command = $_; map { "$command: $_" } wrong_with($command) } @commands),
		map { "no program has the option $_" } grep { $known !~ /(?<![\w-])$_(?![\w-])/ } map { /^(--[a-z][a-z-]*)/ } @quoted);
}

is(join("\n", wrong_in(read_page($_))), '', "$_: the commands work") foreach 'README.md', 'CONTRIBUTING.md', glob('doc/*.md doc/*/*.md');
cmp_ok($count, '>', 30, "commands: $count");

# What is wrong would be noticed.
foreach my $case (
	[ 'script/test --package',                       'script/test knows no --package' ],
	[ 'script/analyze everything',                   'script/analyze knows no everything' ],
	[ 'PG_VERSION=17 script/tests',                  'no script script/tests' ],
	[ 'make units',                                  'make has no target units' ],
	[ 'make -s && sudo make install WITHOUT_SSL=no', 'nothing reads WITHOUT_SSL' ],
	[ 'make installcheck TAP_TESTS= REGRESS=order  # a look', '' ],
	[ 'pg_dump --schemas-only | script/demo',        "$bindir/pg_dump knows no --schemas-only" ],
	[ 'sudo -u postgres psql -d item -c "SELECT 1; SELECT 2"', '' ],
	[ 'pg_begin now',                                'no program pg_begin' ],
	%packages ? [ 'sudo apt install -y make libssl-devel', 'apt knows no package libssl-devel' ] : ())
{
	my ($typed, $complaint) = @$case;
	is(join('|', wrong_with($typed)), $complaint, "$typed: " . ($complaint || 'no false alarm'));
}
is(join('|', wrong_in("`make x`, `SELECT 1`, with `--arche arm64`\n```sh\nscript/a\n```\n```sql\nmake y\n```")),
	'script/a: no script script/a|make x: make has no target x|no program has the option --arche', 'commands are found, and nothing else');
done_testing();
