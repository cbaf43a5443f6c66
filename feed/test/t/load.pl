# Tables under load: sessions write in every way, in transactions that end late and in every
# way, and are cancelled and killed.  Readers below the watermark get each committed row
# exactly once, in ascending order; without the watermark rows are missed.
#
# At night there are more: FEED_LOAD_ROWS=1000000 script/test feed/load (ten minutes).  Behind
# PgBouncer, too, where that is installed.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;

my $rows = $ENV{FEED_LOAD_ROWS} // 30_000;

# A commit waits for others before it is flushed, and so stands between "begun" and
# "visible" for a while.
my $node = start_node('load', q{
max_connections = 80
fsync = on
commit_delay = 2000
commit_siblings = 1
});

# By follow() with an identity; by next(), drawn first and as a default; by stamp(), with
# updates; and through a partitioned table whose key holds more than the number.
$node->safe_psql('postgres', q{
CREATE TABLE follow (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, way text);
SELECT fast_feed.enable('follow', 'id');
CREATE TABLE next (id bigserial PRIMARY KEY, way text);
ALTER TABLE next ALTER id SET DEFAULT fast_feed.next('next_id_seq');
SELECT fast_feed.enable('next', 'id');
CREATE TABLE stamp (key int PRIMARY KEY, id bigserial, way text);
CREATE INDEX ON stamp (id);
SELECT fast_feed.enable('stamp', 'id', updates => true);
INSERT INTO stamp (key, way) SELECT n, 'first' FROM generate_series(1, 200) AS n;
CREATE TABLE parts (tenant int, id bigserial, way text, PRIMARY KEY (tenant, id)) PARTITION BY LIST (tenant);
CREATE TABLE parts_0 PARTITION OF parts FOR VALUES IN (0);
CREATE TABLE parts_1 PARTITION OF parts FOR VALUES IN (1, 2) PARTITION BY LIST (tenant);
CREATE TABLE parts_1_1 PARTITION OF parts_1 FOR VALUES IN (1);
CREATE TABLE parts_1_2 PARTITION OF parts_1 FOR VALUES IN (2);
CREATE INDEX ON parts (id);
SELECT fast_feed.enable('parts', 'id');

CREATE VIEW follow_view AS SELECT * FROM follow;
CREATE VIEW next_view AS SELECT way FROM next;
CREATE FUNCTION insert_way() RETURNS trigger LANGUAGE plpgsql AS
	$$ BEGIN INSERT INTO next (way) VALUES (NEW.way); RETURN NEW; END $$;
CREATE TRIGGER instead INSTEAD OF INSERT ON next_view FOR EACH ROW EXECUTE FUNCTION insert_way();
CREATE TABLE late (way text);
CREATE FUNCTION write_late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN INSERT INTO follow (way) VALUES (NEW.way); INSERT INTO parts (tenant, way) VALUES (1, NEW.way); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON late DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION write_late();
CREATE FUNCTION several(n int, way text) RETURNS SETOF text LANGUAGE sql AS
	'SELECT way FROM generate_series(1, n)';
CREATE FUNCTION by_hundreds(way text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. 100 LOOP
		BEGIN
			INSERT INTO follow (way) VALUES (way);
			IF i % 3 = 0 THEN RAISE division_by_zero; END IF;
		EXCEPTION WHEN division_by_zero THEN
			INSERT INTO next (way) VALUES (way);
		END;
	END LOOP;
END $$;
CREATE FUNCTION draw_first(way text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE numbers bigint[] := ARRAY(SELECT fast_feed.next('next_id_seq') FROM generate_series(1, 10));
BEGIN
	FOR i IN REVERSE 10 .. 1 LOOP INSERT INTO next VALUES (numbers[i], way); END LOOP;
END $$;
CREATE FUNCTION read_stable(after bigint) RETURNS SETOF text STABLE LANGUAGE plpgsql AS $$
BEGIN
	RETURN QUERY SELECT lpad(id::text, 19, '0') FROM follow
	 WHERE id > after AND id < fast_feed.watermark('follow') ORDER BY id;
END $$;
CREATE VIEW feed AS SELECT *, lpad(id::text, 19, '0') AS number FROM follow WHERE id < fast_feed.watermark('follow');
});

# What each way writes, of which at least one row must have been committed.
my %ways = (
	values => "INSERT INTO follow (way) VALUES ('values'), ('values')",
	select => "INSERT INTO follow (way) SELECT several(50, 'select')",
	cte => "WITH a AS (INSERT INTO follow (way) VALUES ('cte') RETURNING id)"
	  . " INSERT INTO follow (way) SELECT 'cte' FROM a, generate_series(1, 3)",
	merge => "MERGE INTO follow USING (SELECT -1 AS x FROM generate_series(1, 5)) AS m ON id = x"
	  . " WHEN NOT MATCHED THEN INSERT (way) VALUES ('merge')",
	conflict => "INSERT INTO follow (way) SELECT several(5, 'conflict') ON CONFLICT (id) DO NOTHING",
	overriding => "INSERT INTO follow OVERRIDING USER VALUE VALUES (7, 'overriding')",
	view => "INSERT INTO follow_view (way) VALUES ('view')",
	instead => "INSERT INTO next_view SELECT several(3, 'instead')",
	default => "INSERT INTO next (way) SELECT several(20, 'default')",
	'drawn first' => "SELECT draw_first('drawn first')",
	initplan => "INSERT INTO next VALUES ((SELECT fast_feed.next('next_id_seq')), 'initplan')",
	plain => "INSERT INTO next VALUES (nextval('next_id_seq'), 'plain')",
	hundreds => "SELECT by_hundreds('hundreds')",
	deferred => "INSERT INTO late VALUES ('deferred')",
	generic => "EXECUTE generic",
	copy => "COPY follow (way) FROM PROGRAM 'yes copy | head -n 200'",
	'copy parts' => "COPY parts (tenant, way) FROM PROGRAM 'for i in 0 1 2 1 0 2; do echo \"\$i\tcopy parts\"; done'",
	parts => "INSERT INTO parts (tenant, way) SELECT n % 3, 'parts' FROM generate_series(1, 30) AS n",
	stamp => "INSERT INTO stamp (key, way) SELECT max(key) + 1, 'stamp' FROM stamp ON CONFLICT (key) DO UPDATE SET way = 'stamp'",
	update => "UPDATE stamp SET way = 'update' WHERE key = 1 + trunc(200 * random())",
	'update of some' => "UPDATE stamp SET way = 'update of some' WHERE key IN (SELECT key FROM stamp ORDER BY random() LIMIT 5 FOR UPDATE SKIP LOCKED)");

# Two at a time would deadlock on rows of stamp: that is one of the errors that it survives.
my @all = map { $ways{$_} } sort keys %ways;
push @all, map { in_savepoints($ways{$_}) } 'values', 'parts', 'drawn first', 'update';

sub write_once
{
	my ($session, $number) = @_;
	my $choice = rand;
	run_in($session, "PREPARE generic AS INSERT INTO follow (way) SELECT several(2, 'generic');"
		  . ' SET plan_cache_mode = force_generic_plan') if !$session->{prepared}++;
	return run_in($session, $ways{values}) if $choice < 0.15;
	return run_in($session, $ways{copy}) if $choice < 0.2;
	return run_in($session, "BEGIN; $ways{parts}; SELECT 1 / 0") if $choice < 0.23;
	if ($choice < 0.26)
	{
		run_in($session, "BEGIN; $ways{generic}; COMMIT");
		$session->{prepared} = 0;
		return run_in($session, 'DISCARD ALL');
	}
	return write_transaction($session, "$session->{pid} $number", @all);
}

sub numbers
{
	my ($table, $last, $options) = (@_, '');
	return "SELECT lpad(id::text, 19, '0') FROM $table"
	  . " WHERE id > $last AND ${\ below($table)} $options ORDER BY id LIMIT 500";
}

# In a transaction, whose snapshot is from before the read.
sub in_transaction
{
	my ($begin, $read) = @_;
	return sub {
		my ($session, $last) = @_;
		run_in($session, "BEGIN $begin");
		run_in($session, 'SELECT count(*) FROM late');
		pause(30);
		my $numbers = run_in($session, $read->($session, $last));
		run_in($session, 'COMMIT');
		return $numbers;
	};
}

sub cursor
{
	my ($session, $last) = @_;
	run_in($session, 'BEGIN');
	run_in($session, 'DECLARE c CURSOR FOR ' . numbers('follow', $last));
	pause(20);
	my @all;
	while ((my $some = run_in($session, 'FETCH 50 c')) ne '')
	{
		push @all, $some;
		run_in($session, q{SELECT fast_feed.watermark('follow')});
	}
	run_in($session, 'COMMIT');
	return join "\n", @all;
}

# A snapshot that one session exports, and another one reads by.
my $exporter;
sub exported
{
	my ($session, $last) = @_;
	$exporter //= connect_to($node, 'exporter');
	run_in($exporter, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	my $snapshot = run_in($exporter, 'SELECT pg_export_snapshot()');
	pause(10);
	run_in($session, 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	run_in($session, "SET TRANSACTION SNAPSHOT '$snapshot'");
	my $numbers = run_in($session, numbers('follow', $last));
	run_in($session, 'COMMIT');
	run_in($exporter, 'COMMIT');
	return $numbers;
}

my $parallel = 'SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0;'
  . ' SET min_parallel_table_scan_size = 0; SET min_parallel_index_scan_size = 0; SET enable_indexscan = off';
my $follow = sub { numbers('follow', $_[1]) };
my %readers = (
	'follow: statement' => [ 'follow', $follow ],
	'follow: read only' => [ 'follow', in_transaction('READ ONLY', $follow) ],
	'follow: repeatable read' => [ 'follow', in_transaction('ISOLATION LEVEL REPEATABLE READ', $follow) ],
	'follow: serializable' => [ 'follow', in_transaction('ISOLATION LEVEL SERIALIZABLE READ ONLY', $follow) ],
	'follow: cursor' => [ 'follow', \&cursor ],
	'follow: exported snapshot' => [ 'follow', \&exported ],
	'follow: stable function' => [ 'follow', sub { "SELECT read_stable($_[1])" } ],
	'follow: view' => [ 'follow', sub { "SELECT number FROM feed WHERE id > $_[1] ORDER BY id LIMIT 400" } ],
	'follow: parallel plan' => [ 'follow', sub {
		run_in($_[0], $parallel) if !$_[0]{parallel}++;
		return numbers('follow', $_[1]) =~ s/(fast_feed\.watermark\('follow'\))/(SELECT $1)/r =~ s/LIMIT 500/LIMIT 50000/r } ],
	'follow: after DISCARD ALL' => [ 'follow', sub { run_in($_[0], 'DISCARD ALL'); return numbers('follow', $_[1]) } ],
	'next' => [ 'next', sub { numbers('next', $_[1]) } ],
	'next: repeatable read' => [ 'next',
		in_transaction('ISOLATION LEVEL REPEATABLE READ', sub { numbers('next', $_[1]) }) ],
	'parts' => [ 'parts', sub { numbers('parts', $_[1]) } ]);

# Behind a pooler each transaction runs in whichever session is free.
my $pooler = start_pooler($node);
$readers{'follow: PgBouncer'} = [ 'follow', $follow, $pooler ] if $pooler;
$readers{'follow: PgBouncer, repeatable read'} =
  [ 'follow', in_transaction('ISOLATION LEVEL REPEATABLE READ', $follow), $pooler ] if $pooler;
SKIP:
{
	skip('PgBouncer is not installed', 1) if !$pooler;
	pass('PgBouncer in transaction mode');
}

my $load = FeedWriters->new_load;
foreach my $name (sort keys %readers)
{
	my $read = $readers{$name}[1];
	$load->reader($name, $readers{$name}[2] // $node, sub {
		my ($session, $last) = @_;
		my $numbers = $read->($session, $last);
		return $numbers =~ /^SELECT/ ? run_in($session, $numbers) : $numbers;
	}, from => 0, survives => qr/^55000 no watermark/);
}

# Each change is read once, as "number key"; a later change of a row may have come before it
# was read.
$load->reader('stamp', $node, sub {
	my ($session, $last) = @_;
	return run_in($session, "SELECT lpad(id::text, 19, '0') || ' ' || key FROM stamp"
		  . " WHERE id > $last AND ${\ below('stamp')} ORDER BY id LIMIT 100");
}, from => 0);
$load->reader('naive', $node, sub {
	run_in($_[0], "SELECT lpad(id::text, 19, '0') FROM follow WHERE id > $_[1] ORDER BY id LIMIT 500") },
	from => 0);

# Cancelled, killed, also the program of COPY; a division by zero, a number that was drawn
# before, a deadlock, a key that is there.
my $provoked = qr/^(?:closed|57014|57P01|22012|23514|38000|40P01|23505|26000)/;
$load->writer("writer $_", $node, \&write_once, survives => $provoked) foreach 1 .. 8;

$load->writer("pooled $_", $pooler, sub {
	my ($session) = @_;
	run_in($session, $_) foreach 'BEGIN', $ways{select}, $ways{parts};
	pause(20);
	run_in($session, 'COMMIT');
}, survives => $provoked) foreach $pooler ? (1 .. 4) : ();

# Until each way has been committed, there are enough rows, and sessions in a transaction have
# been interrupted.
my $dba = connect_to($node, 'dba');
my %interrupted = (pg_cancel_backend => 0, pg_terminate_backend => 0);
my $missing_ways = q{SELECT count(*) FROM unnest('{%s}'::text[]) AS w
  WHERE w NOT IN (SELECT way FROM follow UNION SELECT way FROM next UNION SELECT way FROM parts
  UNION SELECT way FROM stamp)};
my $expected = join ',', sort keys %ways;
for (my $turn = 0; grep({ !$_ } values %interrupted)
	|| run_in($dba, 'SELECT sum(last_value) FROM (TABLE follow_id_seq UNION ALL TABLE next_id_seq'
		  . ' UNION ALL TABLE parts_id_seq UNION ALL TABLE stamp_id_seq) AS s') < $rows
	|| run_in($dba, sprintf $missing_ways, $expected) > 0; $turn++)
{
	# Whom all writers wait for, as it has changed rows.
	finish_prepared($dba) if $turn % 5 == 0;
	my $function = $turn % 12 ? 'pg_cancel_backend' : 'pg_terminate_backend';
	$interrupted{$function} += run_in($dba, qq{
SELECT count(*) FROM (
  SELECT $function(pid) FROM (
    SELECT pid FROM pg_stat_activity
     WHERE application_name LIKE 'writer %' AND backend_type = 'client backend' AND state <> 'idle'
     ORDER BY random() LIMIT 1) AS victim OFFSET 0) AS done}) if $turn % 4 == 0;
	pause(50);
}

# They can wait for rows of prepared transactions, which nobody else ends any more.
append_to_file($load->file('enough'), '');
until (run_in($dba, q{SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'writer %'}) == 0)
{
	finish_prepared($dba);
	pause(50);
}
$load->end_writers;
finish_prepared($dba) while run_in($dba, 'SELECT count(*) FROM pg_prepared_xacts') > 0;
$load->commit_late($node, $ways{values},
	"INSERT INTO follow (way) VALUES ('values') RETURNING lpad(id::text, 19, '0')", 'naive');
$load->end_readers;

my %committed = map { $_ => $node->safe_psql('postgres', "SELECT lpad(id::text, 19, '0') FROM $_") }
  'follow', 'next', 'parts';
$load->check($_, $committed{ $readers{$_}[0] }) foreach sort keys %readers;
$load->check('naive', $committed{follow}, 1);

# The latest change of each row was read, after all others of that row.
my %last_change = map { reverse split / / } split /\n+/, $load->seen('stamp');
is_deeply(\%last_change, { map { split /\|/ } split /\n/,
	$node->safe_psql('postgres', "SELECT key, lpad(id::text, 19, '0') FROM stamp") },
	'stamp: the latest change of each row is read last');
my @changes = map { /^(\d+)/ } split /\n+/, $load->seen('stamp');
is_deeply(\@changes, [ sort { $a <=> $b } keys %{ { map { $_ => 1 } @changes } } ],
	'stamp: in ascending order, none twice');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
