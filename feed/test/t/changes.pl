# The recipe of doc/recipes.md for changes under load: 8 sessions change two tables in every way,
# one of them partitioned, as the page's tables are, by the statements of the page.  A replica that
# follows a table ends up equal to it; that of a reader without the watermark does not.  The numbers
# of a row ascend in the order of its updates.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Examples;
use Feed;
use FeedWriters;
use Watchdog;

my %columns = (product => 'key, name', moving => 'key, part, name');
my @tables = sort keys %columns;

# The page's statements: the tables and triggers, and what reads.
my @recipe = grep { /\bproduct/ } map { $_->{sql} } examples('doc/recipes.md');
my ($setup, $read) = map { /(.*?)^(SELECT change.*?);/ms } @recipe;
$read =~ s/change > 0/change > \$1/ or die;

# The same for a table whose rows move between partitions.
my $moving = $setup =~ s/product/moving/gr;
my $key = 'key bigint, part int DEFAULT 0, PRIMARY KEY (key, part)';
$moving =~ s/key bigint PRIMARY KEY/$key/ or die;
$moving =~ s/change bigint UNIQUE\);/change bigint) PARTITION BY LIST (part);
CREATE INDEX ON moving (change);
CREATE TABLE moving_0 PARTITION OF moving FOR VALUES IN (0);
CREATE TABLE moving_1 PARTITION OF moving FOR VALUES IN (1);/ or die;

my $node = start_node('changes', "max_connections = 60\ndeadlock_timeout = '20 ms'");
$node->safe_psql('postgres', $_) foreach $setup, $moving =~ s/CREATE SEQUENCE changes;//r;

# Of each update its number in its row's history, and the version that it gave.
$node->safe_psql('postgres', q{
CREATE TABLE owner (id int PRIMARY KEY);
INSERT INTO owner SELECT generate_series(0, 9);
CREATE SEQUENCE fresh START 1000;
CREATE TABLE history (origin uuid, number int, change bigint);
CREATE FUNCTION count_update() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN NEW.number := OLD.number + 1; RETURN NEW; END';
CREATE FUNCTION note_update() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
	INSERT INTO history VALUES (NEW.origin, NEW.number, NEW.change); RETURN NULL; END $$});
foreach my $table (@tables)
{
	$node->safe_psql('postgres', qq{
ALTER TABLE $table ADD owner int REFERENCES owner ON DELETE CASCADE ON UPDATE CASCADE,
	ADD origin uuid DEFAULT gen_random_uuid(), ADD number int DEFAULT 0;
CREATE TRIGGER count_update BEFORE UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION count_update();
CREATE TRIGGER note_update AFTER UPDATE ON $table FOR EACH ROW EXECUTE FUNCTION note_update();
INSERT INTO $table (key) SELECT n FROM generate_series(1, 200) AS n});
}

# One statement or two: %t is a table, %k, %n and %o are a key, a new one and an owner.  A
# key that can be there already comes only into the table that refuses it.
my %change = (
	insert => "INSERT INTO %t (key, name, owner) VALUES (%n, 'insert', %o)",
	update => "UPDATE %t SET name = 'update' WHERE key BETWEEN %k AND %k + 4",
	delete => 'DELETE FROM %t WHERE key BETWEEN %k AND %k + 1',
	key => 'UPDATE %t SET key = %n WHERE key = %k',
	adopt => 'UPDATE %t SET owner = %o WHERE key BETWEEN %k AND %k + 9',
	cascade => 'DELETE FROM owner WHERE id = %o; INSERT INTO owner VALUES (%o)',
	savepoint => 'SAVEPOINT a; DELETE FROM %t WHERE key = %k; ROLLBACK TO a;'
	  . " UPDATE %t SET name = 'savepoint' WHERE key = %k",
	merge => 'MERGE INTO %t AS t USING generate_series(%k, %k + 3) AS k ON t.key = k'
	  . ' WHEN MATCHED AND k % 4 = 0 THEN DELETE'
	  . " WHEN MATCHED THEN UPDATE SET name = 'merge'"
	  . " WHEN NOT MATCHED THEN INSERT (key, name) VALUES (%n, 'merge')",
	upsert => "INSERT INTO product (key, name) VALUES (%k, 'upsert')"
	  . " ON CONFLICT (key) DO UPDATE SET name = 'upserted'",
	move => 'UPDATE moving SET part = 1 - part WHERE key BETWEEN %k AND %k + 4',
	truncate => 'TRUNCATE %t');
my @ways = sort keys %change;
my $load = FeedWriters->new_load;
my $done = $load->file('done');

sub change
{
	my ($session, $way) = @_;
	my %with = (t => $tables[ rand @tables ], n => "nextval('fresh')");
	@with{qw(k o)} = (int rand 200, int rand 10);
	run_in($session, $change{$way} =~ s/%([tkon])/$with{$1}/gr);
	pause(10);
	return;
}

