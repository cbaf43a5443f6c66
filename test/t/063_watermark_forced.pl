# Interleavings of the watermark and of durable order whose windows are
# nanoseconds, forced: a test build holds up a session between two steps
# (test/modules/test_points.c), until others have done theirs.

use strict;
use warnings;

use Cwd;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use KnownClock;
use RawSession;
use Watchdog;

delete $ENV{$_} foreach qw(MAKEFLAGS MAKELEVEL);

my $build = PostgreSQL::Test::Utils::tempdir() . '/build';
mkdir $build or die "could not create $build: $!";
system_or_bail('cp', '-R', 'Makefile', 'fast_uuid.control', 'src', 'sql', $build);
system_or_bail('make', '-s', '-C', $build, 'clean', 'PG_CONFIG=pg_config');
system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'TEST_POINTS=yes', 'PG_CONFIG=pg_config');
my $modules = getcwd() . '/test/modules';

# The extension's functions become those of the test build, which needs the points
# to be there; the library that is installed is not loaded any more.
my $node = PostgreSQL::Test::Cluster->new('forced');
$node->init;
$node->start;
$node->safe_psql('postgres', qq{
CREATE EXTENSION fast_uuid;
UPDATE pg_proc SET probin = '$build/fast_uuid' WHERE probin = 'fast_uuid';
CREATE TABLE made (id uuid DEFAULT uuidv7_fast());
CREATE TABLE input AS SELECT n FROM generate_series(1, 20000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
});
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $asserts = $node->safe_psql('postgres', 'SHOW debug_assertions');
my $user    = $node->safe_psql('postgres', 'SELECT current_user');
$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = '$modules/test_points} . ($version < 170000 ? ", $build/fast_uuid" : '') . qq{'
fast_uuid.ordering = 'instance'
autovacuum = off
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
parallel_leader_participation = off
});

sub restart_with
{
	my ($settings, $start) = @_;
	$node->append_conf('postgresql.conf', $settings);
	$node->stop;
	$start ? $start->() : $node->start;
	return;
}

sub session
{
	my $session = RawSession->connect($node, user => $user, database => 'postgres');
	BAIL_OUT("no session: $session->{error}") if $session->{error} ne '';
	$session->{pid} = run_in($session, 'SELECT pg_backend_pid()');
	return $session;
}

sub receive
{
	my ($session) = @_;
	my $rows = $session->receive;
	BAIL_OUT($session->{error}) if $session->{error} ne '';
	return $rows;
}

sub run_in
{
	my ($session, $sql) = @_;
	$session->send($sql);
	return receive($session);
}

sub watermark
{
	return $node->safe_psql('postgres', 'SELECT uuidv7_fast_watermark()');
}

sub point
{
	my ($name) = @_;
	return $node->data_dir . "/test_point.$name";
}

# Whoever comes to the point goes no further; of a pid, only that one.
sub close_point
{
	my ($name, $pid) = @_;
	append_to_file(point("$name.new"), $pid);
	rename(point("$name.new"), point($name)) or die "could not rename: $!";
	return;
}

# The pid of a process that stands at the point.
sub stands_at
{
	my ($name) = @_;
	my $pid = '';
	wait_until("$name is reached", sub { -e point("$name.reached") && ($pid = slurp_file(point("$name.reached"))) =~ /\n/ });
	return $pid + 0;
}

# Let a session run a statement, and go no further than the point; any process that
# comes there, where "any" is true.
sub hold
{
	my ($session, $name, $sql, $any) = @_;
	close_point($name, $any ? '' : $session->{pid});
	$session->send($sql);
	stands_at($name);
	return;
}

sub let_go
{
	my ($name) = @_;
	unlink point($name) or die "could not remove: $!";
	return;
}

my $insert     = 'INSERT INTO made DEFAULT VALUES RETURNING id';
my $by_workers = 'SELECT id FROM (SELECT uuidv7_fast() AS id FROM input OFFSET 0) AS made ORDER BY id LIMIT 1';

