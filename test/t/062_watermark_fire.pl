# The low watermark under fire: 16 sessions write into a table in every way, while
# three readers follow it by the watermark and one, naively, by the greatest id it
# has seen.  In the second half the clock jumps back and forth.  The readers by the
# watermark see each committed row exactly once, in ascending order; the naive one
# misses rows.
#
# FAST_UUID_FIRE_SECONDS: for how long they write (20).

use strict;
use warnings;

use POSIX qw(_exit);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep clock_gettime CLOCK_MONOTONIC);

use lib 'test/perl';
use FakeClock;
use RawSession;

my $seconds = $ENV{FAST_UUID_FIRE_SECONDS} // 20;
my $writers = 16;
my $stop = PostgreSQL::Test::Utils::tempdir() . '/stop';

# A commit waits for others before it is flushed, and so stands between "begun"
# and "visible" for a while.
my $node = PostgreSQL::Test::Cluster->new('fire');
$node->init;
$node->append_conf('postgresql.conf', q{
fast_uuid.ordering = 'instance'
max_connections = 60
max_prepared_transactions = 60
max_worker_processes = 40
max_parallel_workers = 32
parallel_setup_cost = 0
parallel_tuple_cost = 0
min_parallel_table_scan_size = 0
fsync = on
commit_delay = 2000
commit_siblings = 1
work_mem = '64MB'
jit = off
});
fake_clock_installed() ? start_with_fake_clock($node) : $node->start;
my $durable = $node->safe_psql('postgres', 'SHOW server_version_num') >= 170000;
if (!$durable)
{
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	$node->stop;
	fake_clock_installed() ? start_with_fake_clock($node) : $node->start;
}
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE followed (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), way text);
CREATE TABLE input AS SELECT n FROM generate_series(1, 400) AS n;
ALTER TABLE input SET (parallel_workers = 2);

CREATE FUNCTION this_pid() RETURNS int LANGUAGE plpgsql STABLE PARALLEL SAFE AS 'BEGIN RETURN pg_backend_pid(); END';

-- A row that is written when the transaction commits, or prepares.
CREATE TABLE late ();
CREATE FUNCTION write_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
	INSERT INTO followed (way) VALUES ('deferred trigger');
	RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION write_late();

CREATE PROCEDURE write_and_commit(transactions int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..transactions LOOP
		INSERT INTO followed (way) VALUES ('procedure');
		PERFORM count(*) FROM generate_series(1, (random() * 20000)::int);
		INSERT INTO followed (way) SELECT 'procedure' FROM generate_series(1, 3);
		IF random() < 0.8 THEN
			COMMIT;
		ELSE
			ROLLBACK;
		END IF;
	END LOOP;
END $$;

CREATE UNLOGGED TABLE watermarks (ordinal bigserial, reader text, watermark uuid);
CREATE UNLOGGED TABLE seen_in_transaction (ordinal bigserial PRIMARY KEY, id uuid);
CREATE UNLOGGED TABLE seen_in_pairs (LIKE seen_in_transaction INCLUDING ALL);
CREATE UNLOGGED TABLE seen_in_pages (LIKE seen_in_transaction INCLUDING ALL);
CREATE UNLOGGED TABLE seen_by_function (LIKE seen_in_transaction INCLUDING ALL);
CREATE UNLOGGED TABLE seen_naively (LIKE seen_in_transaction INCLUDING ALL);
CREATE UNLOGGED TABLE progress (last uuid);
INSERT INTO progress VALUES ('00000000-0000-0000-0000-000000000000');
CREATE FUNCTION follow() RETURNS void LANGUAGE plpgsql VOLATILE AS $$
DECLARE
	watermark uuid := uuidv7_fast_watermark();
BEGIN
	INSERT INTO seen_by_function (id)
		SELECT id FROM followed WHERE id >= (SELECT last FROM progress) AND id < watermark ORDER BY id;
	UPDATE progress SET last = watermark;
	INSERT INTO watermarks (reader, watermark) VALUES ('by_function', watermark);
END $$;
});
like($node->safe_psql('postgres', 'EXPLAIN CREATE TABLE by_workers AS SELECT uuidv7_fast() AS id, this_pid() FROM input'),
	qr/Workers Planned: 2/, 'workers make values for CREATE TABLE AS');

my $user = $node->safe_psql('postgres', 'SELECT current_user');

