# fast_feed.wait(): what wakes it, what it refuses, how it ends early; and no reader in its loop
# is late, whatever writers do.

use strict;
use warnings;

use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl', '../test/perl';
use Feed;
use FeedWriters;
use Watchdog;

my $node = start_node('wait', "max_connections = 100\njit = off");
$node->safe_psql('postgres', 'CREATE DATABASE another');
$node->safe_psql('another', 'CREATE EXTENSION fast_feed');
$node->safe_psql($_, table('t') . 'CREATE TABLE noise (n int)') foreach 'postgres', 'another';

my ($reader, $second, $writer, $other) = map { connect_to($node, $_) } 1 .. 4;
my $insert = 'INSERT INTO t DEFAULT VALUES';
my $is_17 = $node->pg_version >= 17;
my $event = $is_17 ? 'FastFeedWait' : 'Extension';

sub wait_for_event
{
	my ($session, $name) = @_;
	return wait_for($node, "SELECT count(*) = 1 FROM pg_stat_activity"
		  . " WHERE pid = $session->{pid} AND wait_event = '$name'");
}

# Let a session wait for the end after those that it has seen.
sub begin_wait
{
	my ($session, $timeout) = (@_, '1 month');
	$session->{seen} = $session->query_safe('SELECT fast_feed.wait(0)');
	$session->send("SELECT fast_feed.wait($session->{seen}, '$timeout')");
	return wait_for_event($session, $event);
}

# It ends, and returns the next number.
sub check_woken
{
	my ($session, $name) = @_;
	my $number = within($node, $name, sub { $session->receive });
	return is($session->{error} || $number - $session->{seen}, 1, $name);
}

# What ends, and what does not, while it waits.
my $seen = $reader->query_safe('SELECT fast_feed.wait(0)');
ok($seen > 0 && $seen < 2**53, 'the number begins at random, and is exact in JavaScript');
foreach my $arguments (map({ "$_, '1 month'" } 0, $seen - 1, $seen + 1),
	map({ "$seen, '$_'" } '0', '1 day -1 month', '20 ms', $is_17 ? '-infinity' : ()))
{
	my $wait = "SELECT fast_feed.wait($arguments)";
	is(within($node, $wait, sub { $reader->query_safe($wait) }), $seen, "$wait returns");
}
foreach my $timeout ('1 month -1 day', '100000 years', $is_17 ? 'infinity' : ())
{
	begin_wait($reader, $timeout);
	$writer->query_safe($insert);
	check_woken($reader, "a timeout of $timeout is not over");
}
# The clock has parts of a second: with whole ones each of these lasts half a second.
$reader->query_safe("SET statement_timeout = '15 s'");
my $short = q{DO $$ BEGIN FOR i IN 1..60 LOOP PERFORM fast_feed.wait(fast_feed.wait(0), '1 ms'); END LOOP; END $$};
is($reader->outcome($short), 'value ', 'sixty short timeouts');
$reader->query_safe('RESET statement_timeout');
foreach my $end ($insert, "BEGIN; $insert; ROLLBACK", "SELECT fast_feed.next('t_id_seq')",
	"SELECT 1 / (random() * 0)::int FROM fast_feed.next('t_id_seq')",
	'INSERT INTO t (way) SELECT NULL WHERE false', "BEGIN; $insert; PREPARE TRANSACTION 'it'")
{
	begin_wait($reader);
	$writer->query($end);
	check_woken($reader, "wakes: $end");
}
$writer->query_safe("ROLLBACK PREPARED 'it'");
begin_wait($reader);
$writer->query_safe("BEGIN; $insert");
$other->query_safe("SELECT pg_terminate_backend($writer->{pid})");
check_woken($reader, 'wakes: a session that is terminated');

# By one number: the end in the other database is not counted.
$writer = connect_to($node, 'writer');
begin_wait($_) foreach $reader, $second;
connect_to($node, 'writer', 'another')->query_safe($insert);
$writer->query_safe($insert);
check_woken($_, 'woken, but not by a commit in another database') foreach $reader, $second;

