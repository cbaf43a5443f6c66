# script/bench: what cannot be measured is refused at once, in a sentence, and what
# is no full run does not take the place of the report.

use strict;
use warnings;

use Cwd;
use PostgreSQL::Test::Utils;
use Test::More;

my $results = getcwd() . '/bench/results';
my @names   = slurp_file('bench/experiments.py') =~ /^ALL = \[(.*?)\]$/ms ? $1 =~ /\w+/g : ();
cmp_ok(scalar @names, '>', 5, 'the experiments are known');

foreach my $case (
	[ 'an experiment that is none', qr/there is no experiment "typo"; there are: \Q@{[ join ', ', @names ]}\E$/m, '--only', 'typo' ],
	[ 'the end of a name',          qr/there is no experiment "call";/, '--only', 'requests', '--only', 'call' ],
	[ 'two names as one',           qr/there is no experiment "requests, statements";/, '--only', 'requests, statements' ],
	[ 'no rounds',                  qr/--rounds needs a whole number above 0, not "0"$/m, '--rounds', '0' ],
	[ 'rounds that are no number',  qr/--rounds needs a whole number above 0, not "many"$/m, '--rounds', 'many' ],
	[ 'an output that is no directory', qr/\S+Makefile is no directory$/m, '--output', 'Makefile' ],
	[ 'an output below a file', qr/\S+Makefile\/new cannot be written: \S+Makefile is no directory that you may write to$/m, '--dry-run', '--output', 'Makefile/new' ],
	[ 'a report of nothing', qr/\S+ has no results.csv to draw a report from$/m, '--report', '--output', PostgreSQL::Test::Utils::tempdir() ],
	[ 'a part, compared with a commit', qr/--against takes --rounds alone$/m, '--against', 'HEAD', '--only', 'requests' ],
	map { ([ "$_ without its value", qr/$_ needs a (?:value: [A-Z]+|whole number above 0)$/m, $_ ], [ "$_ before another option", qr/$_ needs a (?:value: [A-Z]+|whole number above 0)$/m, $_, '--here' ]) }
	qw(--rounds --only --function --setup --package --output --against --cache))
{
	my ($name, $sentence, @arguments) = @$case;
	my ($out, $err) = run_command([ 'script/bench', @arguments ]);
	isnt($?, 0, "$name: an error") or next;
	like($err, qr{^\n?script/bench: $sentence}, "$name: a sentence");
	is($out . $err =~ s{\A\n?script/bench: .*(\n"script/bench --help" says what there is\.)?}{}r, '', "$name: nothing else");
}

{
	local $ENV{TMPDIR} = '/no/such/directory';
	my ($out, $err) = run_command([ 'script/bench', '--dry-run', '--only', 'bulk' ]);
	like($err, qr{\Ascript/bench: TMPDIR=/no/such/directory is no directory that you may write to: name another, or use --output\n}, 'nowhere to put a part: a sentence');
	is($out, '', 'nowhere to put a part: nothing is measured');
	($out, $err) = run_command([ 'script/bench', '--dry-run', '--only', 'bulk', '--output', 'bench/new' ]);
	is($err, '', 'a part has a place of its own: no error');
}

foreach my $case (
	[ 'all', qr/^experiments: all; rounds: 11; report: \Q$results\E$/ ],
	[ 'all, with another generator', qr/^experiments: all; rounds: 11; report: \Q$results\E$/, '--function', 'other()' ],
	[ 'a part', qr/^experiments: bulk horizon; rounds: 11; report: a new directory below \S+$/, '--only', 'bulk', '--only', 'horizon' ],
	[ 'few rounds', qr/^experiments: all; rounds: 3; report: a new directory below \S+$/, '--rounds', '3' ],
	[ 'a part, where it was asked for', qr/^experiments: bulk; rounds: 11; report: \Q$results\E$/, '--only', 'bulk', '--output', 'bench/results' ],
	[ 'a report drawn again', qr/rounds: 11; report: \Q$results\E$/, '--report' ],
	[ 'a commit', qr/^this checkout against HEAD~3; rounds: 11; report: none$/, '--against', 'HEAD~3' ])
{
	my ($name, $what, @arguments) = @$case;
	my ($out, $err) = run_command([ 'script/bench', '--dry-run', @arguments ]);
	like($out, $what, "$name: what is measured, and where the report will be");
	is($err, '', "$name: no error");
}

SKIP:
{
	my $python = '/usr/bin/python3';
	skip 'there is no Python', 3 unless -x $python;

	# Without the module that connects to a server.
	my $rounds = q{
import sys, types
sys.path.insert(0, 'bench')
sys.modules['psycopg'] = types.ModuleType('psycopg')
import experiments, run
from results import Results
options = types.SimpleNamespace(function=[], seconds=1, rounds=2)
bench = run.Bench(options, Results())
print(list(bench.rounds('one')), list(bench.rounds('many', times=2)))
print(','.join(one.__name__ for one in experiments.ALL))
};
	my ($out, $err) = run_command([ $python, '-B', '-c', $rounds ]);
	is($err, '', 'the rounds of the benchmark: no error');
	like($out, qr/^one: warming up\none: round 1 of 2\none: round 2 of 2\nmany: warming up\nmany: round 1 of 2\nmany: round 2 of 2\n\[0, 1, 2\] \[0, 1, 2, 3, 4\]$/m,
		'they are counted from one, after one that warms up');
	like($out, qr/^\Q@{[ join ',', @names ]}\E$/m, 'the names are those that Python knows');
}

done_testing();
