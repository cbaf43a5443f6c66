# Random statements of four sessions in two databases: keys in every way, feed ids and
# positions, observed ones, limits of the lead, guarded rows, savepoints, errors, cursors,
# prepared transactions, resets, watermarks, an upper bound of setval(), ends of sessions and
# of the server; under a clock that stands, steps, and moves
# with each reading.  Each gives what OrderModel.pm predicts, to the nanosecond; so do the
# statistics after each; and the clock is read as often.
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
my $node  = PostgreSQL::Test::Cluster->new('predicted');
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
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql($_, q{
CREATE EXTENSION fast_uuid;
CREATE TABLE by_id (id uuid);
CREATE TABLE by_number (id bigint);
CREATE FUNCTION no_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
CREATE TRIGGER a_guard BEFORE INSERT ON by_id FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE TRIGGER a_guard BEFORE INSERT ON by_number FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE TRIGGER b BEFORE INSERT ON by_id FOR EACH ROW EXECUTE FUNCTION no_row();
CREATE TRIGGER b BEFORE INSERT ON by_number FOR EACH ROW EXECUTE FUNCTION no_row();
CREATE FUNCTION us_of(interval) RETURNS bigint LANGUAGE sql AS
	'SELECT (extract(epoch FROM $1) * 1000000)::bigint'}) foreach 'postgres', 'elsewhere';

# In milliseconds, and as they are set.
my %limit = (-1 => -1, 0 => 0, '0ms' => 0, 1 => 1, '2000us' => 2, '24d' => 2_073_600_000);

# On which no nanosecond depends; but OpenSSL reads the clock.
my %no_matter = (source => [ 'getrandom', 'urandom', 'xorshift128+' ], buffer_size => [ 0, 100, '64kB' ], seed => [ '', 7 ]);
my @counts = (1, 2, 43, 255, 256, 257, 512, 513, 1000);
my @steps_of_clock = (1, 255, 1000, $ms, 500 * $ms - 1000, 500 * $ms, 600 * $ms, $second, $day);
my $latest = $start;               # that any session was given
my ($incarnation, @sessions);      # of the server
my $s;                             # the session at hand
my %base;                          # of its numbers of transactions that have ended

sub pick { return $_[ rand @_ ] }

sub new_session
{
	my ($database) = @_;
	my $session = begin_session($database);
	$session->{raw} = RawSession->connect($node, user => scalar(getpwuid $>), database => $database);
	$session->{pid} = $session->{raw}->query_safe('SELECT pg_backend_pid()');
	$known->write(@clock{qw(ns move)});    # OpenSSL may have read it
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
	my $limit = $s->{settings}{max_clock_lead};
	return $limit < 0 ? $second : $limit > 0 ? $limit * $ms : $ms - 1;
}

sub set_clock
{
	$clock{ns} = pick(
		$clock{ns} + pick(@steps_of_clock), $clock{ns} - pick(@steps_of_clock),
		pick($s->{last}, $latest) - pick(0, most() - 1, most() - 1) + pick(-1 .. 1),
		$clock{ns} - $clock{ns} % $second + $second - pick(0 .. 2, 255 .. 257, 512, 513));
	$clock{ns} = $start if abs($clock{ns} - $start) > 100 * $day;
	$clock{move} = pick(0, 0, 0, 1, 100, 256, 10_000);
	$known->write(@clock{qw(ns move)});
	return;
}

sub in_turn { return map { take($s, 1) } 1 .. $_[0] }

sub draw_observed
{
	my $ns = pick($clock{ns}, $clock{ns}, $latest) + pick(0, most()) + pick(-1 .. 1);
	return [ $ns, KnownClock::uuid_of($ns, pick(0, (1 << 54) - 1)) ];
}