# Who calls without a pause sleeps in between.
$second->send(q{DO $$ BEGIN LOOP PERFORM fast_feed.wait(0); END LOOP; END $$});
wait_for($node, "SELECT wait_event IN ('FastFeedWait', 'Extension') FROM pg_stat_activity WHERE pid = $second->{pid}");
$other->query_safe("SELECT pg_cancel_backend($second->{pid})");
$second->receive;

# What could miss what it waits for is refused; not in a transaction that only writes to other
# tables, nor after a COMMIT in a procedure.
foreach my $begin ('BEGIN ISOLATION LEVEL REPEATABLE READ', 'BEGIN ISOLATION LEVEL SERIALIZABLE', "BEGIN; $insert",
	'BEGIN; EXPLAIN SELECT FROM t WHERE id < fast_feed.watermark(\'t\')')
{
	$reader->query_safe($begin);
	refused($reader, 'SELECT fast_feed.wait(0)', '25001', '', "refused after $begin");
	$reader->query_safe('ROLLBACK');
}
$reader->query_safe('BEGIN; INSERT INTO noise VALUES (1); SELECT fast_feed.wait(0); COMMIT');
$reader->query_safe(q{DO $$ BEGIN PERFORM fast_feed.watermark('t'); COMMIT; PERFORM fast_feed.wait(0); END $$});

# A transaction without numbers ends between the snapshot of the statement that reads and its
# call of watermark(): what that could not be given is there after a wait, which does not wait.
$writer->query_safe('SELECT pg_advisory_lock(1)');
my $last = $reader->query_safe('SELECT max(id) FROM t');
begin_wait($reader);
$writer->query_safe($insert);
my $number = within($node, 'a row wakes', sub { $reader->receive });
my $read = "SELECT count(*) FROM %s t WHERE id > $last AND id < %s";
$reader->send(sprintf $read, '(SELECT pg_advisory_lock(1) OFFSET 0) AS waited,',
	"(SELECT fast_feed.watermark('t') WHERE waited IS NOT NULL)");
wait_for_event($reader, 'advisory');
$writer->query_safe('INSERT INTO noise VALUES (1)');
$writer->query_safe('SELECT pg_advisory_unlock(1)');
if ($reader->receive == 0)
{
	isnt(within($node, 'what was kept back', sub { $reader->query_safe("SELECT fast_feed.wait($number, '1 h')") }),
		$number, '... another transaction ends meanwhile, and the next wait does not wait');
}
is($reader->query_safe(sprintf $read, '', "fast_feed.watermark('t')"), 1, '... for the row');

# What ends a wait early, and that others are still woken.
foreach my $what ('cancel', 'terminate')
{
	my $ended = connect_to($node, 'ended');
	begin_wait($_) foreach $second, $ended, $reader;
	$other->query_safe("SELECT pg_${what}_backend($ended->{pid})");
	within($node, $what, sub { $ended->receive });
	like($ended->{error}, qr/^57(?:014|P01)/, "$what ends a wait");
	$writer->query_safe($insert);
	check_woken($_, "$what: others are still woken") foreach $reader, $second;
	next if $what eq 'terminate';
	begin_wait($ended);
	$writer->query_safe($insert);
	check_woken($ended, "$what: the session can wait again");
}
$second->query_safe("SET statement_timeout = '100 ms'");
is(within($node, 'a timeout', sub { $second->outcome("SELECT fast_feed.wait(fast_feed.wait(0), '1 h')") }),
	'57014', 'statement_timeout ends a wait');
$second->query_safe('RESET statement_timeout');

# Calls that come too often sleep first.
$reader->send('SELECT count(fast_feed.wait(0)) FROM generate_series(1, 100000000)');
wait_for_event($reader, $event);
cancel($node, 'the sleep', $reader, $reader->{pid});

