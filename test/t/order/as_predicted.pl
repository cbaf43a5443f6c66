# Random statements of four sessions in two databases: settings, UUIDs in every way, observed
# ones, savepoints, errors, cursors, prepared transactions, resets, watermarks, an upper bound
# of setval(), ends of sessions and of the server; under a clock that stands, steps, and moves
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
fast_uuid.source = 'xorshift128+'    # OpenSSL reads the clock
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
CREATE FUNCTION in_instance_order() RETURNS uuid LANGUAGE plpgsql
	SET fast_uuid.ordering = 'instance' AS 'BEGIN RETURN uuidv7_fast(); END';
CREATE FUNCTION reset_instance_order() RETURNS void LANGUAGE plpgsql
	SET fast_uuid.ordering = 'instance' AS 'BEGIN PERFORM fast_uuid_reset_ordering(); END';
CREATE FUNCTION us_of(interval) RETURNS bigint LANGUAGE sql AS
	'SELECT (extract(epoch FROM $1) * 1000000)::bigint'}) foreach 'postgres', 'elsewhere';
my @orders = ('session', 'instance', $node->pg_version >= 17 ? 'durable' : ());

# In milliseconds, and as they are set.
my %limit = (-1 => -1, 0 => 0, '0ms' => 0, 1 => 1, '2000us' => 2, '24d' => 2_073_600_000);
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
	return [ $ns, uuid($ns, pick(0, (1 << 54) - 1)) ];
}

sub draw_setting
{
	my $name = pick('ordering', 'required_ordering', 'max_clock_lead', 'max_clock_lead');
	my $local = @{ $s->{levels} } && rand() < 0.5 ? 'LOCAL ' : '';
	my $value = pick($name eq 'max_clock_lead' ? sort keys %limit : @orders);
	return [ [ $name, $limit{$value} // $value, $local ], "${local}fast_uuid.$name = '$value'" ];
}

# In every other incarnation; whoever resets the order of all is alone in it.
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
	return [ [ $us, $ns ], "$us), fast_uuid_observe('$id" ];
}

# Refused, but in session order.
my $generate_and_reset =
  'fast_uuid_reset_ordering() FROM (SELECT uuidv7_fast() AS id OFFSET 0) AS one WHERE id IS NOT NULL';

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
	[ 1, 0, 9, 'SELECT in_instance_order()', undef,
		sub { in_order($s, 'instance', sub { take($s, 1) }) } ],
	[ 1, 0, 9, q{DO $$ BEGIN PERFORM uuidv7_fast(); PERFORM 1 / 0; EXCEPTION
		WHEN OTHERS THEN NULL; END $$}, undef, sub { eval { take($s, 1) }; () } ],
	[ 3, 1, 1, 'DECLARE c CURSOR FOR SELECT uuidv7_fast_set(1000)',
		sub { defined $s->{cursor} ? undef : '' }, sub { $s->{cursor} = 1000; () } ],
	[ 4, 1, 1, 'FETCH %s FROM c', sub { pick(grep { $_ <= ($s->{cursor} // 0) } 1, 2, 255, 256) },
		sub { $s->{cursor} -= $_[0]; in_turn(@_) } ],
	[ 2, 0, 9, "SELECT fast_uuid_observe('%s')", \&draw_observed, sub { observe($s, $_[0]) } ],
	[ 2, 0, 9, 'SELECT uuidv7_fast_watermark()', undef, sub { watermark($s) } ],
	[ 1, 0, 9, "SELECT uuidv7_fast_wait(0) - %s", sub { $base{ $s->{database} } }, sub { count_ended($s) } ],
	[ 3, 0, 9, 'SELECT fast_uuid_reset_ordering()', \&draw_reset, sub { reset_order($s) } ],
	[ 2, 0, 9, "SELECT $generate_and_reset",
		\&draw_reset, sub { take($s, 1); reset_order($s) } ],
	[ 3, 0, 9, q{SELECT uuidv7_fast_watermark() FROM (SELECT uuidv7_fast_watermark() AS w OFFSET 0) AS one,
		LATERAL (SELECT fast_uuid_reset_ordering() WHERE w IS NOT NULL OFFSET 0) AS two}, \&draw_reset,
		sub { watermark($s); reset_order($s); watermark($s) } ],
	[ 2, 0, 9, 'SELECT uuidv7_fast() FROM reset_instance_order()', sub { in_order($s, 'instance', \&draw_reset) },
		sub { in_order($s, 'instance', sub { reset_order($s) }); take($s, 1) } ],
	[ 4, 0, 9, 'SET %s', \&draw_setting, sub { set($s, @{ $_[0] }) } ],
	[ 1, 0, 9, 'SELECT 1 / 0', undef, sub { die "22012 division by zero|\n" } ],
	[ 3, 0, 0, 'BEGIN%s', sub { pick('', ' READ ONLY') }, sub { begin($s) } ],
	[ 2, 1, 9, 'SAVEPOINT a', undef, sub { begin($s) } ],
	[ 1, 2, 9, 'RELEASE a', undef, sub { release($s) } ],
	[ 1, 2, 9, 'ROLLBACK TO a', undef, sub { roll_back_to($s) } ],
	[ 1, 1, 9, 'ROLLBACK', undef, sub { roll_back($s) } ],
	[ 1, 1, 9, 'COMMIT', undef, sub { commit($s) } ],
	[ 3, 1, 9, "PREPARE TRANSACTION '%s'", sub { draw_prepared(0) }, sub { prepare($s, $_[0]) } ],
	[ 1, 0, 0, "COMMIT PREPARED '%s'", sub { draw_prepared(1) }, sub { finish($_[0]) } ],
	[ 1, 0, 0, "ROLLBACK PREPARED '%s'", sub { draw_prepared(1) }, sub { finish($_[0]) } ],
	[ 1, 0, 0, "SELECT setval('fast_uuid_upper_bound', %s), uuidv7_fast()", \&draw_bound,
		sub { set_bound($s, 1000 * $_[0]); take($s, 1); $_[0] } ],
	[ 3, 0, 0, "SELECT setval('fast_uuid_upper_bound', %s')", \&draw_bound_and_observed,
		sub { my ($us, $ns) = @{ $_[0] }; set_bound($s, 1000 * $us); observe($s, $ns); $us } ]);
splice @steps, -2 if @orders < 3;
my $stats = q{
SELECT concat_ws(' ', name, us_of(clock_lead), us_of(largest_clock_lead), held_back_by,
                 us_of(upper_bound - 'epoch'))
  FROM fast_uuid_stats()
UNION ALL SELECT 'locks ' || count(*) FROM pg_locks WHERE locktype = 'advisory'
                 OR relation = 'fast_uuid_upper_bound'::regclass AND mode = 'RowExclusiveLock'};

# What must come, so that a walk which tests nothing is noticed.  The last incarnation goes on
# until it has, for so many steps at most; the rarest comes about once in 3000.
my @errors = map { "SELECT $_" } 'uuidv7_fast()55000', 'unnest(uuidv7_fast_array(%s))55000',
  'uuidv7_fast_set(%s)55000', "fast_uuid_observe('%s')22023", "${generate_and_reset}25001",
  'uuidv7_fast_wait(0) - %s25001';
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
		$base{ $session->{database} } = $session->{raw}->query_safe('SELECT uuidv7_fast_wait(0)');
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
