# A reset is alone: it is refused while another session has joined the order, in whatever
# way and database, or in a transaction that has ids; and nothing brings back the time
# that it has given up.  A session that joins at that very moment is forced.pl's.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('reset');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\njit = off\nmax_prepared_transactions = 5\n");
my $clock = KnownClock->new($node);
my $start = 1_800_000_000_000_000_000;
my $day   = 86_400;
$clock->put($start);
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
$node->safe_psql($_, "CREATE EXTENSION fast_uuid") foreach 'postgres', 'elsewhere';
my @orders = ('instance', $node->pg_version >= 17 ? 'durable' : ());

sub clock_at
{
	my ($seconds) = @_;
	$clock->put($start + $seconds * 1_000_000_000);
	return;
}

sub session
{
	my ($order, $database, @statements) = @_;
	my $session = RawSession->connect($node, user => scalar getpwuid($>), database => $database);
	$session->query_safe($_) foreach "SET fast_uuid.ordering = '$order'", "SET fast_uuid.max_clock_lead = '24 d'", @statements;
	return $session;
}

# In seconds from the start.
sub time_of
{
	my ($session, $sql) = @_;
	my $id = (split /\n/, $session->query_safe($sql // 'SELECT uuidv7_fast()'))[-1];
	return int((KnownClock::ns_of($id) - $start) / 1_000_000_000);
}

my $reset   = 'SELECT fast_uuid_reset_ordering()';
my $observe = "SELECT fast_uuid_observe(uuidv7_fast_max(to_timestamp($start / 1000000000)))";

foreach my $order (@orders)
{
	my $dba = session($order, 'postgres', 'SELECT uuidv7_fast()');

	# All at once, because the reset gives those who are about to leave some seconds.
	my @ways = (
		[ 'postgres', 'session', 'SELECT 1' ], [ 'postgres', 'session', 'SELECT uuidv7_fast()' ],
		[ 'postgres', 'session', $observe ], [ 'postgres', $order, 'SELECT count(*) FROM fast_uuid_stats()' ],
		[ 'postgres', $order, 'SELECT uuidv7_fast()' ], [ 'elsewhere', 'instance', 'SELECT uuidv7_fast_array(3)' ],
		[ 'postgres', $order, $observe ], [ 'elsewhere', 'session', 'SELECT uuidv7_fast_watermark()' ],
		[ 'postgres', 'session', 'SELECT uuidv7_fast_wait()' ],
		[ 'postgres', $order, 'BEGIN; SELECT uuidv7_fast(); ROLLBACK; SET fast_uuid.ordering = session; DISCARD ALL' ]);
	my @sessions = map { my ($database, $its_order, $sql) = @$_; session($its_order, $database, split /; /, $sql) } @ways;
	my @joined   = map { $_->query_safe('SELECT pg_backend_pid()') } @sessions[ 4 .. $#sessions ];
	is($dba->outcome($reset), '55006', "$order: refused beside sessions that have joined");
	my ($message, $detail, $hint) = $dba->{error} =~ /^55006 (.*)\|(.*)\|(.*)$/;
	is($message, 'order of UUIDs is being used by other sessions', "$order: ... said");
	like($detail, qr/^6 other sessions have /, "$order: ... how many");
	is(join(' ', sort { $a <=> $b } $detail =~ /\d{2,}/g), join(' ', sort { $a <=> $b } @joined), "$order: ... and which");
	like($hint, qr/^End these sessions/, "$order: ... and what helps");
	$_->quit foreach @sessions[ 5 .. $#sessions ];
	is($dba->outcome($reset), '55006', "$order: beside one");
	like($dba->{error}, qr/\|1 other session has .*: process ID $joined[0]\.\|/, "$order: ... said");
	$sessions[4]->quit;
	is($dba->outcome($reset), 'value ', "$order: beside those that have not joined it works");
	is($dba->outcome("BEGIN; SELECT uuidv7_fast(); $reset"), '25001', "$order: refused in a transaction that has ids");
	$dba->query_safe('ROLLBACK');

	# What the transaction was given before is not given again after a reset.
	clock_at(10 * $day);
	$dba->query_safe('BEGIN; SELECT uuidv7_fast_watermark()');
	clock_at(1);
	is(time_of($dba, "$reset; SELECT uuidv7_fast_watermark()"), 1, "$order: a watermark from before the reset, in the same transaction, is not given again");
	$dba->query_safe('COMMIT');
	is($dba->outcome("BEGIN; $reset; SELECT uuidv7_fast(); COMMIT") =~ s/\n.*//sr, 'value ', "$order: but not before it has");

	# The time is given up.  Who had generated or observed under session order before does
	# not bring it back, nor does a prepared transaction, nor a restart.
	clock_at(10 * $day);
	$sessions[0]->query_safe('SELECT uuidv7_fast()');
	$sessions[2]->query_safe("SELECT fast_uuid_observe(uuidv7_fast_max(to_timestamp($start / 1000000000 + 10 * $day)))");
	$dba->query_safe("BEGIN; CREATE TABLE IF NOT EXISTS made (id uuid); INSERT INTO made VALUES (uuidv7_fast()); PREPARE TRANSACTION 'left'");
	is(time_of($dba), 10 * $day, "$order: the time is ahead");
	clock_at(1);
	is($dba->outcome($reset), 'value ', "$order: a reset, with a prepared transaction left");
	is(time_of($dba), 1, "$order: ... gives it up");
	my $upto = $dba->query_safe('SELECT uuidv7_fast_watermark()');
	is(int((KnownClock::ns_of($upto) - $start) / 1_000_000_000), 1, "$order: ... the watermark too");
	$dba->query_safe("COMMIT PREPARED 'left'");
	foreach my $n (0, 2)
	{
		is(time_of($sessions[$n]), 10 * $day, "$order: a session under its own order goes on in that");
		$sessions[$n]->query_safe("SET fast_uuid.ordering = '$order'");
		is(time_of($sessions[$n]), 1, "$order: ... and comes to that of the instance by the clock");
	}
	is(time_of($dba), 1, "$order: ... and has changed nothing for others");
	$_->quit foreach @sessions[ 0 .. 3 ], $dba;
	$node->stop('immediate');
	$clock->start($node);
	my $after = session($order, 'postgres');
	cmp_ok(time_of($after), '<', 10, "$order: nor does a restart bring it back");
	$after->quit;
}

# The upper bound of another database: it is overwritten when that generates again, and
# counts after a restart before which it has not, as the page says.
SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 if @orders < 2;

	# Who resets under instance order knew of an upper bound, which another session overwrites.
	clock_at(1000);
	my $dba = session('durable', 'postgres', $observe, 'SELECT fast_uuid_observe(uuidv7_fast_at(uuidv7_fast_timestamp(uuidv7_fast()) + interval \'1 h\'))', 'SELECT uuidv7_fast()');
	$dba->query_safe($_) foreach "SET fast_uuid.ordering = 'instance'", $reset, "SET fast_uuid.ordering = 'durable'";
	session('durable', 'postgres', 'SELECT uuidv7_fast()')->quit;
	clock_at(1010);
	is(time_of($dba), 1010, 'a reset under instance order, then durable order: by the clock');
	$dba->quit;
	$node->stop('immediate');
	$clock->start($node);
	clock_at(1000);
	my $crashed = session('durable', 'postgres');
	cmp_ok(time_of($crashed), '>=', 1010, '... which a crash with the clock back does not undo');
	$crashed->quit;

	# One of an earlier run of the server counts until it is reset as well, as the page says.
	clock_at(20 * $day);
	session('durable', $_, 'SELECT uuidv7_fast()')->quit foreach 'postgres', 'elsewhere';
	$node->stop;
	$clock->start($node);
	clock_at(100);
	session('durable', $_, $reset)->quit foreach 'postgres', 'elsewhere';
	foreach my $database ('elsewhere', 'postgres')
	{
		my $session = session('durable', $database);
		is(time_of($session), 100, "upper bounds of an earlier run, each reset: $database generates by the clock");
		$session->quit;
	}

	foreach my $again (1, 0)
	{
		clock_at(20 * $day);
		session('durable', $_, 'SELECT uuidv7_fast()')->quit foreach 'postgres', 'elsewhere';
		clock_at(100);
		session('durable', 'postgres', $reset)->quit;
		my $bound = "SELECT extract(epoch FROM upper_bound)::bigint - $start / 1000000000 FROM fast_uuid_stats() WHERE name = 'durable'";
		cmp_ok($node->safe_psql('elsewhere', $bound), '>=', 20 * $day, 'another database: its upper bound is as it was');
		if ($again)
		{
			my $session = session('durable', 'elsewhere');
			is(time_of($session), 100, '... and does not count: it generates by the clock');
			is($session->query_safe($bound), 101, '... and has another one then');
			$session->quit;
		}
		$node->stop('immediate');
		$clock->start($node);
		my $session = session('durable', 'elsewhere');
		my $time    = time_of($session);
		$again ? cmp_ok($time, '<', 200, '... and after a restart') : cmp_ok($time, '>=', 20 * $day, '... without that it counts after a restart');
		$session->quit;
	}
}
$node->stop;
done_testing();
