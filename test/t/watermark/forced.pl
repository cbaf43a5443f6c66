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
system_or_bail('make', '-s', '-C', $build, 'fast_uuid.so', 'TEST_POINTS=yes', 'ASSERTIONS=yes', 'PG_CONFIG=pg_config');
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
});
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
$node->append_conf('postgresql.conf', qq{
shared_preload_libraries = '$modules/test_points} . ($version < 170000 ? ", $build/fast_uuid" : '') . qq{'
fast_uuid.ordering = 'instance'
autovacuum = off
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
	my $session = RawSession->start($node);
	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	return $session;
}

sub receive
{
	my ($session) = @_;
	my $rows = $session->receive;
	BAIL_OUT($session->{error}) if $session->{error} ne '';
	return $rows;
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

# Let a session run a statement, and go no further than the point.
sub hold
{
	my ($session, $name, $sql) = @_;
	append_to_file(point("$name.new"), $session->{pid});
	rename(point("$name.new"), point($name)) or die "could not rename: $!";
	$session->send($sql);
	wait_until("$name is reached", sub { -e point("$name.reached") });
	return;
}

sub let_go
{
	my ($name) = @_;
	unlink point($name) or die "could not remove: $!";
	return;
}

sub wait_of
{
	my ($session) = @_;
	return "SELECT concat_ws(' ', wait_event_type, wait_event) FROM pg_stat_activity"
	  . " WHERE pid = $session->{pid}";
}

sub wait_for
{
	my ($session, $event) = @_;
	return wait_until('the other session waits, or has an answer',
		sub { $session->has_answer || $node->safe_psql('postgres', wait_of($session)) =~ $event });
}

my $insert = 'INSERT INTO made DEFAULT VALUES RETURNING id';

restart_with("max_prepared_transactions = 5\n");
{
	my ($writer, $other) = (session(), session());

	$writer->query_safe('BEGIN');
	hold($writer, 'reserved', $insert);
	my $first = watermark();
	my $value = $other->query_safe('SELECT uuidv7_fast()');
	my $second = watermark();
	let_go('reserved');
	my $id = receive($writer);
	cmp_ok($value, 'gt', $id, 'a writer stands after its exchange: others generate beyond');
	cmp_ok($first,  'le', $id, 'a writer stands after its exchange: the watermark is not beyond its value');
	cmp_ok($second, 'le', $id, 'nor later');
	my $ended = $other->query_safe('SELECT uuidv7_fast_wait(0)');
	hold($writer, 'clearing', 'COMMIT');
	is($other->query_safe("SELECT count(*) FROM made WHERE id = '$id'"), '1', 'it has committed');
	cmp_ok(watermark(), 'le', $id, 'and holds the watermark back');
	is($other->query_safe("SELECT held_back_by FROM fast_uuid_stats() WHERE name = 'instance'"), $writer->{pid}, 'as the statistics tell');
	is($other->query_safe("SELECT uuidv7_fast_wait($ended, '0')"), $ended, 'nor is its end counted');
	let_go('clearing');
	receive($writer);
	is($other->query_safe("SELECT uuidv7_fast_wait($ended, '0')"), $ended + 1, 'it is');
	cmp_ok(watermark(), 'gt', $value, 'until it has cleared what it had published');

	# It clears, counts its end, and wakes who waits, in this order.
	$ended = $other->query_safe('SELECT uuidv7_fast_wait(0)');
	$writer->query_safe('BEGIN');
	$id = $writer->query_safe($insert);
	hold($writer, 'waking', 'COMMIT');
	is($other->query_safe("SELECT uuidv7_fast_wait($ended, '1 day')"), $ended + 1, 'a writer that has woken nobody yet is counted');
	cmp_ok(watermark(), 'gt', $id, '... and holds nothing back');
	let_go('waking');
	receive($writer);

	# Between the latest value and the transactions, or between those and the snapshot, a
	# writer commits of which the statement's own snapshot does not know.
	foreach my $point ('watermark', 'in_flight_read')
	{
		$writer->query_safe('BEGIN');
		$id = $writer->query_safe($insert);
		hold($other, $point, 'SELECT uuidv7_fast_watermark()');
		$writer->query_safe('COMMIT');
		let_go($point);
		cmp_ok(receive($other), 'le', $id, "a writer commits while a reader stands at $point: its watermark is not beyond a row that it does not see");
		cmp_ok(watermark(), 'gt', $id, 'the next one is');
	}

	hold($other, 'watermark', 'SELECT uuidv7_fast_watermark()');
	$writer->query_safe('BEGIN');
	$id = $writer->query_safe($insert);
	let_go('watermark');
	cmp_ok(receive($other), 'le', $id,
		'a writer generates between the latest value and the transactions of a reader: its watermark is not beyond that');
	cmp_ok(watermark(), 'le', $id, 'nor the next');

	# Between the transactions and the locks of those that are prepared.
	hold($other, 'in_flight_read', 'SELECT uuidv7_fast_watermark()');
	$writer->query_safe("PREPARE TRANSACTION 'it'");
	let_go('in_flight_read');
	cmp_ok(receive($other), 'le', $id, 'a writer prepares between the transactions and the locks of a reader: the watermark is not beyond its value');
	$writer->query_safe("COMMIT PREPARED 'it'");
	cmp_ok(watermark(), 'gt', $id, 'until it is finished');

	# The instance leads the clock, by a UUID that is observed, until the reset.  Two
	# transactions publish the same nanosecond, and both are prepared.
	$other->query_safe(q{SET fast_uuid.max_clock_lead = '1 d'; SELECT fast_uuid_observe(uuidv7_fast_at(now() + interval '1 h'))});
	$_->query_safe("BEGIN; SET LOCAL lock_timeout = '10 s'") foreach $writer, $other;
	hold($writer, 'published', $insert);
	$id = $other->query_safe($insert);
	let_go('published');
	cmp_ok(receive($writer), 'gt', $id, 'a writer has published, and another one exchanges first: its value is greater');
	$_->query_safe("PREPARE TRANSACTION '$_->{pid}'") foreach $writer, $other;
	foreach my $prepared ($writer, $other)
	{
		cmp_ok(watermark(), 'le', $id, 'both are prepared: the watermark is not beyond their values');
		$prepared->query_safe("COMMIT PREPARED '$prepared->{pid}'");
	}
	cmp_ok(watermark(), 'gt', $id, 'until both are finished');

	# What is counted too early is taken for finished.
	$writer->query_safe('BEGIN');
	$id = $writer->query_safe($insert);
	hold($writer, 'preparing', "PREPARE TRANSACTION 'it'");
	cmp_ok(watermark(), 'le', $id, 'a writer stands in PREPARE TRANSACTION: the watermark is not beyond its value');
	let_go('preparing');
	receive($writer);
	cmp_ok(watermark(), 'le', $id, 'nor when it is prepared');
	$writer->query_safe("ROLLBACK PREPARED 'it'");
	cmp_ok(watermark(), 'gt', $id, 'until it is finished');
	$_->quit foreach $writer, $other;
}

# A session that has read a clock which is a year ahead, and has not joined the order
# yet, while the clock is corrected and the instance reset.
SKIP:
{
	skip 'needs Linux', 1 unless $^O eq 'linux';
	my $now = 1_800_000_000_000_000_000;
	my $day = 86400 * 1_000_000_000;
	my $year = 365 * $day;
	my $instance = "SET LOCAL fast_uuid.ordering = 'instance'";
	my $clock;
	restart_with('', sub { $clock = KnownClock->new($node); $clock->put($now + $year) });

	my $bound = $node->safe_psql('postgres', "SELECT uuidv7_fast_max(to_timestamp($now / 1000000000 + 1))");
	my $observe = 'SELECT fast_uuid_observe(uuidv7_fast_min(to_timestamp(' . ($now + $year) / 1_000_000_000 . ')))';
	foreach my $case ([ 'SELECT uuidv7_fast()', '' ], [ $observe, qr/^22023 UUID is too far ahead/ ])
	{
		my ($call, $error) = @$case;
		$clock->put($now + $year);
		my ($late, $dba) = (session(), session());
		$dba->query_safe('SELECT uuidv7_fast()');
		hold($late, 'joining', $call);
		$clock->put($now);
		$dba->query_safe('SELECT fast_uuid_reset_ordering()');
		let_go('joining');
		my $id = $late->receive;
		like($late->{error}, $error || qr/^$/, "$call: " . ($error ? 'refused by the clock of after the reset' : 'no error'));
		$id = $late->query_safe('SELECT uuidv7_fast()') if $id !~ /-/;
		cmp_ok($id, 'lt', $bound, "$call: the time from before a reset does not count after it");
		cmp_ok($dba->query_safe('SELECT uuidv7_fast()'), 'lt', $bound, "$call: nor for the other sessions");
		$_->quit foreach $late, $dba;
	}

	# A reset has found nobody else: who joins meanwhile waits, and begins anew after it.
	$clock->put($now + $year);
	my ($late, $dba) = (session(), session());
	$late->query_safe("SET fast_uuid.ordering = 'session'; SELECT uuidv7_fast(); RESET fast_uuid.ordering");
	$dba->query_safe('SELECT uuidv7_fast()');
	hold($dba, 'resetting', 'SELECT fast_uuid_reset_ordering()');
	$clock->put($now);
	$late->send('SELECT uuidv7_fast()');
	wait_for($late, qr/^LWLock/);

	# Before PostgreSQL 19 a process knows the lock's name once it has shared memory.
	is($node->safe_psql('postgres', 'SELECT FROM fast_uuid_stats(); ' . wait_of($late)) =~ s/^\n*//r,
		'LWLock FastUuid', 'a session that joins during a reset waits for it');
	let_go('resetting');
	receive($dba);
	cmp_ok(receive($late), 'lt', $bound, '... and brings nothing from before');

	# A call that fails because of its session's own lead has published the clock's time.  What
	# the transaction generates after all, with the clock back, is earlier.
	$clock->put($now + 3 * $day);
	$late->query_safe("SET fast_uuid.ordering = 'session'; SELECT uuidv7_fast()");
	$clock->put($now + 2 * $day);
	$late->query_safe($_) foreach 'BEGIN', 'SAVEPOINT a', 'SET LOCAL fast_uuid.max_clock_lead = 0', $instance;
	is($late->outcome('SELECT uuidv7_fast()'), '55000', 'a session with a lead of its own comes to the instance');
	$late->query_safe("ROLLBACK TO a; SELECT fast_uuid_reset_ordering(); $instance");
	$clock->put($now + $day);
	my $id = $late->query_safe('SELECT uuidv7_fast()');
	$clock->put($now + 2 * $day);
	cmp_ok($dba->query_safe('SELECT uuidv7_fast_watermark()'), 'le', $id,
		'... again, with the clock back, and holds the watermark back');
	$_->quit foreach $late, $dba;
}

SKIP:
{
	skip 'durable order requires PostgreSQL 17', 1 if $version < 170000;
	skip 'needs Linux', 1 unless $^O eq 'linux';
	my $clock;
	restart_with("fast_uuid.ordering = 'durable'\n", sub { $clock = KnownClock->new($node); $clock->put(1_800_000_000_000_000_000) });

	my ($first, $second) = (session(), session());
	my $latest = $first->query_safe('SELECT uuidv7_fast()');
	$second->query_safe('SELECT uuidv7_fast()');

	# Half a second before it is reached the upper bound is moved ahead by one of them; the
	# others do without.
	$clock->step(600_000_000);
	hold($first, 'upper_bound_written', 'SELECT uuidv7_fast()');
	$second->send('SELECT uuidv7_fast()');
	my $id = $second->receive;
	is($second->{error}, '', 'a session moves the upper bound ahead of time: another one does not wait');
	cmp_ok($id, 'gt', $latest, 'and goes on');
	let_go('upper_bound_written');
	$latest = receive($first);
	cmp_ok($latest, 'lt', $id, 'the first one has its value from before');
	$latest = $id;

	# ... unless it has to look again, because the sequence was altered meanwhile.
	$clock->step(600_000_000);
	$_->query_safe('SELECT uuidv7_fast()') foreach $first, $second;
	$clock->step(600_000_000);
	hold($first, 'upper_bound_written', 'SELECT uuidv7_fast()');
	$node->safe_psql('postgres', 'GRANT SELECT ON fast_uuid_upper_bound TO pg_monitor');
	$second->send('SELECT uuidv7_fast()');
	wait_for($second, qr/ Buffer/);
	let_go('upper_bound_written');
	my @both = sort(receive($first), receive($second));
	ok($both[0] gt $latest && $both[1] gt $both[0], 'a session forgets how far it is covered: it waits for the one that moves the upper bound');
	$latest = $both[1];

	foreach my $point ('upper_bound_written', 'upper_bound_read')
	{
		my $where = $point eq 'upper_bound_written' ? 'written the upper bound, and not flushed it' : 'read the upper bound, and not moved it';
		$clock->step(3600 * 1_000_000_000);
		hold($first, $point, 'SELECT uuidv7_fast()');
		$second->send('SELECT uuidv7_fast()');
		wait_for($second, qr/ Buffer/);
		ok(!$second->has_answer, "a session has $where: another one that needs it gets no value");
		ok(!$first->has_answer, 'nor does the first');
		let_go($point);
		my @ids = sort(receive($first), receive($second));
		ok($ids[0] gt $latest && $ids[1] gt $ids[0], 'both get theirs afterwards');
		$latest = $ids[1];
	}
	$_->quit foreach $first, $second;

	# The upper bound is moved to another schema while a session that looks for it knows the old
	# one.
	$first = session();
	hold($first, 'upper_bound_schema', 'SELECT uuidv7_fast()');
	$node->safe_psql('postgres', 'CREATE SCHEMA elsewhere; ALTER EXTENSION fast_uuid SET SCHEMA elsewhere');
	let_go('upper_bound_schema');
	cmp_ok(receive($first), 'gt', $latest, 'the upper bound is in another schema meanwhile: it is found');
	$node->safe_psql('postgres', 'ALTER EXTENSION fast_uuid SET SCHEMA public');
	$first->quit;
}
$node->stop;
done_testing();
