# The 54 random bits of each source's values, by every function that makes
# them, look like independent fair bits; and the same tests find generators that
# are broken in one way each.
#
# Own tests of 200,000 values of each source.  False alarms: a sum of n fair bits
# is off by more than t standard deviations with a probability below
# 2 exp(-t^2 / 2) (Hoeffding), which for t = 8 and the 1645 sums of each of four
# sources is 2e-10 in total; the limits of the other parts add less than 1e-11.
#
# Then dieharder, where it is installed, on the stream that the same bits make.
# A test has failed where p is below 1e-6 and is so again with fresh values; for a
# sound generator that has a probability of 1e-12, and 1e-11 for the eight tests
# here.  Dieharder says FAILED above 1 - 1e-6 too, which does not count: with few
# samples its p, by Kolmogorov and Smirnov, comes out too high; its own generators
# AES_OFB and mt19937 "fail" so as well (dieharder -g 205 -d 102 -p 5).
#
#   DIEHARDER=full   the long list of tests, for script/statistics; off: none

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;

my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my $bits    = 54;
my $values  = 200_000;
my $limit   = 8;

my $module = getcwd() . '/test/modules/stat_pack';
BAIL_OUT("$module.so is not built: make test-modules") unless -e "$module.so";

my $node = PostgreSQL::Test::Cluster->new('statistics');
$node->init;
$node->append_conf('postgresql.conf', 'jit = off');
$node->start;
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION stat_pack(ids uuid[], cleared bigint, every integer) RETURNS bytea
  AS '$module' LANGUAGE C STRICT});

# The tails of a source's values, each as a number: a quarter by each function.
sub tails
{
	my ($source) = @_;
	my $quarter  = $values / 4;
	my $file     = $node->basedir . '/values';
	$node->safe_psql(
		'postgres', qq{
COPY (SELECT uuidv7_fast('$source') FROM generate_series(1, $quarter)
      UNION ALL SELECT uuidv7_fast_at('2001-09-09 01:46:40Z', '$source') FROM generate_series(1, $quarter)
      UNION ALL SELECT unnest(uuidv7_fast_array($quarter, '$source'))
      UNION ALL SELECT uuidv7_fast_set($quarter, '$source')) TO '$file' (FORMAT binary)});
	my $data = slurp_file($file);
	unlink($file);

	# A header of 19 bytes; before each value the number of columns and its length.
	my $mask = (1 << $bits) - 1;
	return map { $_ & $mask } unpack("x19(x14 Q>)$values", $data);
}

my @parts = ('balance', 'pairs', 'successors', 'repetitions', 'birthdays');