restart_with("max_prepared_transactions = 5\n");
{
	my ($writer, $other) = (session(), session());

	run_in($writer, 'BEGIN');
	hold($writer, 'reserved', $insert);
	my $first = watermark();
	my $value = run_in($other, 'SELECT uuidv7_fast()');
	my $second = watermark();
	let_go('reserved');
	my $id = receive($writer);
	cmp_ok($value, 'gt', $id, 'a writer stands after its exchange: others generate beyond');
	cmp_ok($first,  'le', $id, 'a writer stands after its exchange: the watermark is not beyond its value');
	cmp_ok($second, 'le', $id, 'nor later');
	run_in($writer, 'COMMIT');
	cmp_ok(watermark(), 'gt', $value, 'until it has committed');

	# In 17 and later a worker refuses unless its leader has the library.
	run_in($writer, 'BEGIN');
	hold($writer, 'reserved', $by_workers, 1);
	$first = watermark();
	let_go('reserved');
	$id = receive($writer);
	cmp_ok($first, 'le', $id, 'a parallel worker stands after its exchange: the watermark is not beyond its value');
	cmp_ok(watermark(), 'le', $id, 'nor after it has ended');
	run_in($writer, 'COMMIT');

	# Two workers publish at once: the one stands before its exchange of the word that
	# they share, the other one makes its own.  Which of them has read the clock earlier
	# is known of neither, so they do it again.
	foreach (1 .. 24)
	{
		run_in($writer, 'BEGIN');
		hold($writer, 'publishing', $by_workers, 1);
		my $one = stands_at('publishing');
		my $two = $node->poll_query_until('postgres', "SELECT count(*) FROM pg_stat_activity WHERE leader_pid = $writer->{pid}", '2')
		  && $node->safe_psql('postgres', "SELECT pid FROM pg_stat_activity WHERE leader_pid = $writer->{pid} AND pid <> $one");
		close_point('published', $two);
		close_point('reserved', $one);
		close_point('publishing', $one);
		stands_at('published');
		let_go('publishing');
		stands_at('reserved');
		$first = watermark();
		let_go($_) foreach 'reserved', 'published';
		cmp_ok($first, 'le', receive($writer), 'two parallel workers publish at once: the watermark is not beyond the values of either');
		run_in($writer, 'COMMIT');
	}

	# Between the latest value and the transactions, or between those and the snapshot, a
	# writer commits of which the statement's own snapshot does not know.
	foreach my $point ('watermark', 'in_flight_read')
	{
		run_in($writer, 'BEGIN');
		$id = run_in($writer, $insert);
		hold($other, $point, 'SELECT uuidv7_fast_watermark()');
		run_in($writer, 'COMMIT');
		let_go($point);
		cmp_ok(receive($other), 'le', $id, "a writer commits while a reader stands at $point: its watermark is not beyond a row that it does not see");
		cmp_ok(watermark(), 'gt', $id, 'the next one is');
	}

	# What it has made sure of, under durable order by the horizon, is its own; a later one
	# that another session was given meanwhile is not.
	hold($other, 'watermark', 'SELECT uuidv7_fast_watermark()');
	$first = watermark();
	run_in($writer, 'CREATE TABLE something ()');
	let_go('watermark');
	cmp_ok(receive($other), 'lt', $first, 'a transaction ends while a reader stands, and another one was quicker: its watermark is not the later one');

	hold($other, 'watermark', 'SELECT uuidv7_fast_watermark()');
	run_in($writer, 'BEGIN');
	$id = run_in($writer, $insert);
	let_go('watermark');
	cmp_ok(receive($other), 'le', $id,
		'a writer generates between the latest value and the transactions of a reader: its watermark is not beyond that');
	cmp_ok(watermark(), 'le', $id, 'nor the next');

	# Between the transactions and the locks of those that are prepared.
	hold($other, 'in_flight_read', 'SELECT uuidv7_fast_watermark()');
	run_in($writer, "PREPARE TRANSACTION 'it'");
	let_go('in_flight_read');
	cmp_ok(receive($other), 'le', $id, 'a writer prepares between the transactions and the locks of a reader: the watermark is not beyond its value');
	run_in($writer, "COMMIT PREPARED 'it'");
	cmp_ok(watermark(), 'gt', $id, 'until it is finished');

	# The instance led the clock, by a UUID that was observed, until the reset.
	run_in($writer, q{SELECT fast_uuid_observe(uuidv7_fast_at(clock_timestamp() + interval '0.9 s'))});
	hold($other, 'in_flight_read', 'SELECT uuidv7_fast_watermark()');
	run_in($writer, 'SELECT fast_uuid_reset_ordering()');
	let_go('in_flight_read');
	my $watermark = receive($other);
	cmp_ok($watermark, 'le', run_in($writer, 'SELECT uuidv7_fast()'), 'a reset between the transactions and the watermark of a reader: it is not beyond what comes later');

	# What is counted too early is taken for finished.
	run_in($writer, 'BEGIN');
	$id = run_in($writer, $insert);
	hold($writer, 'preparing', "PREPARE TRANSACTION 'it'");
	cmp_ok(watermark(), 'le', $id, 'a writer stands in PREPARE TRANSACTION: the watermark is not beyond its value');
	let_go('preparing');
	receive($writer);
	cmp_ok(watermark(), 'le', $id, 'nor when it is prepared');
	run_in($writer, "ROLLBACK PREPARED 'it'");
	cmp_ok(watermark(), 'gt', $id, 'until it is finished');
	$_->quit foreach $writer, $other;
}

