# Random statements of four sessions in two databases: keys, feed ids and positions in every
# way, observed ones, guarded rows, savepoints, prepared transactions, resets, watermarks, an
# upper bound of setval(), ends of sessions and of the server; under a clock that stands,
# steps, and moves with each reading.  Each gives what OrderModel.pm predicts, to the
# nanosecond; so do the statistics after each; and the clock is read as often.
#
#   TEST_SEED=n     the statements of an earlier run again (it printed its seed)
#   ORDER_STEPS=n   how many, for each of four incarnations of the server; in the last one
#                   more, until every kind of statement has come

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use OrderModel;
use RandomSeed;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $steps = $ENV{ORDER_STEPS} // 2500;

my ($ms, $second, $day) = (1_000_000, 1_000_000_000, 86_400_000_000_000);
my $start = 1_800_000_000_000_000_000;
my $node = PostgreSQL::Test::Cluster->new('predicted');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'fast_uuid'
fast_uuid.source = 'xorshift128+'
max_prepared_transactions = 5
synchronous_commit = off             # the upper bound outlives a crash all the same
wal_writer_delay = '10 s'
log_statement = none
autovacuum = off
jit = off
});
my $known = KnownClock->new($node);
$known->put($start);
$node->safe_psql('postgres', 'CREATE DATABASE second');
foreach my $database ('postgres', 'second')
{
	$node->safe_psql($database, q{
CREATE EXTENSION fast_uuid;
CREATE FUNCTION us_of(interval) RETURNS bigint LANGUAGE sql AS
	'SELECT (extract(epoch FROM $1) * 1000000)::bigint';
CREATE FUNCTION no_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'});
	foreach my $table ('by_id (id uuid)', 'by_number (id bigint)')
	{
		my ($name) = $table =~ /^(\w+)/;
		$node->safe_psql($database, qq{
CREATE TABLE $table;
CREATE TRIGGER a BEFORE INSERT ON $name FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE TRIGGER b BEFORE INSERT ON $name FOR EACH ROW EXECUTE FUNCTION no_row()});
	}
}

my @counts = (1, 2, 43, 255, 256, 257, 512, 513, 1000);
my @steps_of_clock =
  (1, 255, 1000, $ms, 500 * $ms - 1000, 500 * $ms, 600 * $ms, $second, $day);

# In milliseconds, as they are set.
my %limit = (-1 => -1, 0 => 0, '0ms' => 0, 1 => 1, '2000us' => 2, '24d' => 2_073_600_000);

# On which no nanosecond depends; but OpenSSL reads the clock.
my @settings = ("source = 'getrandom'", "source = 'urandom'", "source = 'xorshift128+'",
	'buffer_size = 0', 'buffer_size = 100', "buffer_size = '64kB'", "seed = ''", 'seed = 7');

my $latest = $start;               # that any session was given
my ($incarnation, @sessions);      # of the server
my $s;                             # the session at hand
my %base;                          # of its numbers of transactions that have ended

sub write_clock { return $known->put(@clock{qw(ns move)}) }

sub new_session
{
	my ($database) = @_;
	my $session = begin_session($database);
	$session->{raw} = RawSession->connect($node, database => $database);
	$session->{pid} = $session->{raw}->query_safe('SELECT pg_backend_pid()');
	write_clock();    # OpenSSL may have read it
	push @sessions, $session;
	return $session;
}

sub quit
{
	my ($session) = @_;
	$session->{raw}->quit;
	end_session($session);
	@sessions = grep { $_ != $session } @sessions;
	return;
}

# The greatest lead that the session at hand is allowed.
sub most
{
	my $limit = $s->{limit};
	return $limit < 0 ? $second : $limit > 0 ? $limit * $ms : $ms - 1;
}

sub set_clock
{
	$clock{ns} = pick(
		$clock{ns} + pick(@steps_of_clock),
		$clock{ns} - pick(@steps_of_clock),
		pick($s->{last}, $latest) - pick(0, most() - 1, most() - 1) + pick(-1 .. 1),
		$clock{ns} - $clock{ns} % $second + $second - pick(0 .. 2, 255 .. 257, 512, 513));
	$clock{ns} = $start if abs($clock{ns} - $start) > 100 * $day;
	$clock{move} = pick(0, 0, 0, 1, 100, 256, 10_000);
	return write_clock();
}

sub random_id
{
	my ($ns) = @_;
	return KnownClock::uuid_of($ns, pick(0, (1 << 54) - 1));
}

# To observe: up to what is allowed, and just beyond.
sub observable
{
	return pick($clock{ns}, $clock{ns}, $latest) + pick(0, most()) + pick(-1 .. 1);
}

# For the guard: what the transaction was given, or had reserved before that, or is next to it.
sub guarded
{
	my $ns = pick(@$s{qw(published first latest latest)}, pick($s->{last}, $latest));
	return ($ns || $clock{ns}) + pick(0, 0, 0, -1, 1);
}

# What a session can do: a statement, and what the model says that it gives; or nothing,
# where it cannot.
my %steps = (
	'key' => sub {
		my $call = pick('uuidv7_fast()', "uuidv7_fast('urandom')");
		return "SELECT $call", sub { take($s, 1) };
	},
	'shifted key' => sub {
		my $us = pick(0, 1, -1, -999_999, 86_400_000_000);
		return "SELECT uuidv7_fast(interval '$us us')", sub { (take($s, 1))[0] + 1000 * $us };
	},
	'array' => sub {
		my $count = pick(@counts);
		return "SELECT unnest(uuidv7_fast_array($count))", sub { take_array($s, $count) };
	},
	'many keys' => sub {
		my $count = pick(@counts);
		return "SELECT uuidv7_fast() FROM generate_series(1, $count)",
		  sub { map { take($s, 1) } 1 .. $count };
	},
	'feed' => sub {
		my $call = pick('id()', "id('urandom')", 'position()');
		return "SELECT uuidv7_feed_$call", sub { take_for_feed($s) };
	},
	'many for a feed' => sub {
		my $count = pick(@counts);
		return "SELECT uuidv7_feed_id() FROM generate_series(1, $count)",
		  sub { map { take_for_feed($s) } 1 .. $count };
	},
	'guard' => sub {
		my $ns = guarded();
		my ($table, $id) = pick([ 'by_number', $ns ], [ 'by_id', random_id($ns) ])->@*;
		return "INSERT INTO $table VALUES ('$id')", sub { guard($s, $ns, $table) };
	},
	'observe for a feed' => sub {
		my $ns = observable();
		my $call = pick("observe('" . random_id($ns) . "')", "position_observe($ns)");
		return "SELECT uuidv7_feed_$call", sub { observe_for_feed($s, $ns) };
	},
	'watermark' => sub {
		return q{SELECT uuidv7_feed_position_watermark() || ' ' || uuidv7_feed_watermark()},
		  sub { my $ns = watermark($s); "$ns " . KnownClock::uuid_of($ns, 0) };
	},
	'wait' => sub {
		return "SELECT uuidv7_feed_wait(0) - $base{ $s->{database} }", sub { count_ended($s) };
	},

	# In every other incarnation, and alone, because others make it wait.
	'reset' => sub {
		return if $incarnation % 2;
		my @others = grep { $_ != $s && $_->{joined} } @sessions;
		foreach my $other (@others)
		{
			quit($other);
			new_session($other->{database});
		}
		return 'SELECT uuidv7_feed_reset()', sub { reset_feed($s) };
	},
	'limit' => sub {
		my $limit = pick(sort keys %limit);
		return if $s->{level};
		return "SET fast_uuid.max_clock_lead = '$limit'",
		  sub { $s->{limit} = $limit{$limit}; () };
	},
	'setting' => sub { return 'SET fast_uuid.' . pick(@settings), sub { () } },
	'begin' => sub { return $s->{level} ? () : ('BEGIN', sub { $s->{level}++; () }) },
	'savepoint' => sub {
		return $s->{level} ? ('SAVEPOINT a', sub { $s->{level}++; () }) : ();
	},
	'rollback to' => sub {
		return $s->{level} < 2 ? () : ('ROLLBACK TO a', sub { $s->{failed} = 0; () });
	},
	'rollback' => sub { return $s->{level} ? ('ROLLBACK', sub { commit($s) }) : () },
	'commit' => sub { return $s->{level} ? ('COMMIT', sub { commit($s) }) : () },
	'prepare' => sub {
		my $name = pick(grep { !$prepared{$_} } map { "$s->{database} $_" } 1, 2);
		return if !$s->{level} || !$name;
		return "PREPARE TRANSACTION '$name'", sub { prepare($s, $name) };
	},
	'finish prepared' => sub {
		my $name = pick(grep { $prepared{$_} } map { "$s->{database} $_" } 1, 2);
		return if $s->{level} || !$name;
		return pick('COMMIT', 'ROLLBACK') . " PREPARED '$name'", sub { finish($name) };
	},

	# Five seconds ahead are allowed.  A call that is refused leaves all else as it was.
	'setval' => sub {
		return if $s->{level};
		my $ahead = pick(-1_000_000, 2_100_000, 5_000_000, 5_000_000, 90_000_000);
		my $us = int($clock{ns} / 1000) + $ahead;
		@clock{qw(ns move)} = (1000 * $us - 5 * $second - pick(0, 1), 0) if $ahead == 5_000_000;
		write_clock();
		$us = 1 if rand() < 0.1;
		my $ns = observable();
		my $observes = rand() < 0.5;
		my $call = $observes ? "position_observe($ns)" : 'id()';
		return "SELECT uuidv7_feed_$call FROM setval('fast_uuid_upper_bound', $us)", sub {
			set_bound($s, 1000 * $us);
			return $observes ? observe_for_feed($s, $ns) : take_for_feed($s);
		};
	});
my @choices = (sort(keys %steps), ('guard', 'feed') x 4, ('setval') x 3,
	('begin', 'prepare', 'reset', 'limit', 'key', 'watermark', 'wait') x 2);
my $stats = q{
SELECT concat_ws(' ', name, us_of(clock_lead), us_of(largest_clock_lead), held_back_by,
                 us_of(upper_bound - 'epoch'))
  FROM fast_uuid_stats()
UNION ALL SELECT 'locks ' || count(*) FROM pg_locks WHERE locktype = 'advisory'
                 OR relation = 'fast_uuid_upper_bound'::regclass AND mode = 'RowExclusiveLock'};

# What must come, so that a walk which tests nothing is noticed.  The last incarnation goes on
# until it has, for so many steps at most; the rarest comes about once in 3000.
my @must_come = (
	sort(keys %steps), 'key beyond the limit', 'array beyond the limit', 'feed 55000',
	'many for a feed 55000', 'setval 55000', 'observe for a feed 22023',
	'guard 23514', 'reset 25001', 'wait 25001');
my $enough = 50_000;
my %reached;

sub missing { return grep { !$reached{$_} } @must_come }

# The first that does otherwise than is predicted ends the test, with what came before.
my @done;

sub check
{
	my ($what, $sql, $gives) = @_;
	my ($error, @want) = statement($s, $gives) or return;
	my $want = $error eq '' ? join "\n", @want : "\Q$error\E.*";
	my @got = split /\n/, $s->{raw}->query($sql);
	@got = map { /-/ ? KnownClock::ns_of($_) : $_ } @got if $want =~ /^\d+$/m;
	my $got = $s->{raw}{error} || join "\n", @got;
	push @done, "$s->{pid} at $clock{ns}: $sql";
	$reached{$what} = 1;
	$reached{ "$what " . substr($error, 0, 5) } = 1;
	$latest = $want[-1] if $want =~ /\d{19}\z/;
	$reached{"$what beyond the limit"} = 1
	  if $s->{limit} >= 0 && $s->{last} - $clock{ns} > most() + 1000;
	return if $got =~ /\A$want\z/ && $known->now == $clock{ns};
	splice @done, 0, -40;
	fail('each statement gives what is predicted');
	diag(join "\n", @done, "gives: $got", "predicted: $want",
		'the clock: ' . $known->now, "predicted: $clock{ns}");
	$node->stop('immediate');
	done_testing();
	exit 1;
}

sub take_a_step
{
	$s = pick(@sessions);
	set_clock() if rand() < 0.4;
	my $what = $s->{failed} ? pick('rollback', 'rollback to') : pick(@choices);
	my ($sql, $gives) = $steps{$what}->() or return;
	check($what, $sql, $gives);

	# setval() in a statement that fails is flushed by whoever flushes next.
	$s->{raw}->query_safe('CHECKPOINT') if $sql =~ /setval/;
	check('statistics', $stats, sub { stats($s) }) unless $s->{failed};
	return if rand() > 0.01;
	quit($s);
	new_session($s->{database});
	return;
}

seed_random();
foreach (1 .. 4)
{
	$incarnation = $_;
	begin_server();
	new_session($_) foreach ('postgres') x 3, 'second';
	$s = $sessions[0];
	set_clock();
	foreach my $session (@sessions[ 0, -1 ])
	{
		$base{ $session->{database} } = $session->{raw}->query_safe('SELECT uuidv7_feed_wait(0)');
		statement($session, sub { count_ended($session) });
	}
	take_a_step() foreach 1 .. $steps;
	for (my $step = $steps; $incarnation == 4 && $step < $enough && missing(); $step++)
	{
		take_a_step();
	}
	$_->{raw}->quit foreach splice @sessions;
	$node->stop($incarnation % 2 ? 'immediate' : 'fast');
	$known->start($node) if $incarnation < 4;
}
pass('each statement gives what is predicted');
note(@done / 2 . ' statements');
is(join(', ', missing()), '', 'all was reached');
done_testing();