# Each session tries each way, then what chance brings.  What others do at the same time can
# fail a statement: a row that moved, a deadlock, a key or an owner that is there or gone.
# TRUNCATE always fails.
my $provoked = qr/^(?:40001|40P01|23505|23503|21000|P0001 readers do not see TRUNCATE)/;

sub write_changes
{
	my ($session, $number) = @_;
	my @tried = $ways[ $number % @ways ];
	push @tried, $ways[ rand @ways ] foreach 1 .. rand 3;
	run_in($session, $number % 10 ? 'BEGIN' : 'BEGIN ISOLATION LEVEL REPEATABLE READ');
	change($session, $_) foreach @tried;
	return run_in($session, 'ROLLBACK') if rand() < 0.15;
	run_in($session, 'COMMIT');
	append_to_file($done, join '', map { "$_\n" } @tried);
	return;
}

my %followed = (
	'product, naively' => $read =~ s/ AND change < fast_feed.watermark\('product'\)//r,
	map { $_ => $read =~ s/product/$_/gr } @tables);
foreach my $name (sort keys %followed)
{
	my ($table) = $name =~ /(\w+)/;
	$load->reader($name, $node,
		"SELECT concat_ws(' ', lpad(change::text, 19, '0'), key, $table) FROM ($followed{$name}) AS read",
		from => 0, survives => qr/^40P01/);    # with a TRUNCATE
}
$load->writer("writer $_", $node, \&write_changes, survives => $provoked) foreach 1 .. 8;
wait_until('each way is committed', sub {
	my @done = -e $done ? split /\n/, slurp_file($done) : ();
	my %done = map { $_ => 1 } @done;
	return @done > 800 && keys %done >= @ways - 1;
});
$load->end_writers;
unlike(slurp_file($done), qr/truncate/, 'TRUNCATE never is');
$load->commit_late($node, "INSERT INTO product (key, name) VALUES (-1, 'late')",
	'INSERT INTO product (key) VALUES (-2) RETURNING lpad(change::text, 19, \'0\')', 'product, naively');
$load->end_readers;

# What a reader was given, applied in that order, against the table; the keys that differ.
foreach my $name (sort keys %followed)
{
	my ($table) = $name =~ /(\w+)/;
	my %replica;
	foreach my $line (split /\n+/, $load->seen($name))
	{
		my (undef, $key, $row) = split / /, $line, 3;
		$replica{$key} = $row;
		delete $replica{$key} unless defined $row;
	}
	my $rows = $node->safe_psql('postgres',
		"SELECT concat_ws(' ', key, to_jsonb($table)) FROM $table");
	my %rows = map { split / /, $_, 2 } split /\n/, $rows;
	my @differ = grep { ($replica{$_} // '') ne ($rows{$_} // '') } keys %{ { %replica, %rows } };
	ok(scalar(grep { $_ == -1 } @differ), "$name: the replica differs") if $name =~ /naively/;
	is("@differ", '', "$name: the replica equals the table") if $name !~ /naively/;
}

is($node->safe_psql('postgres', q{
SELECT count(*) FROM (
  SELECT change <= lag(change) OVER (PARTITION BY origin ORDER BY number) AS descends
    FROM history) AS pairs
 WHERE descends}), '0', 'the numbers of a row ascend in the order of its updates');

# A key that was deleted and inserted again, by a transaction whose number is the smaller one:
# it waits between the trigger and the index.
$node->safe_psql('postgres', q{
INSERT INTO product (key, name) VALUES (7, 'first') ON CONFLICT (key) DO UPDATE SET name = 'first';
CREATE FUNCTION held(name text) RETURNS boolean LANGUAGE plpgsql AS
	$$ BEGIN PERFORM pg_advisory_xact_lock(1) WHERE name = 'held'; RETURN true; END $$;
ALTER TABLE product ADD CHECK (held(name))});
my ($deletes, $inserts) = map { connect_to($node, $_) } 'deletes', 'inserts';

my $waits = q{SELECT count(*) = 1 FROM pg_stat_activity
 WHERE application_name = 'inserts' AND wait_event = '%s'};
my $before = run_in($deletes, q{SELECT fast_feed.next('changes')});
run_in($deletes, 'SELECT pg_advisory_lock(1)');
$inserts->send(q{INSERT INTO product (key, name) VALUES (7, 'held')});
wait_for($node, sprintf($waits, 'advisory'));
run_in($deletes, 'BEGIN');
run_in($deletes, 'DELETE FROM product WHERE key = 7');
run_in($deletes, 'SELECT pg_advisory_unlock(1)');
wait_for($node, sprintf($waits, 'transactionid'));
run_in($deletes, 'COMMIT');
$inserts->receive;
is($inserts->{error}, '', 'the insertion was committed last');
is(run_in($deletes, q{SELECT string_agg(key || ' ' || (product ->> 'name'), ', ')}
	  . " FROM (${\ ($read =~ s/\$1/'$before'/r)}) AS read"),
	'7 held, 7 held', 'both its change and the later deletion tell that it is there');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
