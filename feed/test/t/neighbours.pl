# What one database's owner, or one role, does to its own sequences harms no other's: places for
# watermarks, locks, waits, restarts.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;
use Watchdog;

my $node = start_node('neighbours', 'max_locks_per_transaction = 256');
$node->safe_psql('postgres', q{
CREATE ROLE hostile LOGIN; CREATE DATABASE hostile OWNER hostile; GRANT CREATE ON DATABASE postgres TO hostile});
$node->safe_psql('postgres', table('t'));
$node->safe_psql('postgres', 'INSERT INTO t DEFAULT VALUES') foreach 1 .. 3;

sub hostile
{
	my ($database) = @_;
	my $session = RawSession->connect($node, user => 'hostile', database => $database);
	die $session->{error} if $session->{error} ne '';
	return $session;
}

# The owner of a database creates the extension, which is trusted; in the other one he may
# create schemas.  In both he follows very many tables, in one transaction, polls all of them,
# and prepares.
my @attackers = map { hostile($_) } 'hostile', 'postgres';
$attackers[0]->query_safe('CREATE EXTENSION fast_feed');
foreach my $attacker (@attackers)
{
	$attacker->query_safe($_) foreach 'CREATE SCHEMA mine', 'SET search_path = mine, public',
	  q{DO $$ BEGIN FOR i IN 1 .. 600 LOOP
		EXECUTE format('CREATE TABLE many_%s (id bigserial PRIMARY KEY)', i);
		PERFORM fast_feed.enable(format('many_%s', i)::regclass, 'id');
		IF i % 50 = 0 THEN COMMIT; END IF;
	END LOOP; END $$};
}
my $poll = q{DO $$ BEGIN FOR i IN 1 .. 600 LOOP PERFORM fast_feed.watermark(format('mine.many_%s', i)::regclass); END LOOP; END $$};
my ($reader, $writer) = map { RawSession->start($node) } 1 .. 2;

# Sixty of our own, less than a fair share: a half of the half that our database has.
my $each = q{DO $$ BEGIN FOR i IN 1 .. 60 LOOP EXECUTE replace('%s', '#', i::text); END LOOP; END $$};
my $poll_ours = q{DO $$ BEGIN FOR i IN 1 .. 60 LOOP PERFORM fast_feed.watermark(format('ours_%s', i)::regclass); END LOOP; END $$};
$writer->query_safe(sprintf $each, $_) foreach 'CREATE TABLE ours_# (id bigserial PRIMARY KEY)',
  "SELECT fast_feed.enable(''ours_#'', ''id'')", 'INSERT INTO ours_# DEFAULT VALUES';
my $watermark = "SELECT fast_feed.watermark('t')";
foreach my $attacker (@attackers)
{
	my $who = $attacker == $attackers[0] ? 'the owner of another database' : 'another role';
	$reader->query_safe($_) foreach $watermark, $poll_ours;
	$reader->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ');
	$reader->query_safe('SELECT count(*) FROM t');
	$writer->query_safe('INSERT INTO t DEFAULT VALUES');
	$writer->query_safe(sprintf $each, 'INSERT INTO ours_# DEFAULT VALUES');
	$attacker->query_safe($poll) foreach 1 .. 3;
	cmp_ok($reader->query_safe($watermark), '>', 1, "$who polls many sequences: an older snapshot has its watermark");
	is($reader->outcome($poll_ours), 'value ', "$who polls many sequences: an older snapshot has that of each of ours");
	$reader->query_safe('COMMIT');

	# What it restarts, sets, drops, holds back, locks, is its own.
	my $last = $writer->query_safe('INSERT INTO t DEFAULT VALUES RETURNING id');
	$attacker->query_safe($_) foreach "SELECT setval('mine.many_1_id_seq', 9e18::bigint)", 'BEGIN',
	  'INSERT INTO mine.many_2 DEFAULT VALUES', 'INSERT INTO mine.many_3 DEFAULT VALUES',
	  'ALTER SEQUENCE mine.many_2_id_seq RESTART WITH 1', 'TRUNCATE mine.many_3 RESTART IDENTITY',
	  'SELECT count(*) FROM (SELECT pg_advisory_xact_lock(n) FROM generate_series(1, 2000) AS n) AS s';
	is($reader->query_safe($watermark), $last + 1, "$who works: no watermark but his is held back");

	# With locks of many sequences, which only his watermarks have to look for.
	$attacker->query_safe("SELECT fast_feed.next(format('mine.many_%s_id_seq', n)::regclass) FROM generate_series(10, 30) AS n");
	is($reader->query_safe($watermark), $last + 1, "$who has taken locks");
	$attacker->query_safe('ROLLBACK');
	refused($attacker, $watermark, '42', '', "$who asks for the watermark of another's table");
	next if $attacker == $attackers[0];
	refused($attacker, $_, '42501', '', "$who: $_") foreach "SELECT setval('t_id_seq', 1)",
	  "SELECT fast_feed.next('t_id_seq')", 'ALTER TABLE t DISABLE TRIGGER ALL', "SELECT fast_feed.enable('t', 'id')";
}
is($reader->query_safe($watermark), $writer->query_safe('SELECT last_value + 1 FROM t_id_seq'), 'and all is as it was');