# A reader finds a transaction that has ended, and the session's next one has the
# same seven bits.  Before 17 the session has the library from the start; later it
# leaves the word of its workers behind, because it has none.
restart_with("max_prepared_transactions = 0\n");
{
	my ($writer, $reader) = (session(), session());
	my $xact = q{SELECT split_part(virtualtransaction, '/', 2)::int FROM pg_locks WHERE locktype = 'virtualxid' AND pid = pg_backend_pid()};

	run_in($writer, 'BEGIN');
	my $ended = run_in($writer, $xact);
	run_in($writer, $by_workers);
	run_in($writer, 'COMMIT');
	1 until (run_in($writer, $xact) - $ended) % 128 == 127;

	append_to_file(point('in_flight_ended'), $reader->{pid});
	$reader->send('SELECT uuidv7_fast_watermark()');
	wait_until('in_flight_ended is reached, or passed by', sub { -e point('in_flight_ended.reached') || $reader->has_answer });
	my $stands = -e point('in_flight_ended.reached');
	is($stands ? 1 : 0, $version < 170000 ? 0 : 1, 'the word of a transaction that has ended is there only if its session lacks the library');

	run_in($writer, 'BEGIN');
	is((run_in($writer, $xact) - $ended) % 128, 0, 'a transaction with the same seven bits');
	is($node->safe_psql('postgres', "SELECT held_back_by IS NULL FROM fast_uuid_stats() WHERE name = 'instance'"), 't', 'which has generated nothing: it does not hold the watermark back');

	# One worker may rely on the word that is left already when another one comes: neither
	# replaces it by a later one.
	if ($version >= 170000)
	{
		close_point('publishing', '');
		$writer->send($by_workers);
		wait_until('its workers have generated, or publish', sub { $writer->has_answer || -e point('publishing.reached') });
		ok(!-e point('publishing.reached'), 'its workers rely on the word that is left');
		let_go('publishing');
		cmp_ok(watermark(), 'le', receive($writer), 'and the watermark is not beyond their values');
	}
	my $id = run_in($writer, $insert);
	let_go('in_flight_ended');
	receive($reader);
	my $watermark = watermark();
	cmp_ok($watermark, 'le', $id, 'the watermark is not beyond its value after a reader has found the one before ended');
	run_in($writer, 'COMMIT');
	cmp_ok(watermark(), 'gt', $id, 'until it has committed');
	$_->quit foreach $writer, $reader;
}

# A session that has read a clock which is a year ahead, and has not entered the order
# yet, while the clock is corrected and the instance reset.
SKIP:
{
	skip 'needs Linux', 1 unless $^O eq 'linux';
	my $now = 1_800_000_000_000_000_000;
	my $clock;
	restart_with('', sub { $clock = KnownClock->new($node); $clock->put($now + 365 * 86400 * 1_000_000_000) });

	my $bound = $node->safe_psql('postgres', "SELECT uuidv7_fast_max(to_timestamp($now / 1000000000 + 1))");
	my $observe = 'SELECT fast_uuid_observe(uuidv7_fast_min(to_timestamp(%s)))';
	foreach my $case ([ 'entering', 'SELECT uuidv7_fast()', '' ], [ 'entering', $observe, qr/^22023 UUID is too far ahead/ ], [ 'raised', $observe, '' ])
	{
		my ($point, $call, $error) = @$case;
		my $name = "$point, $call";
		$clock->put($now + 365 * 86400 * 1_000_000_000);
		my ($late, $dba) = (session(), session());
		run_in($dba, 'SELECT uuidv7_fast()');
		hold($late, $point, sprintf($call, $now / 1_000_000_000 + 365 * 86400));
		$clock->put($now);
		run_in($dba, 'SELECT fast_uuid_reset_ordering()');
		let_go($point);
		my $id = $late->receive;
		like($late->{error}, $error || qr/^$/, "$name: " . ($error ? 'refused by the clock of after the reset' : 'no error'));
		$id = run_in($late, 'SELECT uuidv7_fast()') if $id !~ /-/;
		cmp_ok($id, 'lt', $bound, "$name: the time from before a reset does not count after it");
		cmp_ok(run_in($dba, 'SELECT uuidv7_fast()'), 'lt', $bound, "$name: nor for the other sessions");
		$_->quit foreach $late, $dba;
	}
}

SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 if $version < 170000;
	skip 'needs Linux', 1 unless $^O eq 'linux';
	my $clock;
	restart_with("fast_uuid.ordering = 'durable'\n", sub { $clock = KnownClock->new($node); $clock->put(1_800_000_000_000_000_000) });

	my ($first, $second) = (session(), session());
	my $latest = run_in($first, 'SELECT uuidv7_fast()');
	run_in($second, 'SELECT uuidv7_fast()');

	# Half a second before it is reached the horizon is moved ahead by one of them; the
	# others do without.
	$clock->step(600_000_000);
	hold($first, 'horizon_written', 'SELECT uuidv7_fast()');
	$second->send('SELECT uuidv7_fast()');
	my $id = $second->receive;
	is($second->{error}, '', 'a session moves the horizon ahead of time: another one does not wait');
	cmp_ok($id, 'gt', $latest, 'and goes on');
	let_go('horizon_written');
	$latest = receive($first);
	cmp_ok($latest, 'lt', $id, 'the first one has its value from before');
	$latest = $id;
	foreach my $point ('horizon_written', 'horizon_read')
	{
		my $where = $point eq 'horizon_written' ? 'written the horizon, and not flushed it' : 'read the horizon, and not moved it';
		$clock->step(3600 * 1_000_000_000);
		hold($first, $point, 'SELECT uuidv7_fast()');
		$second->send('SELECT uuidv7_fast()');
		wait_until(
			'the other session waits, or has an answer',
			sub {
				$second->has_answer
				  || $node->safe_psql('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $second->{pid}") =~ /^Buffer/;
			});
		ok(!$second->has_answer, "a session has $where: another one that needs it gets no value");
		ok(!$first->has_answer, 'nor does the first');
		let_go($point);
		my @ids = sort(receive($first), receive($second));
		ok($ids[0] gt $latest && $ids[1] gt $ids[0], 'both get theirs afterwards');
		$latest = $ids[1];
	}
	$_->quit foreach $first, $second;

	# A watermark whose horizon is being flushed, while time goes on in another database: it
	# is not beyond that horizon, which is what a crash leaves.
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', "CREATE EXTENSION fast_uuid; UPDATE pg_proc SET probin = '$build/fast_uuid' WHERE probin = 'fast_uuid'");
	my $reader = session();
	my $elsewhere = RawSession->connect($node, user => $user, database => 'other');
	run_in($elsewhere, "SET fast_uuid.ordering = 'instance'");
	run_in($reader, 'SELECT uuidv7_fast_watermark()');
	$clock->step(2_000_000_000);
	hold($reader, 'horizon_written', 'SELECT uuidv7_fast_watermark()');
	$clock->step(3_000_000_000);
	run_in($elsewhere, 'SELECT uuidv7_fast_watermark()');
	let_go('horizon_written');
	my $watermark = receive($reader);
	is(run_in($reader, "SELECT uuidv7_fast_timestamp('$watermark', true) <= horizon FROM fast_uuid_stats() WHERE name = 'durable'"), 't',
		'a watermark that had to wait for its horizon is not beyond it');
	$_->quit foreach $reader, $elsewhere;
	$node->stop('immediate');
	$clock = KnownClock->new($node);
	$clock->put(1_800_000_000_000_000_000 - 600_000_000_000);
	cmp_ok($node->safe_psql('postgres', 'SELECT uuidv7_fast()'), 'ge', $watermark, 'nor is it after a crash, with the clock back');
}
$node->stop;

# A library that generates in the postmaster, whose children inherit what it left.
SKIP:
{
	skip 'this server asserts that the postmaster makes no shared memory by name', 1 if $version >= 170000 && $asserts eq 'on';

	my $drawn = PostgreSQL::Test::Cluster->new('drawn');
	$drawn->init;
	$drawn->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid, $modules/draw_at_startup'\nfast_uuid.ordering = 'instance'\n");
	$drawn->start;
	$drawn->safe_psql('postgres', 'CREATE EXTENSION fast_uuid; CREATE TABLE made (id uuid DEFAULT uuidv7_fast())');
	like(slurp_file($drawn->logfile), qr/drew once shared memory was there/, 'the postmaster has generated');

	my $writer = $drawn->background_psql('postgres');
	$writer->query_safe('BEGIN');
	my $id = $writer->query_safe($insert);
	cmp_ok($drawn->safe_psql('postgres', 'SELECT uuidv7_fast_watermark()'), 'le', $id, 'the watermark is not beyond the values of its children');
	$writer->query_safe('COMMIT');
	cmp_ok($drawn->safe_psql('postgres', 'SELECT uuidv7_fast_watermark()'), 'gt', $id, 'until they have committed');
	$writer->quit;
	$drawn->stop;

	# The horizon is out of reach there.
	$drawn->append_conf('postgresql.conf', "fast_uuid.ordering = 'durable'\nlog_line_prefix = '%e '\n");
	is($drawn->start(fail_ok => 1), 0, 'under durable order the postmaster does not generate');
	like(slurp_file($drawn->logfile), $version < 170000 ? qr/0A000 FATAL:  ordering "durable" requires PostgreSQL 17/ : qr/25P01 FATAL:  ordering "durable" requires a transaction/,
		'and says why');
}
done_testing();
