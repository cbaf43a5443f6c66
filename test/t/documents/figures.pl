# The figures in the documents are those of bench/results, and on the pages of what was
# measured none with a unit is there without a mark.

use strict;
use warnings;

use File::Copy qw(copy);
use File::Path qw(make_path);
use PostgreSQL::Test::Utils;
use Test::More;

my $python = '/usr/bin/python3';
plan skip_all => 'there is no Python' unless -x $python;

# Status and complaints.  Here nothing is there but the standard library.
sub figures
{
	my ($top, @arguments) = @_;
	my ($out, $err) = run_command([ $python, '-I', '-S', '-B', '-c', <<'END', "$top/bench", @arguments ]);
import runpy, sys
sys.path.insert(0, sys.argv[1])
sys.argv = sys.argv[1:]
runpy.run_path(sys.path[0] + '/figures.py', run_name='__main__')
END
	return ($?, $err);
}

my ($status, $wrong) = figures('.', '--check');
is($wrong, '', 'every figure of the documents is the one that was measured');
is($status, 0, 'the check says so');
cmp_ok(scalar(() = slurp_file('doc/performance.md') =~ /<!--= /g), '>', 10, 'there are figures to compare');

# A checkout of two pages, with results of its own.
my $copy = PostgreSQL::Test::Utils::tempdir();
make_path("$copy/bench/results", "$copy/doc");
copy("bench/$_", "$copy/bench/$_") or die "$_: $!" for qw(figures.py results.py generators.py);

my $results = <<'END';
experiment,case,parameter,metric,rounds,median,min,q1,q3,max
speed,a,1,ms,3,1234.5,1,1,1250,1
speed,"b, also",1,ms,3,2469,1,1,1,1
speed,a,1,MB,3,7,1,1,1,1
END
my $readme = <<'END';
# A

It takes 1,234<!--= speed / a
  / ms --> ms, 1.2<!--= speed / a / ms ÷ 1000 -->
s, or 1,234<!--= speed / b, also − speed / a / ms --> ms less than b. A setting allows 24<!-- chosen --> ms.
`SET a = '5 ms'` is code, so is `7<!--= nothing -->`, and version 18 has no unit.

| what | ms |
| --- | --- |
| `a` | 1,234.50<!--= speed / a / ms --> |
END
my $document = "Slower by 50<!--= speed / a / ms ÷ speed / b, also × 100 --> %, of 3 ms.\n";

sub write_copy
{
	my %files = ('README.md' => $readme, 'doc/a.md' => $document, 'bench/results/results.csv' => $results, @_);
	foreach my $file (keys %files)
	{
		open my $handle, '>', "$copy/$file" or die "$file: $!";
		print $handle $files{$file};
		close $handle or die "$file: $!";
	}
	return %files;
}

# check NAME, WHAT PYTHON SAYS, FILE => TEXT...: everything else as above
sub check
{
	my ($name, $says, @files) = @_;
	my %files = write_copy(@files);
	my ($status, $err) = figures($copy, '--check');
	like($err, $says, $name);
	is($status != 0, $err ne '', "$name: the status tells it");
	is(slurp_file("$copy/$_"), $files{$_}, "$name: nothing is written to $_") for 'README.md', 'doc/a.md';
}

check('what is right', qr/\A\z/);
check('a digit that differs', qr{\AREADME\.md:3: "1,235" should be "1,234"\z}, 'README.md' => $readme =~ s/1,234</1,235</r);
check('a row that is not there', qr{\Adoc/a\.md:1: 0 rows of results\.csv have "speed / c"\z}, 'doc/a.md' => $document =~ s{b, also}{c}r);
check('a mark that several rows have', qr{\Adoc/a\.md:1: 2 rows of results\.csv have "speed / a"\z}, 'doc/a.md' => $document =~ s{/ ms ÷}{÷}r);
check('a mark without a figure', qr{\Adoc/a\.md:1: no figure before the mark}, 'doc/a.md' => $document =~ s/50</half</r);
check('a sentence that is no longer true', qr{is -1234\.5: the sentence is no longer true\z},
	'README.md' => $readme =~ s{speed / b, also − speed / a / ms}{speed / a / ms − speed / b, also}r);
check('a figure without a mark', qr{\AREADME\.md:12: no mark after "3 \xc2\xb5s"\z}, 'README.md' => "$readme\nAnd 3 \xc2\xb5s.\n");
check('other results', qr/should be/, 'bench/results/results.csv' => $results =~ s/1234\.5/2000/r);

# Placed, the figures are those of the other results, and the rest is as it was.
($status, $wrong) = figures($copy);
is($wrong, '', 'figures are placed without a complaint');
is($status, 0, 'and the status says so');
is(slurp_file("$copy/README.md"),
	$readme =~ s/1,234<!--= speed \/ a/2,000<!--= speed \/ a/r =~ s/1\.2</2.0</r =~ s/1,234<!--= speed \/ b/469<!--= speed \/ b/r =~ s/1,234\.50/2,000.00/r,
	'they stand where the old ones stood');
($status, $wrong) = figures($copy, '--check');
is($wrong, '', 'now they are right');

done_testing();
