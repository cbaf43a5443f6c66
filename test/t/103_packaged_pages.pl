# Every page in a package finds the pages and figures that it links to.

use strict;
use warnings;

use File::Basename qw(dirname);
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'this tree has no debian/' unless -d 'debian';

# A path without its dots: doc/../x is x.
sub plain
{
	my ($path) = @_;
	1 while $path =~ s{(^|/)(?!\.\./)[^/]+/\.\./}{$1};
	return $path;
}

# What a page of ours links to, as paths from the top.
sub links
{
	my ($page) = @_;
	return map { plain(dirname($page) eq '.' ? $_ : dirname($page) . "/$_") }
	  grep { !/^[a-z]+:/ } slurp_file($page) =~ /\]\(([^)#\s]+)/g;
}

foreach my $list ([ 'debian/rules', qr/^\tdh_installdocs --all (.*)/m ], [ 'packaging/fast_uuid.spec', qr/^%doc (.*)/m ])
{
	my ($file, $pattern) = @$list;
	my ($named) = slurp_file($file) =~ $pattern;
	my @packaged = split ' ', $named;
	is(join(' ', grep { !-e } @packaged), '', "$file: what it takes is there");
	my @pages = map { -d ? glob("$_/*.md $_/*/*.md") : $_ } @packaged;
	cmp_ok(scalar(@pages), '>', 10, "$file: pages");
	my @lost;
	foreach my $page (@pages)
	{
		foreach my $link (links($page))
		{
			push @lost, "$page: $link" unless -e $link && grep { $link eq $_ || $link =~ m{^\Q$_\E/} } @packaged;
		}
	}
	is(join("\n", @lost), '', "$file: each page finds what it links to");
}

# dh_installchangelogs would take it from the pages if it were left to find it.
like(slurp_file('debian/rules'), qr/^\tdh_installchangelogs CHANGELOG\.md$/m, 'the changelog stays among the pages');

# dh_compress would compress what is linked to, or run.
my ($kept) = slurp_file('debian/rules') =~ /^\tdh_compress (.*)/m;
my @kept = $kept =~ /-X(\S+)/g;
foreach my $file ('README.md', 'doc/ordering.md', 'doc/clients/item.sql', 'bench/results/statements.svg', 'bench/results/report.md')
{
	ok(scalar(grep { "usr/share/doc/postgresql-15-fast-uuid/$file" =~ /\Q$_\E/ } @kept), "$file stays as it is");
}

done_testing();
