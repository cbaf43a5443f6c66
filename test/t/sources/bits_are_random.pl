# The 54 random bits of each source's values look like independent fair bits to
# dieharder, on the stream that they make one after the other; and the same tests find
# generators that are broken.
#
# A test has failed where p is below 1e-6 and is so again with fresh values; for a
# sound generator that has a probability of 1e-12, and 2e-11 for all the tests here.
# Dieharder says FAILED above 1 - 1e-6 too, which does not count: with few samples its
# p, by Kolmogorov and Smirnov, comes out too high; its own generators AES_OFB and
# mt19937 "fail" so as well (dieharder -g 205 -d 102 -p 5).
#
#   DIEHARDER=full   the long list of tests, which takes 20 minutes

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;

my @sources = ('openssl', 'getrandom', 'urandom', 'xorshift128+');
my $module  = getcwd() . '/test/modules/stat_pack';
my $node    = PostgreSQL::Test::Cluster->new('statistics');
$node->init;
$node->append_conf('postgresql.conf', 'jit = off');
$node->start;
$node->safe_psql(
	'postgres', qq{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION stat_pack(ids uuid[], cleared bigint, every integer) RETURNS bytea
  AS '$module' LANGUAGE C STRICT});

# The digits that a given time has not, below the microsecond, are drawn apart: no ten
# of the random bits give them.  By chance two of 2000 values agree at a place; more
# than 30 do so once in 10^24 runs.
{
	my @ids = split /\n/, $node->safe_psql('postgres', "SELECT uuidv7_fast_at('2001-09-09 01:46:40Z') FROM generate_series(1, 2000)");
	my %agree;
	foreach my $id (@ids)
	{
		my $below = KnownClock::ns_of($id) % 1000;
		my $tail  = hex(substr($id, 19, 4) . substr($id, 24)) & (1 << 54) - 1;
		$agree{$_} += (($tail >> $_ & 0x3FF) * 1000 >> 10) == $below foreach 0 .. 44;
	}
	is(join(' ', grep { $agree{$_} > 30 } sort keys %agree), '', 'the digits below a given microsecond are none of the random bits');
	cmp_ok(scalar(keys %{ { map { KnownClock::ns_of($_) % 1000 => 1 } @ids } }), '>', 800, '... and are random');
}

# Birthday spacings, bits, and all patterns of up to eight bits.
my @quick = ((map { [ '-d', $_, '-p', 20 ] } 0, 100), [ '-d', 102, '-n', 8, '-p', 5 ]);
my @full = (
	(map { [ '-d', $_ ] } 0 .. 4, 8 .. 13, 15, 16, 100, 101),
	[ '-d', 102, '-n', 8 ],
	(map { [ '-d', 200, '-n', $_ ] } 1, 2, 8),
	[ '-d', 202, '-n', 5 ],
	[ '-d', 203, '-n', 8 ],
	(map { [ '-d', $_ ] } 204 .. 209));
my $full = ($ENV{DIEHARDER} // '') eq 'full';

# Passes on the packed tails alone: without the header of COPY, and without the
# number of columns and the length before each row.
my $values_a_row = 32768;
my $row_size     = $values_a_row * 54 / 8;
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

SKIP:
{
	skip 'dieharder is not installed', 1 unless grep { -x "$_/dieharder" } split /:/, $ENV{PATH};
	foreach my $test ($full ? @full : @quick)
	{
		ok(passes($_, 0, 1, @$test), "dieharder @$test: $_") foreach @sources;
	}
	ok(!passes('openssl', (1 << 32) - 1, 1, @{ $quick[0] }), 'dieharder birthdays: the low 32 bits are stuck');
	ok(!passes('openssl', 1, 4, @{ $quick[1] }), 'dieharder monobit: one bit is 1 in 3 of 8 values');
}

$node->stop('fast');
done_testing();
