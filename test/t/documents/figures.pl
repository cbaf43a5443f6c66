# The figures in the documents are those of bench/results, each at the text that
# bench/quotes.py has for it, and none with a unit is there without one.

use strict;
use warnings;

use File::Copy qw(copy);
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use Test::More;

my $python = '/usr/bin/python3';
plan skip_all => 'there is no Python' unless -x $python;

# Here nothing is there but the standard library.
sub quoted
{
	my ($top, @arguments) = @_;
	my ($out, $err) = run_command([ $python, '-I', '-S', '-B', '-c', <<'END', "$top/bench", @arguments ]);
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv = sys.argv[1:]
runpy.run_path(sys.path[0] + '/quoted.py', run_name='__main__')
END
	return ($?, $err);
}

# What the list says, with the lines that Python has before an exception.
my ($status, $wrong) = quoted('.', '--check');
is($wrong, '', 'every figure of the documents is the one that was measured');
is($status, 0, 'the check says so');

# A checkout of little more than a sentence each, with results of its own.
my $copy = PostgreSQL::Test::Utils::tempdir();
make_path("$copy/bench/results", "$copy/doc");
copy("bench/$_", "$copy/bench/$_") or die "$_: $!" for qw(quoted.py figures.py results.py generators.py);

sub in_copy
{
	my ($file, $text) = @_;
	open my $handle, '>', "$copy/$file" or die "$file: $!";
	print $handle $text;
	close $handle or die "$file: $!";
}

my $list = <<'END';
from figures import Quote, difference, less, ratio, tenths, three, whole
A, B = ('speed', 'a', 1, 'ms'), ('speed', 'b', 1, 'ms')
QUOTES = [Quote(*quote) for quote in [
    ('README.md', 'It takes {} ms, at most {} ms, which', [whole(A), tenths((*A, 'q3'))]),
    ('README.md', '| `a` | {} |', [three(A)]),
    ('README.md', '{} % less than b', [whole(less(ratio(A, B)))]),
    ('doc/a.md', 'by {} ms', [whole(difference(B, A))]),
]]
COVERED = ['README.md']
ALLOWED = [('README.md', 'at most 24 ms', 'the limit of a setting')]
END
my $results = <<'END';
experiment,case,parameter,metric,rounds,median,min,q1,q3,max
speed,a,1,ms,3,1234.5,1,1,1250,1
speed,b,1,ms,3,2469,1,1,1,1
END
my $readme = <<'END';
# A

It takes 1,234
  ms, at most 1,250.0 ms, which is 50 %
less than b. A setting allows at most 24 ms.
`SET a = '5 ms'` is code, and version 18 has no unit.

| what      |    ms |
| `a`       | 1,234 |
END
my $document = "It is slower by 1,234 ms.\n";

# check [NAME, WHAT PYTHON SAYS, FILE => TEXT...]: everything else as above
sub check
{
	my ($name, $says, %files) = @_;
	my %all = ('README.md' => $readme, 'doc/a.md' => $document, 'bench/quotes.py' => $list, 'bench/results/results.csv' => $results, %files);

	in_copy($_, $all{$_}) for sort keys %all;
	my ($status, $err) = quoted($copy, '--check');
	like($err, $says, $name);
	is($status != 0, $err ne '', "$name: the status tells it");
	is(slurp_file("$copy/$_"), $all{$_}, "$name: nothing is written to $_") for 'README.md', 'doc/a.md';
}

check('what is right', qr/\A\z/);
check('a digit that changed', qr{\AREADME\.md:3: "1,235" should be "1,234"\z}, 'README.md' => $readme =~ s/1,234\n/1,235\n/r);
check('a text that has changed', qr{\Adoc/a\.md: there is no such text: "by 1,234 ms"\z}, 'doc/a.md' => $document =~ s/by/about/r);
check('a text that is there twice', qr{\Adoc/a\.md: the text stands in several places \(lines 1, 3\)}, 'doc/a.md' => "$document\nby 7 ms\n");
check('a figure that no template has', qr{\AREADME\.md:11: no quote has "3 \xc2\xb5s"\z}, 'README.md' => "$readme\nAnd 3 \xc2\xb5s.\n");
check('an experiment that was not run', qr{results\.csv has no median of speed, c, 1, ms\z},
	'bench/quotes.py' => $list =~ s/difference\(B, A\)/('speed', 'c', 1, 'ms')/r);
check('a sentence that is true no more', qr{the figure is -1,234: the sentence is no longer true\z},
	'bench/quotes.py' => $list =~ s/difference\(B, A\)/difference(A, B)/r);
check('an exception that nothing needs', qr{\AREADME\.md: nothing to allow: "at most 25 ms"},
	'bench/quotes.py' => $list =~ s/at most 24/at most 25/r);

# Placed, the figures are those of other results, and the rest is as it was.
check('other results', qr/should be/, 'bench/results/results.csv' => $results =~ s/1234\.5,1,1,1250/2000,1,1,2500/r);
($status, $wrong) = quoted($copy);
is($wrong, '', 'figures are placed without a complaint');
is($status, 0, 'and the status says so');
is(slurp_file("$copy/README.md"), $readme =~ s/1,234\n/2,000\n/r =~ s/1,250\.0/2,500.0/r =~ s/50 %/19 %/r =~ s/\| 1,234/| 2,000/r,
	'they stand where the old ones stood, and the lines end where they did');
($status, $wrong) = quoted($copy, '--check');
is($wrong, '', 'now they are right');

done_testing();