# Another database counts as a whole, into however many owners its sequences are divided.
my $superuser = RawSession->connect($node, database => 'hostile');
$superuser->query_safe(q{DO $$ BEGIN FOR i IN 10 .. 600 LOOP
	EXECUTE format('CREATE ROLE many_%1$s; ALTER TABLE mine.many_%1$s OWNER TO many_%1$s', i);
	IF i % 50 = 0 THEN COMMIT; END IF;
END LOOP; END $$});
$reader->query_safe($_) foreach $watermark, $poll_ours, 'BEGIN ISOLATION LEVEL REPEATABLE READ', 'SELECT count(*) FROM t';
$writer->query_safe($_) foreach 'INSERT INTO t DEFAULT VALUES', sprintf $each, 'INSERT INTO ours_# DEFAULT VALUES';
$superuser->query_safe($poll) foreach 1 .. 3;
is($reader->outcome($poll_ours), 'value ', 'many owners of another database: an older snapshot has the watermark of each of ours');
$reader->query_safe('COMMIT');
$superuser->quit;

# Waits: another database's transactions wake nobody.
my $seen = $reader->query_safe('SELECT fast_feed.wait(0)');
$attackers[0]->query_safe('INSERT INTO mine.many_2 DEFAULT VALUES') foreach 1 .. 10;
is($reader->query_safe("SELECT fast_feed.wait($seen, '50 ms')"), $seen, 'a wait does not see those of another database');

# More databases than can be connected at a time have used it, one after the other.
$attackers[0]->quit;
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'hostile'") or die;
$node->safe_psql('postgres', 'DROP DATABASE hostile');
$node->safe_psql('postgres', 'CREATE DATABASE model');
$node->safe_psql('model', 'CREATE EXTENSION fast_feed;' . table('t'));
$node->append_conf('postgresql.conf', "max_connections = 12\nsuperuser_reserved_connections = 1\nmax_wal_senders = 0\n"
	  . "max_worker_processes = 1\nautovacuum_max_workers = 1");
$_->quit foreach $reader, $writer, $attackers[1];
$node->restart;
foreach my $number (1 .. 24)
{
	$node->safe_psql('postgres', "CREATE DATABASE copy_$number TEMPLATE model STRATEGY file_copy");
	my $session = RawSession->connect($node, database => "copy_$number");
	$session->query_safe('BEGIN');
	$session->query_safe('INSERT INTO t DEFAULT VALUES');
	$session->query_safe("PREPARE TRANSACTION 'p $number'");
	$session->quit;
}
my @late = grep {
	my $session = RawSession->connect($node, database => "copy_$_");
	$session->query_safe('INSERT INTO t DEFAULT VALUES');
	my $held = $session->query_safe($watermark) == 1;
	$session->query_safe("COMMIT PREPARED 'p $_'");
	my $all = $session->query_safe($watermark) == 3;
	$session->quit;
	!$held || !$all;
} 1 .. 24;
is("@late", '', 'each of many databases has its own prepared transaction, and no other one');

# Nor are transactions shown elsewhere, of a sequence with the same OID.
my ($here, $elsewhere) = map { RawSession->connect($node, database => "copy_$_") } 1, 2;
$elsewhere->query_safe($_) foreach 'BEGIN', 'INSERT INTO t DEFAULT VALUES';
my $shown = 'SELECT (SELECT count(*) FROM fast_feed.in_flight()) + count(*) FROM fast_feed.holders()';
is($elsewhere->query_safe($shown), 2, 'a transaction is shown in its database');
is($here->query_safe($shown), 0, '... and in no other one');
$_->quit foreach $here, $elsewhere;

# A database has one entry, also where that of another one, before it, is free again.
$node->restart;
($here, $elsewhere) = map { RawSession->connect($node, database => "copy_$_") } 1, 2;
$_->query_safe('SELECT fast_feed.wait(0)') foreach $here, $elsewhere;
$here->quit;
$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE datname = 'copy_1'") or die;
my $waits = RawSession->connect($node, database => 'copy_2');
$seen = $waits->query_safe('SELECT fast_feed.wait(0)');
$waits->send("SELECT fast_feed.wait($seen, '1 day')");
$elsewhere->query_safe('INSERT INTO t DEFAULT VALUES');
isnt(within($node, 'a session that came later is woken', sub { $waits->receive }), $seen, 'a session that came later is woken');
$_->quit foreach $elsewhere, $waits;

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