sub connect_as
{
	my ($name) = @_;
	my $session = RawSession->connect($node, user => $user, database => 'postgres', application_name => $name);
	die "$name: $session->{error}\n" if $session->{error} ne '';
	return $session;
}

# Raises the server's error, if any.
sub run_in
{
	my ($session, $sql) = @_;
	my $rows = $session->query($sql);
	die "$session->{error}\n" if $session->{error} ne '';
	return $rows;
}

sub pause
{
	my ($ms) = @_;
	usleep(1000 * rand($ms));
	return;
}

# In a process of its own, whose complaint ends up in a file; returns what waits
# for it, and returns the complaint.
sub in_background
{
	my ($name, $work) = @_;
	my $complaint = PostgreSQL::Test::Utils::tempdir() . "/complaint";
	my $pid = fork // BAIL_OUT("could not fork: $!");
	if ($pid == 0)
	{
		# Not to be caught by what the test's modules do at the end.
		local $SIG{PIPE} = 'IGNORE';
		append_to_file($complaint, "$name: $@") unless eval { $work->(); 1 };
		_exit(0);
	}
	return sub { waitpid($pid, 0); return -e $complaint ? slurp_file($complaint) : $? ? "$name: status $?" : '' };
}

# Writers

my $tables = 0;
my @pieces = (
	sub { 'INSERT INTO followed (way) VALUES (\'row\')' },
	sub { 'INSERT INTO followed VALUES (uuidv7_fast(\'xorshift128+\'), \'row\')' },
	sub { 'INSERT INTO followed SELECT uuidv7_fast_set(' . int(1 + rand 100) . '), \'set\'' },
	sub { 'INSERT INTO followed SELECT unnest(uuidv7_fast_array(' . int(1 + rand 300) . ')), \'array\'' },
	sub { 'INSERT INTO late DEFAULT VALUES' },
	sub { 'SAVEPOINT a; INSERT INTO followed (way) VALUES (\'lost\'); ROLLBACK TO a; INSERT INTO followed (way) VALUES (\'savepoint\');'
		  . 'SAVEPOINT b; INSERT INTO followed (way) VALUES (\'savepoint\'); RELEASE b' },
	sub { 'DO $$ BEGIN BEGIN INSERT INTO followed (way) VALUES (\'lost\'); RAISE division_by_zero;'
		  . 'EXCEPTION WHEN division_by_zero THEN NULL; END; INSERT INTO followed (way) VALUES (\'exception\'); END $$' },
	sub {
		my ($session, $name) = @_;
		my $table = "by_workers_${name}_" . $tables++;
		return 'SET LOCAL parallel_leader_participation = ' . (rand() < 0.5 ? 'on' : 'off')
		  . "; CREATE UNLOGGED TABLE $table AS SELECT uuidv7_fast() AS id, this_pid() AS pid FROM input;"
		  . "INSERT INTO followed SELECT id, CASE pid WHEN $session->{pid} THEN 'leader' ELSE 'worker' END FROM $table;"
		  . "DROP TABLE $table";
	});

sub finish_a_prepared_one
{
	my ($session) = @_;
	my $gid = run_in($session, 'SELECT gid FROM pg_prepared_xacts ORDER BY prepared LIMIT 1');
	my $end = rand() < 0.7 ? 'COMMIT' : 'ROLLBACK';
	run_in($session, "$end PREPARED '$gid'") if $gid ne '';
	return;
}

