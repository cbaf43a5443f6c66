# Each mutant of test/mutants/list and test/mutants/equivalent changes the code as it is
# now, and those of the list name a test that there is: test/mutants/run would end at the
# first that does not.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

sub applies
{
	my ($file, $change) = @_;
	my $original = slurp_file($file);
	local $_ = $original;
	eval "$change; 1" or die "$@ $change";
	return $_ ne $original;
}

my %places = (unit => 'test/unit/%s.c', sql => 'test/sql/%s.sql', t => 'test/t/%s.pl', a => 'test/t/%s.pl');
my @wrong;
my $mutants = 0;
foreach my $line (grep { /\S/ && !/^#/ } split /\n/, slurp_file('test/mutants/list'))
{
	my ($file, $change, $test) = $line =~ /^(\S+) :: (.*) :: (\S+)( \d+)?$/ or BAIL_OUT("no mutant: $line");
	my ($kind, $name) = $test =~ m{^(\w+):([\w/]+)(?:\.musl)?$} or BAIL_OUT("no test: $line");
	push @wrong, "changes nothing: $line" unless applies($file, $change);
	push @wrong, "no such test: $line" unless -e sprintf $places{$kind}, $name;
	$mutants++;
}
cmp_ok($mutants, '>', 200, 'there are mutants');
is(join("\n", @wrong), '', 'each changes the code, and names a test');

@wrong = ();
foreach my $line (grep { /\S/ && !/^#/ } split /\n/, slurp_file('test/mutants/equivalent'))
{
	my ($file, $change) = $line =~ /^(\S+) :: (.*) :: \S/ or BAIL_OUT("no mutant: $line");
	push @wrong, $line unless applies($file, $change);
}
is(join("\n", @wrong), '', 'so does each of those that no test can notice');
done_testing();