# Twenty who wait, in two databases, half of them in a session that reads in another one, as
# behind a pooler.  Thousands of transactions end, and after each burst all rows are delivered to
# everybody before the next one begins, although nobody's timeout ends: a wake-up that is lost
# stops it.
my $load = FeedWriters->new_load;
my @databases = ('postgres', 'another');

sub read_when_woken
{
	my ($waits, $position, $state) = @_;
	$state->{reads} //= $state->{pooled} ? connect_to($node, 'reads', $state->{database}) : $waits;
	$state->{seen} = run_in($waits, "SELECT fast_feed.wait($state->{seen}, '1 h')")
	  unless -e $load->file('no wait');
	return run_in($state->{reads}, "SELECT lpad(id::text, 19, '0') FROM t"
		  . " WHERE id > $position AND ${\ below('t')} ORDER BY id");
}

foreach my $database (@databases)
{
	foreach my $number (1 .. 10)
	{
		my $state = { database => $database, pooled => $number % 2, seen => 0 };
		$load->reader("$database $number", $node, sub { read_when_woken(@_, $state) },
			database => $database, from => 0);
	}
	$load->writer("noise in $database", $node, sub { run_in($_[0],
		'DO $$ BEGIN FOR i IN 1..1000 LOOP INSERT INTO noise VALUES (i); COMMIT; END LOOP; END $$')
	}, database => $database);
}

# What a writer does in a burst; the last one loses its session.
my @transactions = (
	$insert, 'INSERT INTO t (way) SELECT NULL FROM generate_series(1, 5)',
	"BEGIN; $insert; SELECT pg_sleep(random() * 0.005); COMMIT",
	"BEGIN; $insert; SELECT pg_sleep(random() * 0.005); ROLLBACK",
	'BEGIN; ' . in_savepoints($insert) . '; COMMIT',
	"SELECT fast_feed.next('t_id_seq') FROM pg_sleep(random() * 0.003)",
	"SELECT 1 / (random() * 0)::int FROM fast_feed.next('t_id_seq')",
	"BEGIN; $insert; SELECT pg_terminate_backend(pg_backend_pid())");
my $greatest = "SELECT lpad(max(id)::text, 19, '0') FROM t";
foreach (1 .. 30)
{
	my @sessions = map { connect_to($node, 'burst', $databases[ $_ % 2 ]) } 1 .. 8;
	$_->send($transactions[ rand @transactions ]) foreach @sessions;
	$_->receive foreach @sessions;
	foreach my $database (@databases)
	{
		my $all = $node->safe_psql($database, $greatest);
		next if $all eq '';
		within($node, 'all rows are delivered without a timeout', sub {
			foreach my $name (map { "$database $_" } 1 .. 10)
			{
				wait_until('all', sub { $load->last_seen($name) ge $all });
			}
		});
	}
}
# Who waits is woken once more, and who does not, as one that an end without a row has woken, must
# not have stopped before that.
append_to_file($load->file('no wait'), '');
$node->safe_psql($_, "SELECT fast_feed.next('t_id_seq')") foreach @databases;
$node->safe_psql($_, $insert) foreach @databases;
$load->end_writers;
within($node, 'the readers stop', sub { $load->end_readers });
foreach my $database (@databases)
{
	my $rows = $node->safe_psql($database, "SELECT lpad(id::text, 19, '0') FROM t");
	$load->check("$database $_", $rows) foreach 1 .. 10;
}

# A shutdown, after which the number is another one.
begin_wait($_) foreach $reader, $second;
within($node, 'a fast shutdown', sub { $node->stop('fast') });
$node->start;
isnt($node->safe_psql('postgres', "SELECT fast_feed.wait($reader->{seen}, '1 month')"),
	$reader->{seen}, 'a fast shutdown ends waits; what was seen before it does not count');
$node->stop;
unlike(slurp_file($node->logfile), qr/PANIC|TRAP/, 'no PANIC, and no failed assertion');
done_testing();
