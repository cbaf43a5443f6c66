# The recipe of doc/change-feeds.md for changes under load: 8 sessions change two tables
# in every way, one of them partitioned, with rollbacks and delays, and logical
# replication applies it all on another server.  A replica that follows a table there or
# here ends up equal to it; that of a reader without the watermark does not.  The versions
# of a row ascend in the order of its updates.
#
# FAST_UUID_FEED_TRANSACTIONS: how many each session tries (100).

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;

my $transactions = $ENV{FAST_UUID_FEED_TRANSACTIONS} // 100;
my @writers = 1 .. 8;
my %columns = (product => 'key, name', moving => 'key, part, name');
my @tables  = sort keys %columns;
my $dir  = PostgreSQL::Test::Utils::tempdir();
my $stop = "$dir/stop";

# The page's statements: the tables and triggers, and what reads.
my @recipe = grep { /\bproduct/ } map { $_->{sql} } examples('doc/change-feeds.md');
my ($read) = map { /AS\n(.*?);/s } grep { /PREPARE next_changes/ } @recipe;
my $setup = join '', grep { !/PREPARE/ } @recipe;

# The same for a table whose rows move between partitions.
my $moving = $setup =~ s/product/moving/gr;
$moving =~ s/CREATE TABLE moving \(key bigint PRIMARY KEY,(.*?)\);/CREATE TABLE moving (key bigint, part int DEFAULT 0, PRIMARY KEY (key, part),$1) PARTITION BY LIST (part);
CREATE TABLE moving_0 PARTITION OF moving FOR VALUES IN (0);
CREATE TABLE moving_1 PARTITION OF moving FOR VALUES IN (1);/ or die;

my ($publisher, $subscriber) = map {
	my $settings = "max_connections = 60\ndeadlock_timeout = '20 ms'";
	my $node = start_feed($_, $settings, allows_streaming => 'logical');
	$node->safe_psql('postgres', "$setup\n$moving");
	$node;
} qw(publisher subscriber);