# Those of these parts of the test whose limits are exceeded, with their figures.
sub verdict
{
	my ($parts, @tails) = @_;
	my $n = @tails;
	my %figure;

	# How far a sum of bits, one a byte, is off, in standard deviations; the worst.
	my $sum = sub {
		my ($part, $string) = @_;
		my $off = abs(2 * ($string =~ tr/\x01//) - length $string) / sqrt(length $string);
		$figure{$part} = $off if $off > ($figure{$part} // 0);
	};

	# For each position the bits of all values.
	my $all = pack('Q<*', @tails);
	my @column;
	foreach my $skipped (0 .. 6)
	{
		my $byte = join '', unpack("(x$skipped a x" . (7 - $skipped) . ')*', $all);
		foreach my $bit (0 .. 7)
		{
			my $string = $byte & (chr(1 << $bit) x $n);
			$string =~ tr/\0/\1/c;
			push @column, $string;
		}
	}
	splice @column, $bits;

	my %calculate = (
		balance => sub { $sum->('balance', $_) foreach @column },
		pairs   => sub {
			foreach my $i (1 .. $#column) { $sum->('pairs', $column[$i] ^ $column[$_]) foreach 0 .. $i - 1 }
		},
		# Each bit and those of the next value at the same place and beside it.
		successors => sub {
			my @this = map { substr($_, 0, -1) } @column;
			my @next = map { substr($_, 1) } @column;
			foreach my $i (0 .. $#column)
			{
				$sum->('successors', $this[$i] ^ $next[$_]) foreach grep { $_ >= 0 && $_ < $bits } $i - 1 .. $i + 1;
			}
		},
		# Two tails are equal with a probability of 1e-6, two pairs of 1e-12.
		repetitions => sub {
			my %seen;
			$figure{repetitions} = grep { $seen{$_}++ } @tails;
		},
		# Birthday spacings (Marsaglia): of n birthdays in a year of 2^48 days, the
		# number of equal spacings follows Poisson's law with a mean of n^3 / 2^50
		# = 7.1; 40 and more have a probability of 1e-16.
		birthdays => sub {
			foreach my $shift (0, 3, 6)
			{
				my @days = sort { $a <=> $b } map { $_ >> $shift & (1 << 48) - 1 } @tails;
				my %seen;
				my $equal = grep { $seen{ $days[$_] - $days[ $_ - 1 ] }++ } 1 .. $#days;
				$figure{birthdays} = $equal if $equal > ($figure{birthdays} // 0);
			}
		});
	my %limit = (repetitions => 1, birthdays => 39);

	$calculate{$_}->() foreach @$parts;
	note(join ', ', map { sprintf '%s %.1f', $_, $figure{$_} } @$parts);
	return join ', ', grep { $figure{$_} > ($limit{$_} // $limit) } @$parts;
}

my @good;

foreach my $source (@sources)
{
	@good = tails($source);
	is(verdict(\@parts, @good), '', "$source: $values times 54 bits, balanced, independent, without repetition");
}

# Generators that are broken, made of good values.
my %broken = (
	'the low 32 bits are stuck' =>
	  [ 'balance', sub { $_[0] & ~((1 << 32) - 1) } ],
	'one bit is 1 in 52 of 100 values' =>
	  [ 'balance', sub { $_[1] % 25 ? $_[0] : $_[0] | 1 << 40 } ],
	'53 bits are random' =>
	  [ 'balance', sub { $_[0] & ~(1 << 53) } ],
	'one bit repeats another in 5 of 100 values' =>
	  [ 'pairs', sub { $_[1] % 20 ? $_[0] : $_[0] & ~(1 << 30) | ($_[0] >> 7 & 1) << 30 } ],
	'one bit repeats that of the value before in 5 of 100 values' =>
	  [ 'successors', sub { $_[1] % 20 ? $_[0] : $_[0] & ~(1 << 11) | $good[ $_[1] - 1 ] & 1 << 11 } ],
	'every 4096 values the tail is the same' =>
	  [ 'repetitions', sub { $_[1] % 4096 ? $_[0] : $good[0] } ],
	'the last word of every 512 is zero' =>
	  [ 'repetitions', sub { $_[1] % 512 == 511 ? 0 : $_[0] } ],
	'one fill of 512 is handed out twice' =>
	  [ 'repetitions', sub { $_[1] >= 1024 && $_[1] < 1536 ? $good[ $_[1] - 512 ] : $_[0] } ],
	'the values are equally spaced' =>
	  [ 'birthdays', sub { use integer; $_[1] * 8505474961803901 & (1 << 54) - 1 } ]);
foreach my $what (sort keys %broken)
{
	my ($part, $break) = @{ $broken{$what} };
	is(verdict([$part], map { $break->($good[$_], $_) } 0 .. $#good), $part, "found by $part: $what");
}

# Dieharder.

my @quick = (map { [ '-d', $_, '-p', 20 ] } 0, 100);
my @full = (
	(map { [ '-d', $_ ] } 0 .. 4, 8 .. 13, 15, 16, 100, 101),
	[ '-d', 102, '-n', 8 ],
	(map { [ '-d', 200, '-n', $_ ] } 1, 2, 8),
	[ '-d', 202, '-n', 5 ],
	[ '-d', 203, '-n', 8 ],
	(map { [ '-d', $_ ] } 204 .. 209));
my $full  = ($ENV{DIEHARDER} // '') eq 'full';
my @tests = $full ? @full : @quick;

# Passes on the packed tails alone: without the header of COPY, and without the
# number of columns and the length before each row.
my $values_a_row = 32768;
my $row_size     = $values_a_row * $bits / 8;
my $filter       = $node->basedir . '/filter.pl';
append_to_file(
	$filter, "binmode STDIN; binmode STDOUT; read STDIN, \$_, 19;\n"
	  . "while ((read(STDIN, \$_, 6 + $row_size) // 0) == 6 + $row_size) { print substr(\$_, 6) or exit }\n");

# Lines of dieharder's table for one test of an endless stream.
sub dieharder
{
	my ($source, $cleared, $every, @test) = @_;
	my $table = $node->basedir . '/dieharder';

	# The server's COPY ends with an error when dieharder has had enough.
	$node->psql(
		'postgres', qq{
COPY (SELECT stat_pack(uuidv7_fast_array($values_a_row, '$source'), $cleared, $every)
        FROM (SELECT generate_series(1, 1000000000)) AS rows)
  TO PROGRAM 'perl $filter | dieharder -g 200 @test > $table' (FORMAT binary)});
	my $out   = slurp_file($table);
	my @lines = grep { /\|\s*(PASSED|WEAK|FAILED)\s*$/ } split /\n/, $out;
	diag("dieharder @test: no result: $out") unless @lines;
	return @lines;
}

# Do all tests of that kind pass, or pass when those that fail are repeated?
sub passes
{
	my ($source, $cleared, $every, @test) = @_;
	foreach my $try (1, 2)
	{
		my @lines = dieharder($source, $cleared, $every, @test);
		my $stream = $cleared ? "$source, broken" : $source;
		$full ? diag("$stream: $_") : note("$stream: $_") foreach @lines;
		return 0 unless @lines;
		return 1 unless grep { (split /\|/)[4] < 1e-6 } @lines;
	}
	return 0;
}

# The digits that a given time has not, below the microsecond, are drawn apart: no ten
# of the random bits give them.  By chance two of 2000 values agree at a place; more
# than 30 do so once in 10^24 runs.
{
	my @ids = split /\n/, $node->safe_psql('postgres', "SELECT uuidv7_fast_at('2001-09-09 01:46:40Z') FROM generate_series(1, 2000)");
	my %agree;
	foreach my $id (@ids)
	{
		my $below = KnownClock::ns_of($id) % 1000;
		my $tail  = hex(substr($id, 19, 4) . substr($id, 24)) & (1 << $bits) - 1;
		$agree{$_} += (($tail >> $_ & 0x3FF) * 1000 >> 10) == $below foreach 0 .. $bits - 10;
	}
	is(join(' ', grep { $agree{$_} > 30 } sort keys %agree), '', 'the digits below a given microsecond are none of the random bits');
	cmp_ok(scalar(keys %{ { map { KnownClock::ns_of($_) % 1000 => 1 } @ids } }), '>', 800, '... and are random');
}

SKIP:
{
	skip 'DIEHARDER=off', 1 if ($ENV{DIEHARDER} // '') eq 'off';
	skip 'dieharder is not installed', 1 unless grep { -x "$_/dieharder" } split /:/, $ENV{PATH};
	foreach my $test (@tests)
	{
		ok(passes($_, 0, 1, @$test), "dieharder @$test: $_") foreach @sources;
	}
	ok(!passes('openssl', (1 << 32) - 1, 1, @{ $quick[0] }), 'dieharder birthdays: the low 32 bits are stuck');
	ok(!passes('openssl', 1, 4, @{ $quick[1] }), 'dieharder monobit: one bit is 1 in 3 of 8 values');
}

$node->stop('fast');
done_testing();
