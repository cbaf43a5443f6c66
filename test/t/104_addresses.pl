# "make addresses" names each address that a release needs and that is missing, and no other.

use strict;
use warnings;

use File::Copy qw(copy);
use IPC::Run;
use PostgreSQL::Test::Utils;
use Test::More;

plan skip_all => 'this tree has no debian/' unless -d 'debian';
delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

# A tree whose addresses are all missing, and what is said while they are filled in.
my $tree = PostgreSQL::Test::Utils::tempdir();
mkdir "$tree/$_" or die "$_: $!" foreach qw(debian packaging);
my @files = ('Makefile', 'fast_uuid.control', 'META.json', 'packaging/fast_uuid.spec', map { "debian/$_" } qw(control control.in changelog));
copy($_, "$tree/$_") or die "$_: $!" foreach @files;

sub edit
{
	my ($file, $from, $to) = @_;
	my $text = slurp_file("$tree/$file");
	$text =~ s/$from/$to/g;
	open(my $out, '>', "$tree/$file") or die "$file: $!";
	print $out $text;
	close($out) or die "$file: $!";
	return;
}

sub said
{
	my ($out, $err) = ('', '');
	ok(IPC::Run::run([ 'make', '-s', '-C', $tree, 'PG_CONFIG=false', 'addresses' ], '>', \$out, '2>', \$err), "make addresses $_[0]");
	return $out . $err;
}

edit($_, qr/^(?:Homepage|URL):.*\n/m,        '') foreach @files;
edit('META.json', qr/^  "resources".*\n(?:    .*\n)*(?:  \}.*\n)?/m, '');
edit("debian/$_", qr/<\S+\@\S+>/, '<someone@example.invalid>') foreach qw(control control.in changelog);

my @steps = (
	[ 'META.json has no "homepage"',   'META.json', qr/^\{\n/, "{\n  \"homepage\": \"https://example.org\",\n" ],
	[ 'META.json has no "bugtracker"', 'META.json', qr/^\{\n/, "{\n  \"bugtracker\": {},\n" ],
	[ 'META.json has no "repository"', 'META.json', qr/^\{\n/, "{\n  \"repository\": {},\n" ],
	[ 'packaging/fast_uuid.spec has no URL', 'packaging/fast_uuid.spec', qr/^(?=Source0:)/m, "URL: https://example.org\n" ],
	(map { [ "$_ has no Homepage", $_, qr/^(?=Section:)/m, "Homepage: https://example.org\n" ] } qw(debian/control.in debian/control)),
	(map { [ "maintainer's address in $_ (", $_, qr/example\.invalid/, 'example.org' ] }
		  qw(debian/control.in debian/control debian/changelog)));
foreach my $step (@steps)
{
	my ($missing, $file, $from, $to) = @$step;
	like(said("without: $missing"), qr/\Q$missing\E/, "said: $missing");
	edit($file, $from, $to);
	unlike(said("with it"), qr/\Q$missing\E/, 'and not said any more');
}
is(said('with all'), '', 'nothing is said where nothing is missing');

done_testing();