# Of each update its number in its row's history, and the version that it gave.
$publisher->safe_psql('postgres', q{
CREATE TABLE owner (id int PRIMARY KEY);
INSERT INTO owner SELECT generate_series(0, 9);
CREATE SEQUENCE fresh START 1000;
CREATE TABLE history (incarnation uuid, number int, version uuid);
CREATE FUNCTION count_update() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN NEW.number := OLD.number + 1; RETURN NEW; END';
CREATE FUNCTION note_update() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN INSERT INTO history VALUES (NEW.incarnation, NEW.number, NEW.version); RETURN NULL; END'});
foreach my $table (@tables)
{
	$publisher->safe_psql('postgres', qq{
ALTER TABLE $table ADD owner int REFERENCES owner ON DELETE CASCADE ON UPDATE CASCADE,
	ADD incarnation uuid DEFAULT gen_random_uuid(), ADD number int DEFAULT 0;
CREATE TRIGGER count_update BEFORE UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION count_update();
CREATE TRIGGER note_update AFTER UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION note_update();
INSERT INTO $table (key) SELECT n FROM generate_series(1, 200) AS n;
CREATE PUBLICATION $table FOR TABLE $table ($columns{$table}) WITH (publish_via_partition_root = true)});
	$subscriber->safe_psql('postgres', join ';', map { "ALTER TABLE $table ENABLE ALWAYS TRIGGER $_" } qw(zz_stamp gone key_gone no_truncate));
	$subscriber->safe_psql('postgres', "ALTER TABLE ${table}_gone ENABLE ALWAYS TRIGGER zz_stamp");
	$subscriber->safe_psql('postgres', "CREATE SUBSCRIPTION $table CONNECTION '${\ $publisher->connstr} dbname=postgres' PUBLICATION $table");
}
$subscriber->wait_for_subscription_sync($publisher, $_) foreach @tables;

# One statement or two: %t is a table, %k, %n and %o are a key, a new one and an owner.  A
# key that can be there already comes only into the table that refuses it.
append_to_file("$dir/copied", join '', map { "$_\tcopied\n" } 500 .. 519);
chmod 0755, $dir;
my %change = (
	insert => "INSERT INTO %t (key, name, owner) VALUES (%n, 'insert', %o)",
	again => "DELETE FROM product WHERE key = %k; INSERT INTO product (key, name) VALUES (%k, 'again')",
	update => "UPDATE %t SET name = 'update' WHERE key BETWEEN %k AND %k + 4",
	lock => 'SELECT FROM %t WHERE key = %k FOR UPDATE; UPDATE %t SET name = \'lock\' WHERE key = %k',
	delete => 'DELETE FROM %t WHERE key BETWEEN %k AND %k + 1',
	key => 'UPDATE %t SET key = %n WHERE key = %k',
	back => 'UPDATE product SET key = %k WHERE key = (SELECT key FROM product WHERE key > 1000 LIMIT 1)',
	adopt => 'UPDATE %t SET owner = %o WHERE key BETWEEN %k AND %k + 9',
	cascade => 'DELETE FROM owner WHERE id = %o; INSERT INTO owner VALUES (%o)',
	cascaded_update => 'UPDATE owner SET id = id + 10 WHERE id = %o; UPDATE owner SET id = id - 10 WHERE id = 10 + %o',
	copy => "DELETE FROM product WHERE key BETWEEN 500 AND 519; COPY product (key, name) FROM '$dir/copied'",
	savepoint => 'SAVEPOINT a; DELETE FROM %t WHERE key = %k; UPDATE %t SET name = \'lost\' WHERE key = %k + 1; ROLLBACK TO a;'
	  . 'UPDATE %t SET name = \'savepoint\' WHERE key = %k',
	exception => 'DO $$ BEGIN DELETE FROM %t WHERE key = %k; RAISE division_by_zero; EXCEPTION WHEN division_by_zero THEN'
	  . ' UPDATE %t SET name = \'exception\' WHERE key = %k; END $$',
	merge => "MERGE INTO %t AS t USING generate_series(%k, %k + 3) AS k ON t.key = k WHEN MATCHED AND k % 4 = 0 THEN DELETE"
	  . " WHEN MATCHED THEN UPDATE SET name = 'merge' WHEN NOT MATCHED THEN INSERT (key, name) VALUES (%n, 'merge')",
	upsert => "INSERT INTO product (key, name) VALUES (%k, 'upsert') ON CONFLICT (key) DO UPDATE SET name = 'upserted'",
	move => 'UPDATE moving SET part = 1 - part WHERE key BETWEEN %k AND %k + 4',
	move_key => 'UPDATE moving SET part = 1 - part, key = %n WHERE key = %k',
	truncate => 'TRUNCATE %t');

sub change
{
	my ($session, $way) = @_;
	my $sql = $change{$way};
	my %with = (t => $tables[ rand @tables ], k => int(rand 200), o => int(rand 10), n => "nextval('fresh')");
	$sql =~ s/%([tkon])/$with{$1}/g;
	return run_in($session, $sql);
}

# Each way is tried by each session, then what chance brings.  What others do at the same
# time can fail a statement: a row that moved, a deadlock, a key or an owner that is there
# or gone.  TRUNCATE always fails.
my $provoked = qr/^(?:40001|40P01|23505|23503|21000|P0001 readers do not see TRUNCATE)/;

sub write_changes
{
	my ($session) = @_;
	my @ways = sort keys %change;
	foreach my $number (1 .. $transactions)
	{
		eval {
			my @tried = ($ways[ $number % @ways ], map { $ways[ rand @ways ] } 1 .. rand 3);
			run_in($session, $number % 10 ? 'BEGIN' : 'BEGIN ISOLATION LEVEL REPEATABLE READ');
			foreach my $way (@tried)
			{
				change($session, $way);
				pause(10);
			}
			my $end = rand() < 0.15 ? 'ROLLBACK' : 'COMMIT';
			run_in($session, $end);
			append_to_file("$dir/done", join '', map { "$_\n" } @tried) if $end eq 'COMMIT';
			1;
		} or do
		{
			die $@ unless $@ =~ $provoked;
			run_in($session, 'ROLLBACK');
		};
	}
	return;
}

# Read until nothing is left; at the end, until the watermark has passed all versions.
sub reader
{
	my ($table, $statement) = @_;
	$statement =~ s/product/$table/g;
	return sub {
		my ($session, $last) = @_;
		my $all = '';
		while (1)
		{
			my $final = -e $stop && run_in($session, "SELECT NOT EXISTS (SELECT FROM $table WHERE version >= uuidv7_feed_watermark())") eq 't';
			my $after = substr($last, 0, 36);
			my $rows = run_in($session, "SELECT concat_ws(' ', version, key, $table) FROM (${\ ($statement =~ s/\$1/'$after'/r)}) AS read");
			return $all if $rows eq '' && ($final || !-e $stop);
			next if $rows eq '';
			$all .= ($all eq '' ? '' : "\n") . $rows;
			$last = $1 if $rows =~ /(.+)\z/;
		}
	};
}

my $naive = $read =~ s/ AND version < uuidv7_feed_watermark\(\)//r;
my %followed = (
	(map { ("$_ of the publisher" => [ $publisher, $_, $read ], "$_ of the subscriber" => [ $subscriber, $_, $read ]) } @tables),
	'product, naively' => [ $publisher, 'product', $naive ]);
my @readers = map { follow($followed{$_}[0], $_, "$dir/$_", $stop, reader(@{ $followed{$_} }[ 1, 2 ])) } sort keys %followed;
my @sessions = map { my $n = $_; in_background("writer $n", sub { srand($n); write_changes(connect_to($publisher, "writer $n")) }) } @writers;
is(join("\n", map { $_->() } @sessions), '', @writers . ' sessions have written');

# Whatever chance brought: the naive reader passes the version of an open transaction.
commit_late($publisher, "$dir/product, naively", "INSERT INTO product (key, name) VALUES (-1, 'late')", 'INSERT INTO product (key) VALUES (-2) RETURNING version');
$publisher->wait_for_catchup($_) foreach @tables;
append_to_file($stop, '');
is(join("\n", map { $_->() } @readers), '', 'the readers have read on to the end');

# What a reader was given, applied in that order, against the table; the keys that differ.
foreach my $name (sort keys %followed)
{
	my ($node, $table, $statement) = @{ $followed{$name} };
	my %replica;
	foreach my $line (map { split /\n/ } passes("$dir/$name"))
	{
		my (undef, $key, $row) = split / /, $line, 3;
		$replica{$key} = $row;
		delete $replica{$key} unless defined $row;
	}
	my %rows = map { split / /, $_, 2 } split /\n/, $node->safe_psql('postgres', "SELECT key, to_jsonb($table) FROM $table") =~ s/\|/ /gr;
	my $deleted = $node->safe_psql('postgres', "SELECT count(*) FROM ${table}_gone");
	my @differ = grep { ($replica{$_} // '') ne ($rows{$_} // '') } keys %{ { %replica, %rows } };
	note "$name: ${\ scalar keys %rows} rows, $deleted tombstones, ${\ scalar @differ} keys differ";
	$statement eq $naive
	  ? ok(scalar(grep { $_ == -1 } @differ), "$name: the replica differs")
	  : is("@differ", '', "$name: the replica equals the table");
}

is( $publisher->safe_psql('postgres', q{
SELECT count(*) FROM (SELECT version <= lag(version) OVER (PARTITION BY incarnation ORDER BY number) AS descends FROM history) AS pairs WHERE descends}),
	'0', 'the versions of a row ascend in the order of its updates');
like($publisher->safe_psql('postgres', 'SET enable_seqscan = off; SET enable_sort = off; EXPLAIN (COSTS OFF) ' . $read =~ s/\$1/uuidv7_fast_min(now())/r),
	qr/\ALimit.*Merge Append\n.*Index Cond: [^\n]*watermark.*Index Cond: [^\n]*watermark/s, 'both tables are read by index conditions, in order');

my %done = map { $_ => 1 } split /\n/, slurp_file("$dir/done");
is(join(' ', grep { !$done{$_} } sort keys %change), 'truncate', 'transactions with each way but TRUNCATE were committed');

# A key that was deleted and inserted again, by a transaction whose id is the earlier one:
# it waits between the trigger and the index.
$publisher->safe_psql('postgres', q{
INSERT INTO product (key, name) VALUES (7, 'first') ON CONFLICT (key) DO UPDATE SET name = 'first';
CREATE FUNCTION held(name text) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_xact_lock(1) WHERE name = 'held'; RETURN true; END $$;
ALTER TABLE product ADD CHECK (held(name))});
my ($deletes, $inserts) = map { connect_to($publisher, $_) } qw(deletes inserts);
my $waits_for = sub {
	$publisher->poll_query_until('postgres', "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE application_name = 'inserts' AND wait_event = '$_[0]')")
	  or BAIL_OUT("the insertion does not wait for $_[0]");
};
my $before = run_in($deletes, 'SELECT uuidv7_feed_id()');
run_in($deletes, 'SELECT pg_advisory_lock(1)');
$inserts->send(q{INSERT INTO product (key, name) VALUES (7, 'held')});
$waits_for->('advisory');
run_in($deletes, 'BEGIN');
run_in($deletes, 'DELETE FROM product WHERE key = 7');
run_in($deletes, 'SELECT pg_advisory_unlock(1)');
$waits_for->('transactionid');
run_in($deletes, 'COMMIT');
$inserts->receive;
is($inserts->{error}, '', 'the insertion was committed last');
is(run_in($deletes, "SELECT string_agg(key || ' ' || (product ->> 'name'), ', ') FROM (${\ ($read =~ s/\$1/'$before'/r)}) AS read"),
	'7 held, 7 held', 'both its change and the later deletion tell that it is there');

# There always is an open transaction that is older than the latest update of a row.  No
# version of the row is delivered, but each tombstone is, if updates leave them.
my ($updates, @holders) = map { connect_to($publisher, $_) } qw(updates first second);
my $delivered = sub { "SELECT count(*) FROM (${\ ($read =~ s/\$1/'$before'/r)}) AS read WHERE key = 8" };
my $update_often = sub {
	my @counts;
	$before = run_in($updates, 'SELECT uuidv7_feed_id()');
	foreach my $n (1 .. 5)
	{
		run_in($holders[ $n % 2 ], 'BEGIN; SELECT uuidv7_feed_id()');
		run_in($updates, "UPDATE product SET name = 'update $n' WHERE key = 8");
		run_in($holders[ 1 - $n % 2 ], 'COMMIT');
		push @counts, run_in($updates, $delivered->());
	}
	return "@counts";
};
run_in($updates, q{INSERT INTO product (key, name) VALUES (8, 'first') ON CONFLICT (key) DO UPDATE SET name = 'first'});
is($update_often->(), '0 0 0 0 0', 'a row that is updated too often is not delivered');
run_in($updates, 'CREATE OR REPLACE TRIGGER key_gone AFTER UPDATE ON product FOR EACH ROW EXECUTE FUNCTION product_gone()');
$update_often->();
ok($publisher->poll_query_until('postgres', $delivered->(), 4), 'without the condition of key_gone each update is, once no transaction is older');
$_->stop foreach $subscriber, $publisher;
done_testing();
