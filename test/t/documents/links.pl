# Every link of a page leads to a file, and every #anchor to a heading of it, as GitHub
# forms them; the files that a page names in `code` are there.  With arguments, only the
# links of these pages: script/package gives it those that a package has installed.

use strict;
use warnings;

use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

sub read_page
{
	my ($page) = @_;
	open(my $in, '<:encoding(UTF-8)', $page) or die "$page: $!\n";
	my $text = join '', <$in>;
	return $text =~ s/^```.*?^```$//gmsr;
}

# Of each heading the letters, digits, hyphens and underscores, in lower case, with hyphens
# for blanks; the second of a name ends with "-1".
sub has_anchor
{
	my ($page, $anchor) = @_;
	my %seen;
	foreach my $heading (read_page($page) =~ /^#+ (.*)$/mg)
	{
		$heading =~ s/\[([^\]]*)\]\([^)]*\)/$1/g;
		my $name = lc($heading) =~ s/[^\w\- ]//gr =~ s/ /-/gr;
		my $number = $seen{$name}++;
		return 1 if $anchor eq ($number ? "$name-$number" : $name);
	}
	return 0;
}

sub lost_links
{
	my ($page) = @_;
	my $text = read_page($page) =~ s/`[^`]*`//gr;
	my @lost;
	foreach my $link ($text =~ /\]\(([^)\s]+)\)|^\[[^\]]+\]: (\S+)|\bsrc(?:set)?="([^"]+)"/mg)
	{
		next if !defined $link || $link =~ /^[a-z]+:/;
		my ($file, $anchor) = $link =~ /^([^#]*)#?(.*)/;
		my $path = $file eq '' ? $page : dirname($page) . "/$file";
		push @lost, $link unless -e $path && ($anchor eq '' || has_anchor($path, $anchor));
	}
	return join ' ', @lost;
}

foreach my $page (@ARGV ? @ARGV : glob('{,feed/}{*,doc/*,doc/*/*,examples/*,examples/*/*}.md bench/results/*.md'))
{
	is(lost_links($page), '', "$page: every link leads somewhere");
	next if @ARGV;

	# Tests can be named from test/t on, sources from src on; 1.1 is the next version.
	my @named = read_page($page) =~ m{`((?:[\w.-]+/)+[\w-]+\.(?:pl|sql|c|h|py)|script/[\w.-]+)\b}g;
	my @missing = grep { !-e && !-e "test/t/$_" && !-e "src/$_" && !-e "feed/$_" } grep { !/1\.1|NAME/ } @named;
	is("@missing", '', "$page: the files that it names are there");
}

# What packages install has pages of its own, and nothing but pages and their pictures.
foreach my $product (@ARGV ? () : ('.', 'feed'))
{
	my $packaged = tempdir(CLEANUP => 1);
	system('packaging/documents', $packaged, $product) == 0 or die "packaging/documents failed\n";
	my @files = split /\n/, `cd '$packaged' && find . -type f`;
	is(join(' ', grep { !/\.(md|svg)$/ } @files), '', "packaged of $product: pages alone");
	foreach my $page (grep { /\.md$/ } @files)
	{
		is(lost_links("$packaged/$page"), '', "packaged of $product: $page: every link leads somewhere");
	}
}

# Whoever gives the project an address finds in one list where: each file with a placeholder.
unless (@ARGV)
{
	my ($list) = read_page('CONTRIBUTING.md') =~ /^### What waits for an address\n(.*?)(?=^#|\z)/ms;
	my $found = `grep -rlE 'ADDRESS|[.]invalid>' README.md META.json debian doc feed/*.* feed/doc packaging`;
	is(join(' ', grep { $list !~ /`\Q$_\E`/ } split /\n/, $found), '', 'each placeholder of an address is in the list');
}
done_testing();
