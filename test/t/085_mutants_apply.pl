# Each mutant of test/mutants/list changes the code as it is now, and names a test that
# there is: script/mutants --regression takes an hour, and would end at the first that
# does not.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

my %places = (unit => 'test/unit/%s.c', sql => 'test/sql/%s.sql', t => 'test/t/%s.pl');
my @wrong;
my $mutants = 0;
foreach my $line (grep { /\S/ && !/^#/ } split /\n/, slurp_file('test/mutants/list'))
{
	my ($file, $change, $test) = $line =~ /^(\S+) :: (.*) :: (\S+)( \d+)?$/ or BAIL_OUT("no mutant: $line");
	my ($kind, $name) = $test =~ /^(\w+):(\w+)(?:\.musl)?$/ or BAIL_OUT("no test: $line");
	my $original = slurp_file($file);
	local $_ = $original;
	eval "$change; 1" or push @wrong, "$@ $line";
	push @wrong, "changes nothing: $line" if $_ eq $original;
	push @wrong, "no such test: $line" unless -e sprintf $places{$kind}, $name;
	$mutants++;
}
cmp_ok($mutants, '>', 200, 'there are mutants');
is(join("\n", @wrong), '', 'each changes the code, and names a test');
done_testing();
