# Every page in a package finds the pages and figures that it links to.

use strict;
use warnings;

use lib 'test/perl';
use Markdown;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'this tree has no debian/' unless -d 'debian';

foreach my $list ([ 'debian/rules', qr/^\tdh_installdocs --all (.*)/m ], [ 'packaging/fast_uuid.spec', qr/^%doc (.*)/m ])
{
	my ($file, $pattern) = @$list;
	my ($named) = slurp_file($file) =~ $pattern;
	my @packaged = split ' ', $named;
	is(join(' ', grep { !-e } @packaged), '', "$file: what it takes is there");
	my @pages = map { -d ? glob("$_/*.md $_/*/*.md") : $_ } @packaged;
	cmp_ok(scalar(@pages), '>', 10, "$file: pages");
	my $is_packaged = sub
	{
		my ($path) = @_;
		return -e $path && grep { $path eq $_ || $path =~ m{^\Q$_\E/} } @packaged;
	};
	my @lost = map { lost_links($_, $is_packaged) } @pages;
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
