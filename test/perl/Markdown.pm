# What Markdown pages link to and quote, read as GitHub reads it.  Needs nothing but
# Perl itself: script/package uses it in a clean system.

package Markdown;

use strict;
use warnings;

use Exporter qw(import);
use File::Basename qw(dirname);

our @EXPORT = qw(markdown_pages read_page links anchors code_spans code_blocks lost_links);

# The pages of this repository.
sub markdown_pages
{
	return glob('*.md doc/*.md doc/*/*.md bench/results/*.md');
}

sub read_page
{
	my ($page) = @_;
	open(my $in, '<:raw', $page) or die "$page: $!\n";
	my $text = do { local $/; <$in> };
	close($in) or die "$page: $!\n";
	utf8::decode($text) or die "$page is not in UTF-8\n";
	return $text;
}

sub blank
{
	return $_[0] =~ s/[^\n]/ /gr;
}

sub line_of
{
	my ($text, $position) = @_;
	return 1 + substr($text, 0, $position) =~ tr/\n//;
}

# A fenced block, and a span of code; both keep what they capture by name.
my $fence = qr/^ {0,3}(?<fence>`{3,}|~{3,})[ \t]*(?<info>[^\n`]*)\n(?<inside>.*?)(?:^ {0,3}\g{fence}[`~]*[ \t]*$|\z)/ms;
my $span  = qr/(?<!`)(?<ticks>`+)(?!`)(?<code>(?:(?!\n[ \t]*\n).)+?)(?<!`)\g{ticks}(?!`)/s;

# A text without its fenced blocks and comments, the lines where they were.
sub prose
{
	my ($text) = @_;
	$text =~ s/($fence)/blank($1)/ge;
	$text =~ s/(<!--.*?-->)/blank($1)/gse;
	return $text;
}

# The fenced blocks: the line of the first line in it, the language, the text.
sub code_blocks
{
	my ($text) = @_;
	my @blocks;
	while ($text =~ /$fence/g)
	{
		push @blocks, { line => 1 + line_of($text, $-[0]), language => lc($+{info} =~ s/\s.*//sr), text => $+{inside} };
	}
	return @blocks;
}

# What is quoted as `code`, with its line.
sub code_spans
{
	my $text = prose($_[0]);
	my @spans;
	while ($text =~ /$span/g)
	{
		push @spans, { line => line_of($text, $-[0]), text => $+{code} =~ s/\s*\n\s*/ /gr =~ s/^ (.*) $/$1/r };
	}
	return @spans;
}

# Where the links and images of a page lead, with the line.
sub links
{
	my $text = prose($_[0]) =~ s/($span)/blank($1)/ger;
	my @links;
	foreach my $pattern (
		qr/\]\(\s*<?([^)\s>]+)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*\)/,
		qr/^ {0,3}\[[^\]\n]+\]:\s*<?(\S+?)>?(?=\s|$)/m,
		qr/<(?:a|img|source)\s[^>]*?\b(?:href|src|srcset)\s*=\s*["']([^"']*)["']/i)
	{
		while ($text =~ /$pattern/g)
		{
			push @links, { line => line_of($text, $-[0]), to => $1 };
		}
	}
	return sort { $a->{line} <=> $b->{line} } @links;
}

# The anchors of a page: of each heading the letters, digits, hyphens and underscores,
# in lower case, with hyphens for blanks; "-1" and so on after one that was there.
sub anchors
{
	my $text = prose($_[0]);
	my (%anchors, %seen);
	while ($text =~ /^ {0,3}(?:#{1,6}[ \t]+(.*?)(?:[ \t]+#+)?[ \t]*$|(\S[^\n]*)\n {0,3}(?:=+|--+)[ \t]*$)/mg)
	{
		my $heading = $1 // $2;
		$heading =~ s/!?\[([^\]]*)\]\([^)]*\)/$1/g;
		$heading =~ s/(?<!\w)(_{1,2})([^_`]+)\1(?!\w)/$2/g;
		my $anchor = lc($heading) =~ s/[^\w\- ]//gr =~ s/ /-/gr;
		$anchors{ $anchor . ($seen{$anchor} ? "-$seen{$anchor}" : '') } = 1;
		$seen{$anchor}++;
	}
	$anchors{$1} = 1 while $text =~ /<\w+\s[^>]*?\b(?:id|name)\s*=\s*["']([^"']+)["']/g;
	return \%anchors;
}

# A path without its dots: doc/../x is x.
sub plain_path
{
	my ($path) = @_;
	$path =~ s{(^|/)(?:\./)+}{$1}g;
	1 while $path =~ s{(^|/)(?!\.\./)[^/]+/\.\.(?:/|$)}{$1};
	return $path;
}

# The links of a page that lead to no file that $is_there knows, nor to a heading of it.
sub lost_links
{
	my ($page, $is_there) = @_;
	$is_there //= sub { -e $_[0] };
	my @lost;
	foreach my $link (links(read_page($page)))
	{
		next if $link->{to} =~ /^[a-z][a-z0-9+.-]*:/i;
		my ($file, $anchor) = $link->{to} =~ /^([^#?]*)(?:#(.*))?/s;
		s/%([0-9A-Fa-f]{2})/chr(hex($1))/ge foreach grep { defined } $file, $anchor;
		my $directory = dirname($page) eq '.' ? '' : dirname($page) . '/';
		my $path = $file eq '' ? $page : $file =~ m{^/} ? $file : plain_path("$directory$file");
		my $why;
		if ($path =~ m{^/} && $page !~ m{^/} || $path !~ /./ || !$is_there->($path =~ s{/$}{}r))
		{
			$why = 'no such file';
		}
		elsif (defined $anchor && $anchor ne '')
		{
			my $text = -f $path ? read_page($path) : '';
			my $found = $path =~ /\.md$/ ? anchors($text)->{$anchor} : $anchor =~ /^L(\d+)(?:-L(\d+))?$/ && ($2 // $1) <= $text =~ tr/\n//;
			$why = 'no such heading' unless $found;
		}
		push @lost, "$page, line $link->{line}: $link->{to}: $why" if $why;
	}
	return @lost;
}

1;
