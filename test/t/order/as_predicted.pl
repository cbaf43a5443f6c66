# Random statements of four sessions: keys in every way, by every source, in transactions and
# savepoints that end in every way, with changes of settings, errors, and ends of sessions and of
# the server; under a clock that stands, steps, and moves with each reading.  Each gives the
# nanoseconds that the documents predict: the clock's or, if that is not ahead, the next one of the
# session; an array reads the clock once in 256; and the clock is read no more often than that.
#
#   TEST_SEED=n     the statements of an earlier run again (it printed its seed)
#   ORDER_STEPS=n   how many, for each of two servers

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RandomSeed;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

use constant CHUNK => 256;
my $steps = $ENV{ORDER_STEPS} // 1500;
my ($ms, $second, $day) = (1_000_000, 1_000_000_000, 86_400_000_000_000);
my $start = 1_800_000_000_000_000_000;
my $node = PostgreSQL::Test::Cluster->new('predicted');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'fast_uuid'
fast_uuid.source = 'xorshift128+'
log_statement = none
autovacuum = off
jit = off
});
my $known = KnownClock->new($node);
$known->put($start);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

# On which no nanosecond depends; but OpenSSL reads the clock.
my @settings = ("source = 'getrandom'", "source = 'urandom'", "source = 'xorshift128+'",
	'buffer_size = 0', 'buffer_size = 100', "buffer_size = '64kB'", "seed = ''", 'seed = 7');
my @counts = (1, 2, 43, 255, 256, 257, 512, 513, 1000);
my @moves = (1, 255, 1000, $ms, 500 * $ms, $second, $day);

# What the clock shows, and by how much each reading moves it; the sessions, and the one at hand,
# with its latest nanosecond, and how deep it is in a transaction.
my %clock = (ns => $start, move => 0);
my (@sessions, $s, %reached, @done);

sub set_clock
{
	%clock = (
		ns => pick($clock{ns} + pick(@moves), $clock{ns} - pick(@moves), $s->{last} + pick(-1 .. 1),
			$clock{ns} - $clock{ns} % $second + $second - pick(0 .. 2, 255 .. 257, 512, 513)),
		move => pick(0, 0, 0, 1, 100, 256, 10_000));
	$clock{ns} = $start if abs($clock{ns} - $start) > 100 * $day;
	return $known->put(@clock{qw(ns move)});
}

sub new_session
{
	my $session = { raw => RawSession->start($node), last => 0, level => 0 };
	$known->put(@clock{qw(ns move)});    # OpenSSL may have read it
	push @sessions, $session;
	return;
}

# The nanoseconds of as many keys as a reading of the clock serves, at most so many.
sub take
{
	my ($most) = @_;
	my $ns = $clock{ns};
	$clock{ns} += $clock{move};
	($ns, $most) = ($s->{last} + 1, 1) if $s->{last} >= $ns;
	$s->{last} = $ns + $most - 1;
	return $ns .. $s->{last};
}

sub take_array
{
	my ($count) = @_;
	my @ns;
	push @ns, take($count - @ns < CHUNK ? $count - @ns : CHUNK) while @ns < $count;
	return @ns;
}

# What a session can do: a statement, and what it gives; nothing, where it cannot.
my %steps = (
	'key' => sub {
		return 'SELECT ' . pick('uuidv7_fast()', "uuidv7_fast('urandom')", 'uuidv7_fast(NULL::text)'), sub { take(1) };
	},
	'shifted key' => sub {
		my $us = pick(0, 1, -1, -999_999, 86_400_000_000);
		return "SELECT uuidv7_fast(interval '$us us')", sub { (take(1))[0] + 1000 * $us };
	},
	'array' => sub {
		my $count = pick(@counts);
		return "SELECT unnest(uuidv7_fast_array($count))", sub { take_array($count) };
	},
	'many keys' => sub {
		my $count = pick(@counts);
		return "SELECT uuidv7_fast() FROM generate_series(1, $count)", sub { map { take(1) } 1 .. $count };
	},
	'error' => sub {
		return if $s->{level};
		return "SELECT uuidv7_fast(), 1 / (SELECT 0)", sub { 'division by zero' };
	},
	'unknown source' => sub { return $s->{level} ? () : ("SELECT uuidv7_fast('typo')", sub { 'unrecognized entropy source' }) },
	'setting' => sub { return 'SET fast_uuid.' . pick(@settings), sub { () } },
	'begin' => sub { return $s->{level} ? () : ('BEGIN', sub { $s->{level}++; () }) },
	'savepoint' => sub { return $s->{level} ? ('SAVEPOINT a', sub { $s->{level}++; () }) : () },
	'rollback to' => sub { return $s->{level} > 1 ? ('ROLLBACK TO a', sub { () }) : () },
	'end' => sub { return $s->{level} ? (pick('COMMIT', 'ROLLBACK'), sub { $s->{level} = 0; () }) : () });

# The first that does otherwise than is predicted ends the test, with what came before.
sub take_a_step
{
	$s = pick(@sessions);
	set_clock() if rand() < 0.4;
	my $what = pick(sort(keys %steps), ('key', 'array', 'many keys') x 2);
	my ($sql, $gives) = $steps{$what}->() or return;
	$reached{$what}++;
	my $behind = $clock{ns} <= $s->{last};
	my @want = $gives->();
	$reached{"$what, the clock behind"}++ if $behind;
	my $want = join "\n", @want;
	my $got = $s->{raw}->query($sql);
	$got = join "\n", map { /-/ ? KnownClock::ns_of($_) : $_ } split /\n/, $got;
	$got = $s->{raw}{error} =~ s/^\w{5} (division by zero|unrecognized entropy source).*/$1/sr if $s->{raw}{error} ne '';
	push @done, "session with $s->{last} at $clock{ns}: $sql";
	shift @done if @done > 30;

	# An error may come before the key or after it.
	if ($want =~ /^\D/)
	{
		$s->{raw}->query_safe("SET fast_uuid.source = 'xorshift128+'");
		@clock{qw(ns)} = ($known->now);
		my $key = KnownClock::ns_of($s->{raw}->query_safe('SELECT uuidv7_fast()'));
		$got = "not ascending after $s->{last}: $key" if $key <= $s->{last};
		$s->{last} = $key;
		$clock{ns} = $known->now;
	}
	return if $got eq $want && $known->now == $clock{ns};
	fail('each statement gives what is predicted');
	diag(join "\n", @done, "gives: $got", "predicted: $want", 'the clock: ' . $known->now, "predicted: $clock{ns}");
	$node->stop('immediate');
	done_testing();
	exit 1;
}

seed_random();
foreach my $server (1, 2)
{
	new_session() foreach 1 .. 4;
	foreach (1 .. $steps)
	{
		take_a_step();
		next if rand() > 0.01;
		@sessions = grep { $_ != $s || ($_->{raw}->quit && 0) } @sessions;
		new_session();
	}
	$_->{raw}->quit foreach splice @sessions;
	$node->stop($server == 1 ? 'immediate' : 'fast');
	$known->start($node) if $server == 1;
}
pass('each statement gives what is predicted');
is(join(', ', grep { !$reached{$_} } sort(keys %steps), map { "$_, the clock behind" } 'key', 'array', 'many keys'),
	'', 'all was reached');
done_testing();