sub draw_setting
{
	my $local = @{ $s->{levels} } && rand() < 0.5 ? 'LOCAL ' : '';
	my $name = pick(sort keys %no_matter, ('max_clock_lead') x 3);
	my $value = pick($no_matter{$name} ? @{ $no_matter{$name} } : sort keys %limit);
	return [ [ $name, $limit{$value} // $value, $local ], "${local}fast_uuid.$name = '$value'" ];
}

# What the transaction was given, or had reserved before that, or what is next to it.
sub draw_guarded
{
	my $ns = pick(@$s{qw(published first latest latest)}, pick($s->{last}, $latest)) || $clock{ns};
	$ns += pick(0, 0, 0, -1, 1);
	return [ [ $ns, 'by_number' ], "by_number VALUES ($ns)" ] if rand() < 0.5;
	return [ [ $ns, 'by_id' ], "by_id VALUES ('" . KnownClock::uuid_of($ns, pick(0, (1 << 54) - 1)) . "')" ];
}

# In every other incarnation; whoever resets the feed is alone in it.
sub draw_reset
{
	return undef if $incarnation % 2;
	my @others = may_reset($s) ? () : grep { $_ != $s && $_->{joined} } @sessions;
	foreach my $other (@others)
	{
		quit($other);
		new_session($other->{database});
	}
	return '';
}

sub draw_prepared
{
	my ($is_there) = @_;
	return pick(grep { is_prepared($_) == $is_there } map { "$s->{database} $_" } 1, 2);
}

# Five seconds ahead are allowed.
sub draw_bound
{
	my $ahead = pick(-1_000_000, 2_100_000, 5_000_000, 5_000_000, 90_000_000);
	my $us = int($clock{ns} / 1000) + $ahead;
	@clock{qw(ns move)} = (1000 * $us - 5 * $second - pick(0, 1), 0) if $ahead == 5_000_000;
	$known->write(@clock{qw(ns move)});
	return rand() < 0.1 ? 1 : $us;
}

# A call at which that is too far ahead leaves everything else as it was.
sub draw_bound_and_observed
{
	my $us = int($clock{ns} / 1000) + pick(-1_000_000, 90_000_000);
	my ($ns, $id) = @{ draw_observed() };
	return [ [ $us, $ns ], "$us), uuidv7_feed_observe('$id" ];
}

my $generate_and_reset = 'uuidv7_feed_reset() FROM uuidv7_feed_id() AS id WHERE id IS NOT NULL';

# What a session can do: how often, in the mean; with how many levels of its transaction, the
# savepoints and that itself; the statement; what is drawn for it, if it can be; what it gives.
my @steps = (
	[ 3, 0, 9, 'SELECT uuidv7_fast()', undef, sub { take($s, 1) } ],
	[ 1, 0, 9, "SELECT uuidv7_fast('urandom')", undef, sub { take($s, 1) } ],
	[ 1, 0, 9, "SELECT uuidv7_fast(interval '%s us')",
		sub { pick(0, 1, -1, -999_999, 86_400_000_000) }, sub { (take($s, 1))[0] + 1000 * $_[0] } ],
	[ 2, 0, 9, 'SELECT unnest(uuidv7_fast_array(%s))', sub { pick(@counts) },
		sub { take_array($s, $_[0]) } ],
	[ 2, 0, 9, 'SELECT uuidv7_fast_set(%s)', sub { pick(@counts) }, \&in_turn ],
	[ 3, 0, 9, 'SELECT uuidv7_feed_id()', undef, sub { take_for_feed($s) } ],
	[ 1, 0, 9, "SELECT uuidv7_feed_id('urandom')", undef, sub { take_for_feed($s) } ],
	[ 2, 0, 9, 'SELECT uuidv7_feed_position()', undef, sub { take_for_feed($s) } ],
	[ 2, 0, 9, 'SELECT uuidv7_feed_id() FROM generate_series(1, %s)', sub { pick(@counts) },
		sub { map { take_for_feed($s) } 1 .. $_[0] } ],
	[ 1, 0, 9, q{DO $$ BEGIN PERFORM uuidv7_feed_id(); PERFORM 1 / 0; EXCEPTION
		WHEN OTHERS THEN NULL; END $$}, undef, sub { eval { take_for_feed($s) }; () } ],
	[ 8, 0, 9, 'INSERT INTO %s', \&draw_guarded, sub { guard($s, @{ $_[0] }) } ],
	[ 3, 1, 1, 'DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)',
		sub { defined $s->{cursor} ? undef : '' }, sub { $s->{cursor} = 1000; () } ],
	[ 4, 1, 1, 'FETCH %s FROM c', sub { pick(grep { $_ <= ($s->{cursor} // 0) } 1, 2, 255, 256) },
		sub { $s->{cursor} -= $_[0]; in_turn(@_) } ],
	[ 2, 0, 9, "SELECT fast_uuid_observe('%s')", \&draw_observed, sub { observe($s, $_[0]) } ],
	[ 1, 0, 9, "SELECT uuidv7_feed_observe('%s')", \&draw_observed, sub { observe_for_feed($s, $_[0]) } ],
	[ 1, 0, 9, 'SELECT uuidv7_feed_position_observe(%s)', sub { draw_observed()->[0] },
		sub { observe_for_feed($s, $_[0]) } ],
	[ 2, 0, 9, q{SELECT concat_ws(' ', uuidv7_feed_watermark(), uuidv7_feed_position_watermark())}, undef,
		sub { my $ns = watermark($s); KnownClock::uuid_of($ns, 0) . " $ns" } ],
	[ 1, 0, 9, "SELECT uuidv7_feed_wait(0) - %s", sub { $base{ $s->{database} } }, sub { count_ended($s) } ],
	[ 1, 0, 9, 'SELECT fast_uuid_reset_ordering()', undef, sub { reset_keys($s) } ],
	[ 3, 0, 9, 'SELECT uuidv7_feed_reset()', \&draw_reset, sub { reset_feed($s) } ],
	[ 1, 0, 9, "SELECT $generate_and_reset", undef, sub { take_for_feed($s); reset_feed($s) } ],
	[ 3, 0, 9, q{SELECT uuidv7_feed_position_watermark() FROM (SELECT uuidv7_feed_watermark() AS w OFFSET 0) AS one,
		LATERAL (SELECT uuidv7_feed_reset() WHERE w IS NOT NULL OFFSET 0) AS two}, \&draw_reset,
		sub { watermark($s); reset_feed($s); watermark($s) } ],
	[ 2, 0, 9, 'SELECT uuidv7_feed_id() FROM uuidv7_feed_reset()', \&draw_reset,
		sub { reset_feed($s); take_for_feed($s) } ],
	[ 3, 0, 9, 'SET %s', \&draw_setting, sub { set($s, @{ $_[0] }) } ],
	[ 1, 0, 9, 'SELECT 1 / 0', undef, sub { die "22012 division by zero|\n" } ],
	[ 3, 0, 0, 'BEGIN%s', sub { pick('', ' READ ONLY') }, sub { begin($s, $_[0]) } ],
	[ 2, 1, 9, 'SAVEPOINT a', undef, sub { begin($s) } ],
	[ 1, 2, 9, 'RELEASE a', undef, sub { release($s) } ],
	[ 1, 2, 9, 'ROLLBACK TO a', undef, sub { roll_back_to($s) } ],
	[ 1, 1, 9, 'ROLLBACK', undef, sub { roll_back($s) } ],
	[ 1, 1, 9, 'COMMIT', undef, sub { commit($s) } ],
	[ 3, 1, 9, "PREPARE TRANSACTION '%s'", sub { draw_prepared(0) }, sub { prepare($s, $_[0]) } ],
	[ 1, 0, 0, "COMMIT PREPARED '%s'", sub { draw_prepared(1) }, sub { finish($_[0]) } ],
	[ 1, 0, 0, "ROLLBACK PREPARED '%s'", sub { draw_prepared(1) }, sub { finish($_[0]) } ],
	[ 1, 0, 0, "SELECT uuidv7_feed_id() FROM setval('fast_uuid_upper_bound', %s)", \&draw_bound,
		sub { set_bound($s, 1000 * $_[0]); take_for_feed($s) } ],
	[ 3, 0, 0, "SELECT setval('fast_uuid_upper_bound', %s')", \&draw_bound_and_observed,
		sub { my ($us, $ns) = @{ $_[0] }; set_bound($s, 1000 * $us); observe_for_feed($s, $ns); $us } ]);
my $stats = q{
SELECT concat_ws(' ', name, us_of(clock_lead), us_of(largest_clock_lead), held_back_by,
                 us_of(upper_bound - 'epoch'))
  FROM fast_uuid_stats()
UNION ALL SELECT 'locks ' || count(*) FROM pg_locks WHERE locktype = 'advisory'
                 OR relation = 'fast_uuid_upper_bound'::regclass AND mode = 'RowExclusiveLock'};

# What must come, so that a walk which tests nothing is noticed.  The last incarnation goes on
# until it has, for so many steps at most; the rarest comes about once in 3000.
my @errors = (
	(map { "SELECT $_" } 'uuidv7_fast()55000', 'unnest(uuidv7_fast_array(%s))55000', 'uuidv7_fast_set(%s)55000',
		'uuidv7_feed_id()55000', 'uuidv7_feed_position()55000', "fast_uuid_observe('%s')22023",
		"uuidv7_feed_observe('%s')22023", 'uuidv7_feed_position_observe(%s)22023', "${generate_and_reset}25001",
		'uuidv7_feed_reset()25001', 'uuidv7_feed_wait(0) - %s25001'),
	'INSERT INTO %s23514', 'INSERT INTO %s25006');
my $enough = 50_000;
my %reached;

sub missing { return grep { !$reached{$_} } @errors, map { $_->[3] } @steps }

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
	$reached{$_} = 1 foreach $what, $what . substr($error, 0, 5);
	$latest = $want[-1] if $want =~ /\d{19}\z/;
	return if $got =~ /\A$want\z/ && $known->now == $clock{ns};
	splice @done, 0, -40;
	fail('each statement gives what is predicted');
	diag(join "\n", @done, "gives: $got", "predicted: $want", 'the clock: ' . $known->now, $clock{ns});
	$node->stop('immediate');
	done_testing();
	exit 1;
}

my @choices = map { ($_) x $_->[0] } @steps;
seed_random();
foreach (1 .. 4)
{
	$incarnation = $_;
	begin_server();
	new_session($_) foreach ('postgres') x 3, 'elsewhere';
	$s = $sessions[0];
	set_clock();
	foreach my $session (@sessions[ 0, -1 ])
	{
		$base{ $session->{database} } = $session->{raw}->query_safe('SELECT uuidv7_feed_wait(0)');
		statement($session, sub { count_ended($session) });
	}
	for (my $step = 0; $step < $steps || $incarnation == 4 && $step < $enough && missing(); $step++)
	{
		$s = pick(@sessions);
		set_clock() if rand() < 0.4;
		my ($from, $to, $sql, $draw, $gives) = @{ pick(@choices) }[ 1 .. 5 ];
		my $level = @{ $s->{levels} };
		next if $level < $from || $level > $to || $s->{failed} && $sql !~ /^ROLLBACK/;
		my $drawn = $draw ? $draw->() : '';
		next unless defined $drawn;
		my ($value, $text) = ref $drawn ? @$drawn : ($drawn, $drawn);
		check($sql, $sql =~ s/%s/$text/r, sub { $gives->($value) });

		# setval() in a statement that fails is flushed by whoever flushes next.
		$s->{raw}->query_safe('CHECKPOINT') if $sql =~ /setval/;
		check('', $stats, sub { stats($s) }) unless $s->{failed};
		next if rand() > 0.01;
		quit($s);
		new_session($s->{database});
	}
	$_->{raw}->quit foreach splice @sessions;
	$node->stop($incarnation % 2 ? 'immediate' : 'fast');
	$known->start($node) if $incarnation < 4;
}
pass('each statement gives what is predicted');
is(join(', ', missing()), '', 'all was reached');
done_testing();
