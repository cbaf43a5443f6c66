# Every link of a page leads to a file of the repository, every #anchor to a heading of
# it, and every file that a page names in `code` is there.

use strict;
use warnings;

use lib 'test/perl';
use Markdown;
use PostgreSQL::Test::Utils;
use Test::More;

# What git tracks, with its folders; in a copy without git, what is there.
my %tracked;
if (-d '.git' && `git rev-parse --show-toplevel 2>/dev/null` ne '')
{
	foreach my $file (split /\0/, `git ls-files -z`)
	{
		$tracked{$file} = 1;
		$tracked{$file} = 1 while $file =~ s{/[^/]*$}{};
	}
	cmp_ok(scalar(keys %tracked), '>', 100, 'git tracks files');
}

sub is_there
{
	my ($path) = @_;
	return %tracked ? $tracked{$path} : -e $path;
}

# Names without a folder: where their files are.
my $folders = join '|', grep { -d } qw(.github bench debian doc expected packaging script sql src test);
my %places  = (c => [ 'src', 'src/*', 'bench', 'test/unit', 'test/modules' ], h => [ 'src', 'src/*', 'bench', 'test/unit' ], pl => [ 'test/t', 'test/t/*' ]);

# What is quoted and is no file of ours, or not yet.
my @not_here = (
	[ qr/^varatt\.h$/,                "PostgreSQL's" ],
	[ qr/^sql\/.*--1\.1\.sql$/,       'the next version, as an example of one' ],
	[ qr/^(?:src|bench)\/\w+\.(?:o|so)$/, 'made by make' ]);

# Which files a piece of `code` names.
sub files_named
{
	my ($code) = @_;
	my @words = map { s/[.,:;)]+$//r } split /[\s'"=<>()|&;]+/, $code;
	return grep { m{^(?:$folders)/[\w./*?+\[\]-]+$} || m{^(?:\w+/)?\w+\.(?:pl|[ch]|\[[ch]+\])$} } @words;
}

sub is_file
{
	my ($name) = @_;
	my ($kind) = $name =~ /\.\[?(\w+)\]?$/;
	$name =~ s{(?<![A-Za-z])(?:NAME|NNN?|VERSION)(?![A-Za-z])}{*}g;
	my @candidates = $name =~ m{/} ? ($name, "src/$name", "test/t/$name") : map { "$_/$name" } @{ $places{ substr($kind, 0, 1) eq 'p' ? 'pl' : substr($kind, 0, 1) } };
	return scalar grep { is_there($_ =~ s{/$}{}r) } map { glob } @candidates;
}

# What is wrong in a page, by its text.
sub wrong_names
{
	my ($page) = @_;
	my $text = read_page($page);
	my @wrong;
	foreach my $code (code_spans($text), grep { $_->{language} =~ /^(?:sh|bash|shell|console)$/ } code_blocks($text))
	{
		foreach my $name (files_named($code->{text}))
		{
			next if is_file($name) || grep { $name =~ $_->[0] } @not_here;
			push @wrong, "$page, line $code->{line}: $name";
		}
	}
	return @wrong;
}

my @pages = markdown_pages();
my ($links, $anchors, $names) = (0, 0, 0);
foreach my $page (@pages)
{
	my $text = read_page($page);
	my @links = grep { $_->{to} !~ /^[a-z]+:/ } links($text);
	$links   += @links;
	$anchors += grep { $_->{to} =~ /#/ } @links;
	$names   += files_named($_->{text}) foreach code_spans($text);
	is(join("\n", lost_links($page, \&is_there)), '', "$page: every link leads somewhere");
	is(join("\n", wrong_names($page)), '', "$page: the files that it names are there");
}
cmp_ok($links,   '>', 50, "links: $links");
cmp_ok($anchors, '>', 10, "links to headings: $anchors");
cmp_ok($names,   '>', 50, "names of files: $names");

# It would notice.  Each line: what a page has, and what is lost of it.
my $sample = PostgreSQL::Test::Utils::tempdir() . '/sample.md';
sub complaints
{
	my ($text, $of) = @_;
	open(my $out, '>:encoding(UTF-8)', $sample) or die "$sample: $!";
	print $out "$text\n";
	close($out) or die "$sample: $!";
	return join ' ', map { s/^.*?, line (\d+): (\S+?)(?:: no such (\w+))?$/$1:$2/r } $of->($sample, sub { -e $_[0] });
}

my $headings = "# One `two_three`: four/five\n\n## Again\n\n## Again\n\nUnder\n-----\n\n## [Linked](x:y) *and* _told_ ##\n\n";
foreach my $case (
	[ "$headings\[a](#one-two_three-fourfive) [b](#again) [c](#again-1) [d](#under) [e](#linked-and-told)", '' ],
	[ "$headings\[a](#again-2) [b](#one-two-three)", '12:#again-2 12:#one-two-three' ],
	[ "[a](nowhere.md)\n![b](nowhere.svg \"a title\")", '1:nowhere.md 2:nowhere.svg' ],
	[ "[![a](lost.svg)](lost.md) [a text\nof two lines](lost.md#x)", '1:lost.svg 1:lost.md 2:lost.md#x' ],
	[ "[a]\n\n[a]: lost.md\n<img alt=\"x\" src=\"lost.svg\">", '3:lost.md 4:lost.svg' ],
	[ "`[a](lost.md)`\n```text\n[a](lost.md)\n# Heading\n```\n[b](#heading)", '6:#heading' ],
	[ "[a](https://example.org/#x) [b](mailto:someone\@example.org)", '' ])
{
	my ($text, $lost) = @$case;
	is(complaints($text, \&lost_links), $lost, 'noticed: ' . ($lost eq '' ? "nothing in $case->[0]" : $lost) =~ s/\n.*//sr);
}
foreach my $case (
	[ '`doc/ordering.md` `script/test --packages` `feed/watermark.[ch]` `src/entropy/NAME.c`, `sql/*--1.0.sql`', '' ],
	[ '`doc/nothing.md`, `src/lost.c`: `script/tests --help`', '1:doc/nothing.md 1:src/lost.c 1:script/tests' ],
	[ "`watermark/held_back.pl`\n`watermark/lost.pl` `lost.h` `feed/lost.h` `generate.c`", '2:watermark/lost.pl 2:lost.h 2:feed/lost.h' ],
	[ "\n```sh\nscript/demos\n```\ndoc/nothing.md", '3:script/demos' ])
{
	my ($text, $lost) = @$case;
	is(complaints($text, \&wrong_names), $lost, 'noticed: ' . ($lost eq '' ? 'nothing' : $lost));
}
done_testing();