sub write_transaction
{
	my ($session, $name, $number) = @_;
	my $choice = rand;

	return run_in($session, 'CALL write_and_commit(4)') if $choice < 0.05;
	return run_in($session, $pieces[ rand 4 ]->($session)) if $choice < 0.15;
	return finish_a_prepared_one($session) if $choice < 0.3;

	run_in($session, 'BEGIN');
	run_in($session, "SET LOCAL fast_uuid.ordering = 'durable'") if $durable && rand() < 0.3;
	foreach (0 .. rand 3)
	{
		run_in($session, $pieces[ rand @pieces ]->($session, $name));
		pause(5) if rand() < 0.3;
	}
	pause(20);

	$choice = rand;
	if ($choice < 0.15)
	{
		my $gid = "$name $number";
		run_in($session, "PREPARE TRANSACTION '$gid'");
		return if rand() < 0.5;
		pause(20);
		return run_in($session, (rand() < 0.7 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$gid'");
	}
	return run_in($session, 'ROLLBACK') if $choice < 0.22;
	return run_in($session, 'SELECT 1 / 0') if $choice < 0.25;
	if ($choice < 0.27)
	{
		$session->quit;
		$session->{closed} = 1;
		return;
	}
	return run_in($session, 'COMMIT');
}

# Cancelled, killed, a division by zero; the prepared transaction was finished, or
# is being finished, by another.
my $provoked = qr/^(?:writer \d+: )?(57014|57P01|22012|42704 prepared transaction|55000 prepared transaction)/;

# Loads the library, so that the session's workers may generate.
sub start_writer
{
	my ($name) = @_;
	my $session = connect_as("writer $name");
	$session->{pid} = run_in($session, 'SELECT pg_backend_pid() WHERE uuidv7_fast() IS NOT NULL');
	return $session;
}

sub write_until
{
	my ($end, $name) = @_;
	my $session;

	for (my $number = 0; clock_gettime(CLOCK_MONOTONIC) < $end; $number++)
	{
		eval {
			$session = start_writer($name) if !$session || $session->{closed};
			write_transaction($session, $name, $number);
			1;
		} or do
		{
			die $@ unless $@ =~ /$provoked/;

			# It can be cancelled, too.
			$session->query('ROLLBACK') foreach $session ? (1 .. 2) : ();
		};
	}
	return;
}

# Readers

sub read_pass
{
	my ($session, $table, $from, $to) = @_;
	run_in($session, "INSERT INTO seen_$table (id) SELECT id FROM followed WHERE id >= '$from' AND id < '$to' ORDER BY id");
	run_in($session, "INSERT INTO watermarks (reader, watermark) VALUES ('$table', '$to')");
	return;
}

my %reader = (
	in_transaction => sub {
		my ($session, $last) = @_;
		run_in($session, 'BEGIN');
		my $watermark = run_in($session, 'SELECT uuidv7_fast_watermark()');
		read_pass($session, 'in_transaction', $$last, $watermark);
		run_in($session, 'COMMIT');
		$$last = $watermark;
	},
	in_pairs => sub {
		my ($session, $last) = @_;
		my $watermark = run_in($session, 'SELECT uuidv7_fast_watermark()');
		read_pass($session, 'in_pairs', $$last, $watermark);
		$$last = $watermark;
	},
	# Remembers the last row, not the watermark.
	in_pages => sub {
		my ($session, $last) = @_;
		my $watermark = run_in($session, 'SELECT uuidv7_fast_watermark()');
		run_in($session, "INSERT INTO watermarks (reader, watermark) VALUES ('in_pages', '$watermark')");
		my ($rows, $latest);
		do
		{
			($rows, $latest) = split /\|/, run_in($session, 'WITH page AS (INSERT INTO seen_in_pages (id)'
				  . " SELECT id FROM followed WHERE id > '$$last' AND id < '$watermark' ORDER BY id LIMIT 1000 RETURNING id)"
				  . q{ SELECT concat(count(*), '|', (array_agg(id ORDER BY id DESC))[1]) FROM page});
			$$last = $latest if $rows > 0;
		} while ($rows == 1000);
	},
	by_function => sub {
		my ($session) = @_;
		run_in($session, 'SELECT follow()');
	},
	naively => sub {
		my ($session, $last) = @_;
		run_in($session, "INSERT INTO seen_naively (id) SELECT id FROM followed WHERE id > '$$last' ORDER BY id");
		my $latest = run_in($session, 'SELECT id FROM seen_naively ORDER BY ordinal DESC LIMIT 1');
		$$last = $latest if $latest ne '';
	});

# Once more when all has ended.
sub read_until_stopped
{
	my ($name) = @_;
	my $session = connect_as("reader $name");
	my $last = '00000000-0000-0000-0000-000000000000';
	my $stopped;

	do
	{
		$stopped = -e $stop;
		$reader{$name}->($session, \$last);
		pause(10);
	} until $stopped;
	$session->quit;
	return;
}

my $began = clock_gettime(CLOCK_MONOTONIC);
my $end = $began + $seconds;
my @readers = map { my $name = $_; in_background("reader $name", sub { read_until_stopped($name) }) } sort keys %reader;
my @writers = map { my $name = $_; in_background("writer $name", sub { srand($name); write_until($end, $name) }) } 1 .. $writers;

# Meanwhile the clock jumps, and writers are cancelled and killed.
my ($jumps, %interrupted) = (0, pg_cancel_backend => 0, pg_terminate_backend => 0);
my $dba = connect_as('dba');
for (my $turn = 0; clock_gettime(CLOCK_MONOTONIC) < $end; $turn++)
{
	if (fake_clock_installed() && clock_gettime(CLOCK_MONOTONIC) > $began + $seconds / 2)
	{
		set_clock_offset($node, ('+0', '-1', '+2', '-0.01', '-60', '+0.5', '-59.9')[ $jumps++ % 7 ]);
	}
	if ($turn % 4 == 0)
	{
		my $function = rand() < 0.7 ? 'pg_cancel_backend' : 'pg_terminate_backend';
		$interrupted{$function} += run_in($dba,
			"SELECT count(*) FROM (SELECT $function(pid) FROM (SELECT pid FROM pg_stat_activity"
			  . " WHERE application_name LIKE 'writer %' AND backend_type = 'client backend' AND state <> 'idle'"
			  . " ORDER BY random() LIMIT 1) AS victim OFFSET 0) AS interrupted");
	}
	usleep(25_000);
}
set_clock_offset($node, '+0') if fake_clock_installed();
is(join("\n", grep { $_ ne '' } map { $_->() } @writers), '', "$writers writers have written for $seconds s");
cmp_ok($interrupted{$_}, '>', 0, "$_ was called $interrupted{$_} times") foreach sort keys %interrupted;
cmp_ok($jumps, '>', 0, "the clock jumped $jumps times") if fake_clock_installed();

my @prepared = split /\n/, run_in($dba, 'SELECT gid FROM pg_prepared_xacts');
run_in($dba, (rand() < 0.5 ? 'COMMIT' : 'ROLLBACK') . " PREPARED '$_'") foreach @prepared;
append_to_file($stop, '');
is(join("\n", grep { $_ ne '' } map { $_->() } @readers), '', 'the readers have read on to the end');
$dba->quit;

my $rows = $node->safe_psql('postgres', 'SET enable_indexonlyscan = off; SELECT count(*) FROM followed');
note "$rows rows; prepared transactions left at the end: " . @prepared;
note $node->safe_psql('postgres', 'SELECT way, count(*) FROM followed GROUP BY way ORDER BY way');
my @ways = split /\n/, $node->safe_psql('postgres', 'SELECT DISTINCT way FROM followed ORDER BY way');
is("@ways", join(' ', 'array', 'deferred trigger', 'exception', 'leader', 'procedure', 'row', 'savepoint', 'set', 'worker'),
	'rows were committed that were made in every way');

# Rows that a reader has missed, those that it has seen twice or that never
# existed, and those that came after a greater one.
sub verdict
{
	my ($reader) = @_;
	my $verdict = $node->safe_psql('postgres', qq{
SELECT (SELECT count(*) FROM followed LEFT JOIN seen_$reader AS seen USING (id) WHERE seen.id IS NULL),
       (SELECT count(*) - count(DISTINCT followed.id) FROM seen_$reader LEFT JOIN followed USING (id)),
       (SELECT count(*) FROM (SELECT id, lag(id) OVER (ORDER BY ordinal) AS before FROM seen_$reader) AS pairs WHERE id <= before)});
	note "$reader: " . $node->safe_psql('postgres', "SELECT count(*) FROM seen_$reader") . " rows seen; missed, too many, out of order: $verdict";
	return $verdict;
}
foreach my $reader (grep { $_ ne 'naively' } sort keys %reader)
{
	is(verdict($reader), '0|0|0', "the reader $reader: each committed row once, in ascending order");
	my ($passes, $back) = split /\|/, $node->safe_psql('postgres',
		"SELECT count(*), count(*) FILTER (WHERE watermark < before) FROM"
		  . " (SELECT watermark, lag(watermark) OVER (ORDER BY ordinal) AS before FROM watermarks WHERE reader = '$reader') AS pairs");
	is($back, 0, "the reader $reader: $passes watermarks, none went back");
}
my ($missed) = split /\|/, verdict('naively');
cmp_ok($missed, '>', 0, "the naive reader has missed rows: $missed of $rows");

$node->stop;

# A worker whose leader has gone finds its shared memory gone too.
my @errors = grep {
	/\b(ERROR|FATAL|PANIC|TRAP):/
	  && !/canceling statement due to user request$|due to administrator command$|: {2}division by zero$/
	  && !/could not (map|attach to) dynamic shared (memory segment|area)$|lost connection to parallel worker$/
	  && !/prepared transaction with identifier .* (is busy|does not exist)$/
} split /\n/, slurp_file($node->logfile);
is(join("\n", @errors), '', 'no error in the server log that was not provoked');
done_testing();
