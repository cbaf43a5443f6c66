# Between any two steps of a reader that asks for the watermark, others begin, write, commit,
# prepare and end; and between any two steps of a writer, readers read.  At each point no row is
# missed: what was not read before is read after, by the position that the reader has reached.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use RawSession;
use TestPoints;
use Watchdog;

my $node = new_test_build('interleavings', 'max_prepared_transactions = 20');
$node->start;
$node->safe_psql('postgres', table('t'));
my ($held, $dba) = map { RawSession->start($node) } 1 .. 2;
my $insert = "INSERT INTO t (way) VALUES ('x') RETURNING id";
my ($position, %committed, %seen) = (0);

sub read_on
{
	my ($session) = @_;
	my @rows = split /\n/, $session->query_safe(
		"SELECT id FROM t WHERE id > $position AND ${\ below('t')} ORDER BY id");
	$seen{$_}++ foreach @rows;
	$position = $rows[-1] // $position;
	return scalar @rows;
}

# After all has ended, everything has been read, once.
sub check_all
{
	my ($name) = @_;
	read_on($dba);
	my @all = split /\n/, $dba->query_safe('SELECT id FROM t ORDER BY id');
	is(join(' ', grep { ($seen{$_} // 0) != 1 } @all), '', "$name: no row is missed, or read twice");
	is($position, $all[-1], "$name: all are read");
	return;
}

# What others do meanwhile, in the order of their names.
my %open;
sub begin
{
	my ($name) = @_;
	$open{$name} = RawSession->start($node);
	$open{$name}->query_safe('BEGIN');
	return $open{$name}->query_safe($insert);
}
sub end
{
	my ($name, $end) = @_;
	$open{$name}->query_safe($end);
	delete($open{$name})->quit if $end !~ /^PREPARE/;
	return;
}

# One that was open commits; one that was prepared; one begins and commits; one begins and is
# prepared; one begins and stays open.  Then another reader reads.
sub others_work
{
	end('open', 'COMMIT');
	$dba->query_safe("COMMIT PREPARED 'before'");
	$dba->query_safe($insert);
	begin('to be prepared');
	end('to be prepared', "PREPARE TRANSACTION 'after'");
	begin('stays');
	$dba->query_safe($insert);
	return;
}

foreach my $isolation ('READ COMMITTED', 'REPEATABLE READ')
{
	foreach my $point ('sequence_read', 'states_read', 'locks_read', 'computed', 'exchanging')
	{
		my $name = "$isolation reader at $point";
		begin('open');
		begin('prepared');
		end('prepared', "PREPARE TRANSACTION 'before'");
		delete($open{prepared})->quit;
		$dba->query_safe($insert);
		$held->query_safe("BEGIN ISOLATION LEVEL $isolation");
		my $read = "SELECT id FROM t WHERE id > $position AND id < (SELECT fast_feed.watermark('t')) ORDER BY id";
		hold_at($held, $point, sub { $held->send($read) });
		others_work();
		let_go($point);
		my @rows = split /\n/, $held->receive;
		is($held->{error}, '', "$name: it is answered");
		$held->query_safe('COMMIT');
		$seen{$_}++ foreach @rows;
		$position = $rows[-1] // $position;
		read_on($dba);
		$dba->query_safe("COMMIT PREPARED 'after'");
		delete($open{'to be prepared'})->quit;
		read_on($dba);
		end('stays', 'COMMIT');
		check_all($name);
	}
}

# A reader has read a pair, whose transaction publishes another one before it looks at the state again.
{
	$dba->query_safe(table('beside'));
	my $late = begin('open');
	$dba->query_safe($insert);
	hold_at($held, 'pair_read', sub { $held->send("SELECT fast_feed.watermark('t')") });
	$open{open}->query_safe("INSERT INTO beside (way) VALUES ('x')");
	let_go('pair_read');
	cmp_ok($held->receive, '<=', $late, 'a pair counts while its transaction publishes another one');
	end('open', 'COMMIT');
	check_all('reader at pair_read');
}

# A reader is about to read the number of a transaction's pair, and another sequence's, which is
# lower, is put in its place: by the backend's next transaction, or because the pair becomes a lock.
{
	my $writer = RawSession->start($node);
	my $last = $node->safe_psql('postgres', 'SELECT last_value FROM t_id_seq');
	my @beside = map { "beside_$_" } 1 .. 6;
	$dba->query_safe(table($_)) foreach 'lower', @beside;
	my $lower = "INSERT INTO lower (way) VALUES ('x')";
	my $read_until = sub {
		my ($number) = @_;
		hold_at($held, 'relid_read', sub { $held->send("SELECT fast_feed.watermark('t')") });
		foreach (2 .. $number)
		{
			hold_at($held, 'pair_read', sub { let_go('relid_read') });
			hold_at($held, 'relid_read', sub { let_go('pair_read') });
		}
	};
	foreach my $case ([ 1, '', "COMMIT; BEGIN; $lower" ],
		[ 2, 'INSERT INTO beside_1 DEFAULT VALUES', "COMMIT; BEGIN; INSERT INTO beside_1 DEFAULT VALUES; $lower" ],
		[ 7, join('; ', map { "INSERT INTO $_ DEFAULT VALUES" } @beside), $lower ])
	{
		my ($number, $before, $then) = @$case;
		$writer->query_safe("BEGIN; $before; $insert");
		$read_until->($number);
		$writer->query_safe($then);
		let_go('relid_read');
		cmp_ok($held->receive, '>', $last++, "pair $number: a number does not count for the sequence of another one");
		$writer->query_safe('COMMIT');
	}

	# The other way round, with half of the pair in its place.
	$writer->query_safe(join '; ', 'BEGIN', (map { "INSERT INTO $_ DEFAULT VALUES" } @beside), $lower);
	$read_until->(6);
	hold_at($writer, 'replacing', sub { $writer->send($insert) });
	let_go('relid_read');
	cmp_ok($held->receive, '>', $last, 'a pair that is being replaced does not count for the next one');
	let_go('replacing');
	$writer->receive;
	$writer->query_safe('COMMIT');
	$writer->quit;
	check_all('reader at relid_read');
}

# A writer is held at each of its steps, beside another one that passes it.
foreach my $point ('before_publishing', 'published')
{
	hold_at($held, $point, sub { $held->send($insert) });
	$dba->query_safe($insert);
	my $read = read_on($dba);
	cmp_ok($read, '>=', $point eq 'published' ? 0 : 1, "writer at $point: the other one's row");
	let_go($point);
	$held->receive;
	check_all("writer at $point");
}

# While its page is locked nobody draws, and a reader waits for the page at most as long.
hold_at($held, 'publishing', sub { $held->send($insert) });
my $second = RawSession->start($node);
$second->send($insert);
wait_for($node, "SELECT wait_event LIKE 'Buffer%' FROM pg_stat_activity WHERE pid = $second->{pid}");
let_go('publishing');
$_->receive foreach $held, $second;
check_all('writer at publishing');

# Its end is visible before it is cleared; it is counted, and wakes, only then.
foreach my $point ('clearing', 'cleared', 'waking')
{
	my $counted = $dba->query_safe('SELECT fast_feed.wait(0)');
	hold_at($held, $point, sub { $held->send($insert) });
	is($dba->query_safe('SELECT count(*) FROM t') > 0, 1, "writer at $point: its end is visible");
	my $read = read_on($dba);
	is($read > 0, $point ne 'clearing', "writer at $point: " . ($point eq 'clearing' ? 'it holds back' : 'it is read'));
	let_go($point);
	$held->receive;
	check_all("writer at $point");
	isnt($dba->query_safe('SELECT fast_feed.wait(0)'), $counted, "writer at $point: its end is counted");
}

# PREPARE TRANSACTION: at no point is it neither in shared memory nor among the locks.
foreach my $point ('locked', 'clearing', 'cleared')
{
	$held->query_safe('BEGIN');
	my $late = $held->query_safe($insert);
	$dba->query_safe($insert);
	hold_at($held, $point, sub { $held->send("PREPARE TRANSACTION 'p'") });
	read_on($dba);
	cmp_ok($position, '<', $late, "PREPARE TRANSACTION at $point: it holds back");
	let_go($point);
	$held->receive;
	read_on($dba);
	cmp_ok($position, '<', $late, "after PREPARE TRANSACTION at $point: it holds back");
	$dba->query_safe("COMMIT PREPARED 'p'");
	check_all("PREPARE TRANSACTION at $point");
}

# A table changes while a session finds out about its triggers, for the first time and again.
foreach my $change ('ALTER TABLE t SET (fillfactor = 90)', 'CREATE TRIGGER noise AFTER UPDATE ON t EXECUTE FUNCTION noise()')
{
	my $session = RawSession->start($node);
	$dba->query_safe("CREATE OR REPLACE FUNCTION noise() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'");
	hold_at($session, 'finding_out', sub { $session->send("SELECT fast_feed.watermark('t', 'id') > 0") });
	$dba->query_safe($change);
	let_go('finding_out');
	is($session->receive, 't', "$change, while a session finds out");
	is($session->query_safe("SELECT fast_feed.watermark('t') > 0"), 't', '... and again');
	$session->quit;
}

# The column is given another sequence while a session finds out: the next call has that.
my $finds = RawSession->start($node);
$dba->query_safe($_) foreach 'CREATE TABLE given (id bigserial PRIMARY KEY, n bigint)', 'CREATE SEQUENCE s OWNED BY given.n',
  'CREATE SEQUENCE later', "SELECT setval('later', 1000)", "SELECT fast_feed.enable('given', 'n', true)";
hold_at($finds, 'found_out', sub { $finds->send("SELECT fast_feed.watermark('given')") });
$dba->query_safe($_) foreach 'ALTER SEQUENCE s OWNED BY NONE', 'ALTER SEQUENCE later OWNED BY given.n';
let_go('found_out');
$finds->receive;
is($finds->query_safe("SELECT fast_feed.watermark('given')"), 1001, 'another sequence, while a session finds out');
my @sessions = map { RawSession->start($node) } 1 .. 4;
$sessions[0]->send(q{DO $$ BEGIN FOR i IN 1 .. 500 LOOP
	EXECUTE format('ALTER TABLE t SET (fillfactor = %s)', 50 + i % 50); COMMIT; END LOOP; END $$});
$_->send(q{DO $$ BEGIN FOR i IN 1 .. 3000 LOOP PERFORM fast_feed.watermark('t', 'id'); COMMIT; END LOOP; END $$})
  foreach @sessions[ 1 .. 3 ];
$_->receive foreach @sessions;
is(join('', map { $_->{error} } @sessions), '', 'a table that changes all the time');

# A session that ends in a transaction.
my $leaving = RawSession->start($node);
$leaving->query_safe('BEGIN');
my $gone = $leaving->query_safe($insert);
$dba->query_safe($insert);
# It tells its client before it leaves, which is no answer.
sub Silent::has_answer { return 0 }
hold_at(bless({ pid => $leaving->{pid} }, 'Silent'), 'leaving', sub { $dba->query_safe("SELECT pg_terminate_backend($leaving->{pid})") });
cmp_ok($dba->query_safe("SELECT fast_feed.watermark('t')"), '>', $gone, 'a session that leaves holds back no more');
let_go('leaving');
check_all('a session that leaves');

# A wait that is about to begin sees an end that comes meanwhile.
foreach my $point ('wait_due', 'wait_listed')
{
	my $seen = $held->query_safe('SELECT fast_feed.wait(0)');
	hold_at($held, $point, sub { $held->send("SELECT fast_feed.wait($seen, '1 month')") });
	$dba->query_safe($insert);
	let_go($point);
	isnt(within($node, "wait at $point", sub { $held->receive }), $seen, "wait at $point: an end meanwhile");
}

# A DBA sees by name which lock is waited for.
hold_at($held, 'exchange_locked', sub { $held->send("SELECT fast_feed.watermark('t')") });
$second->send("SELECT fast_feed.watermark('t')");
my $event = "FROM pg_stat_activity WHERE pid = $second->{pid} AND wait_event_type = 'LWLock'";
wait_until('the lock is waited for', sub { $dba->query_safe("SELECT count(*) $event") });
is($dba->query_safe("SELECT wait_event $event"), 'FastFeed', 'the wait event of the lock');
let_go('exchange_locked');
$_->receive foreach $held, $second;

# What a statement could not be given does not wait for another end.
my $counted = $dba->query_safe('SELECT fast_feed.wait(0)');
hold_at($held, 'computed', sub { $held->send("SELECT fast_feed.watermark('t')") });
$node->safe_psql('postgres', 'SELECT txid_current()');
let_go('computed');
$held->receive;
is($dba->query_safe("SELECT fast_feed.wait($counted, '0')"), $counted, 'a statement that was given all');
$dba->query_safe($insert);
$counted = $dba->query_safe('SELECT fast_feed.wait(0)');
$dba->query_safe('CREATE TABLE noise (n int)');
$node->safe_psql('postgres', 'ALTER SEQUENCE t_id_seq RESTART WITH 100000');
$dba->query_safe('BEGIN');
$second->query_safe('SELECT pg_advisory_lock(1) IS NULL');
$held->send("SELECT fast_feed.watermark('t') FROM (SELECT pg_advisory_xact_lock(1) OFFSET 0) AS waited");
wait_for($node, "SELECT wait_event = 'advisory' FROM pg_stat_activity WHERE pid = $held->{pid}");
$dba->query_safe('INSERT INTO noise VALUES (1)');
$dba->query_safe('COMMIT');
$second->query_safe('SELECT pg_advisory_unlock(1)');
is($held->receive, 0, 'a statement that was given nothing, as a transaction without numbers has ended');
isnt(within($node, 'wait', sub { $dba->query_safe("SELECT fast_feed.wait($counted, '1 month')") }), $counted,
	'... and the next wait does not wait');

$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
