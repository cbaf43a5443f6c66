# uuidv7_feed_wait(): what wakes it, what it refuses, how it ends early; and no reader in
# its loop is late, whatever writers do.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;
use FeedWriters;
use RawSession;
use Watchdog;

my $node = new_feed_node('wait', q{
max_connections = 100
max_prepared_transactions = 5
autovacuum = off
jit = off
}, allows_streaming => 1);
$node->start;
$node->safe_psql('postgres', 'CREATE DATABASE elsewhere');
foreach my $database ('postgres', 'elsewhere')
{
	$node->safe_psql($database, q{
CREATE EXTENSION fast_uuid;
CREATE TABLE followed (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id());
CREATE TABLE noise (n int);
CREATE TABLE stopped (at timestamptz);
CREATE TABLE delivered (reader text, n bigserial, id uuid, at timestamptz DEFAULT clock_timestamp());
} . guard('followed'));
}

sub session
{
	my ($database) = @_;
	my $session = RawSession->connect($node, user => scalar(getpwuid $>), database => $database // 'postgres');
	$session->{pid} = $session->query_safe('SELECT pg_backend_pid()');
	return $session;
}

my ($reader, $second, $writer, $other) = map { session() } 1 .. 4;
my $insert = 'INSERT INTO followed DEFAULT VALUES';
my $event = $node->pg_version >= 17 ? 'FastUuidWait' : 'Extension';

# Let a session wait for the end after those that it has seen.
sub begin_wait
{
	my ($session, $timeout) = @_;
	$session->{seen} = $session->query_safe('SELECT uuidv7_feed_wait(0)');
	$session->send("SELECT uuidv7_feed_wait($session->{seen}, '" . ($timeout // '1 month') . "')");
	wait_until('it waits', sub { $other->query_safe("SELECT wait_event FROM pg_stat_activity WHERE pid = $session->{pid}") eq $event });
	return;
}

# By how many the number is another one that a wait has returned.
sub ended
{
	my ($session, $name) = @_;
	my $number = within($node, $name, sub { $session->receive });
	return $session->{error} eq '' ? $number - $session->{seen} : $session->{error};
}

sub ended_again
{
	my ($session) = @_;
	$session->query_safe('RESET statement_timeout');
	begin_wait($session);
	$writer->query_safe($insert);
	return ended($session, 'again');
}
# What ends, and what does not, while it waits.
my $seen = $reader->query_safe('SELECT uuidv7_feed_wait(0)');
ok($seen > 2**20 && $seen < 2**53, 'the number begins at random, and is exact in JavaScript');
foreach my $not_seen (0, -1, $seen - 1, $seen + 1)
{
	is(within($node, "seen was $not_seen", sub { $reader->query_safe("SELECT uuidv7_feed_wait($not_seen, '1 month')") }), $seen, "seen was $not_seen: returns at once");
}
foreach my $timeout ('0', '-1 s', '-1 month', '1 day -1 month', $node->pg_version >= 17 ? '-infinity' : ())
{
	is(within($node, $timeout, sub { $reader->query_safe("SELECT uuidv7_feed_wait($seen, '$timeout')") }), $seen, "a timeout of $timeout is over at once");
}
is($reader->query_safe("SELECT uuidv7_feed_wait($seen, '20 ms')"), $seen, 'the timeout ends it');
is($reader->outcome("SELECT uuidv7_feed_wait($seen, '300000 years')"), '22008', 'a timeout beyond the range of timestamps is refused');
foreach my $timeout ('1 day', '1 month', '1 month -1 day', '100000 years', $node->pg_version >= 17 ? 'infinity' : ())
{
	begin_wait($reader, $timeout);
	$writer->query_safe($insert);
	is(ended($reader, "timeout $timeout"), 1, "a timeout of $timeout is not over");
}

# Which ends are counted is as_predicted.pl's; each that is wakes.
my @ends = ([$insert], [ 'BEGIN', $insert, 'ROLLBACK' ],
	['SELECT 1 / (random() * 0)::int FROM uuidv7_feed_id()'],
	[ 'BEGIN', $insert, "PREPARE TRANSACTION 'it'" ]);
foreach my $statements (@ends)
{
	begin_wait($reader);
	$writer->query($_) foreach @$statements;
	is(ended($reader, "@$statements"), 1, "wakes: @$statements");
}
$writer->query_safe("COMMIT PREPARED 'it'");
begin_wait($reader);
$writer->query_safe('BEGIN');
$writer->query_safe($insert);
$other->query_safe("SELECT pg_terminate_backend($writer->{pid})");
is(ended($reader, 'termination'), 1, 'wakes: a session that is terminated');
$writer = session('elsewhere');
begin_wait($_) foreach $reader, $second;
$writer->query_safe($insert);
$writer->quit;
$writer = session();
$writer->query_safe($insert);
is(ended($_, 'another database'), 1, 'wakes everybody, but not by a commit in another database') foreach $reader, $second;

# What could miss what it waits for is refused.
my $watermark = 'SELECT uuidv7_feed_watermark()';
my $first = $reader->query_safe('SELECT min(id::text) FROM followed');
foreach my $isolation ('REPEATABLE READ', 'SERIALIZABLE')
{
	$reader->query_safe("BEGIN ISOLATION LEVEL $isolation");
	$reader->query('SELECT uuidv7_feed_wait(0)');
	like($reader->{error}, qr/^25001 [^|]*isolation level READ COMMITTED\|[A-Z][^|]*\.\|/, "refused under $isolation");
	$reader->query_safe('ROLLBACK');
}
$reader->query_safe('BEGIN');
$reader->query_safe('EXPLAIN SELECT FROM followed WHERE id < uuidv7_feed_watermark()');
is($reader->outcome('SELECT uuidv7_feed_wait(0)'), '25001', 'refused after EXPLAIN, because the planner has called the watermark');
$reader->query_safe('ROLLBACK');
$reader->query_safe('BEGIN');
$reader->query_safe("INSERT INTO noise VALUES (1)");
like($reader->query_safe('SELECT uuidv7_feed_wait(0)'), qr/^\d+$/, 'not in another transaction that writes');
is($reader->query_safe($watermark) gt $first, 1, 'and the watermark comes after it');
$reader->query_safe('COMMIT');
is($reader->query_safe("DO \$\$ BEGIN PERFORM uuidv7_feed_watermark(); COMMIT; PERFORM uuidv7_feed_wait(0); END \$\$"), '', 'nor after a COMMIT in a procedure');

# A transaction without ids ends between the snapshot of the statement that reads and its
# call of the watermark; the rows that a wait has returned for are below its bound.
foreach my $way ('committed before', 'committed during the wait')
{
	$writer->query_safe('SELECT pg_advisory_lock(1) IS NULL');
	my $last = $reader->query_safe('SELECT max(id::text) FROM followed');
	begin_wait($reader) if $way =~ /during/;
	$writer->query_safe($insert);
	$way =~ /during/ ? ended($reader, $way) : $reader->query_safe('SELECT uuidv7_feed_wait(0)');
	$reader->send("SELECT count(*) FROM (SELECT pg_advisory_lock(1) OFFSET 0) AS waited, followed WHERE id > '$last'"
		  . ' AND id < (SELECT uuidv7_feed_watermark() WHERE waited IS NOT NULL)');
	wait_until('it is at work', sub { $other->query_safe("SELECT wait_event FROM pg_stat_activity WHERE pid = $reader->{pid}") eq 'advisory' });
	$writer->query_safe('INSERT INTO noise VALUES (1)');
	$writer->query_safe('SELECT pg_advisory_unlock(1)');
	is($reader->receive, '1', "rows $way are read, although another transaction ends between snapshot and call");
	$reader->query_safe('SELECT pg_advisory_unlock(1)');
}

# What ends a wait early, and that another one is still woken.
my %early = (
	'a cancel' => [ 'SELECT pg_cancel_backend(%d)', qr/^57014 canceling statement due to user request/ ],
	'statement_timeout' => [ 'SELECT %d', qr/^57014 canceling statement due to statement timeout/, "SET statement_timeout = '500 ms'" ],
	'termination' => [ 'SELECT pg_terminate_backend(%d)', qr/^57P01 terminating/ ]);
foreach my $what (sort keys %early)
{
	my ($sql, $error, @settings) = @{ $early{$what} };
	my $ended = session();
	$ended->query_safe($_) foreach @settings;
	begin_wait($second);
	begin_wait($ended);
	begin_wait($reader);
	$other->query_safe(sprintf $sql, $ended->{pid});
	within($node, $what, sub { $ended->receive });
	like($ended->{error}, $error, "$what ends a wait");
	$writer->query_safe($insert);
	is(ended($_, $what), 1, "$what: others that wait are still woken") foreach $reader, $second;
	is(ended_again($ended), 1, "$what: the session can wait again") if $what ne 'termination';
	$ended->quit;
}

# Calls that come too often sleep first: at most ten at once, then one per millisecond.
cmp_ok($reader->query_safe('SELECT extract(epoch FROM max(at) - min(at)) * 1000 FROM'
		  . ' (SELECT clock_timestamp() AS at, uuidv7_feed_wait(0) FROM generate_series(1, 60)) AS calls'),
	'>', 40, 'sixty calls last forty milliseconds');
$reader->send('SELECT count(uuidv7_feed_wait(0)) FROM generate_series(1, 100000000)');
wait_until('it sleeps', sub { $other->query_safe("SELECT wait_event FROM pg_stat_activity WHERE pid = $reader->{pid}") eq $event });
$other->query_safe("SELECT pg_cancel_backend($reader->{pid})");
within($node, 'a cancel', sub { $reader->receive });
like($reader->{error}, qr/^57014 /, 'a cancel ends the sleep');

begin_wait($reader);
$reader->send('SELECT 1');
$other->query_safe("SELECT pg_cancel_backend($reader->{pid})");
$reader->receive;
is($reader->receive, '1', 'a session whose wait was cancelled goes on');
is($reader->query_safe("DO \$\$ BEGIN PERFORM uuidv7_feed_wait(uuidv7_feed_wait(0), '1 h'); EXCEPTION WHEN query_canceled THEN PERFORM uuidv7_feed_wait(0); END \$\$"
	  =~ s/^DO/SET statement_timeout = '100 ms'; DO/r), '', 'also where a block catches that');
$reader->query_safe('RESET statement_timeout');
is($other->query_safe("SELECT count(*) FROM pg_stat_activity WHERE wait_event = '$event'"), '0', 'nobody waits any more');

# Twenty who wait, in two databases, half of them in a session that reads in another one,
# as behind a pooler; and the procedure of the page in each.  Thousands of transactions
# without ids per second commit meanwhile.  Each burst of writers is delivered before the
# next one begins, although nobody's timeout ends: a wake-up that is lost stops it.
my $bursts = 30;
my @databases = ('postgres', 'elsewhere');
my (@waits_for, %readers);
foreach my $number (1 .. 20)
{
	my $database = $databases[ $number % 2 ];
	push @{ $readers{$database} }, "reader $number";
	push @waits_for, in_background("reader $number", sub {
		my @sessions = (session($database), session($database));
		my ($last, $seen) = ('00000000-0000-0000-0000-000000000000', 0);
		until (run_in($sessions[0], 'SELECT count(*) FROM stopped'))
		{
			$seen = run_in($sessions[0], "SELECT uuidv7_feed_wait($seen, '1 h')");
			while ((my $ids = run_in($sessions[ $number % 4 < 2 ], qq{
INSERT INTO delivered (reader, id) SELECT 'reader $number', id FROM followed
 WHERE id > '$last' AND id < uuidv7_feed_watermark() ORDER BY id LIMIT 3 RETURNING id})) ne '')
			{
				($last) = $ids =~ /(.+)\z/;
			}
		}
	});
}
my @recipe = map { $_->{sql} =~ s/outbox/followed/gr =~ s/'10 s'/'1 h'/r } grep { $_->{sql} =~ /CREATE \w+ outbox_(reader|follow)/ } examples('doc/change-feeds.md');
my @procedures;
foreach my $database (@databases)
{
	push @{ $readers{$database} }, 'mail';
	push @procedures, session($database);
	$procedures[-1]->query_safe($_) foreach @recipe, q{CREATE FUNCTION work(followed) RETURNS void LANGUAGE sql
AS 'INSERT INTO delivered (reader, id) VALUES (''mail'', $1.id)'};
	$procedures[-1]->send("CALL followed_follow('mail', 'work')");
}
my $stop = PostgreSQL::Test::Utils::tempdir() . '/stop';
my @noise = map { my $database = $_; in_background('noise', sub {
	my $session = session($database);
	run_in($session, 'DO $$ BEGIN FOR i IN 1..1000 LOOP INSERT INTO noise VALUES (i); COMMIT; END LOOP; END $$') until -e $stop;
}) } @databases;

# What a session of the writers does in a burst; the last one loses its session.
my @transactions = (
	$insert, "BEGIN; $insert; SELECT pg_sleep(random() * 0.005); COMMIT", "BEGIN; $insert; SELECT pg_sleep(random() * 0.005); ROLLBACK",
	"BEGIN; $insert; SAVEPOINT a; $insert; ROLLBACK TO a; $insert; COMMIT", 'SELECT uuidv7_feed_id() FROM pg_sleep(random() * 0.003)',
	'SELECT 1 / (random() * 0)::int FROM uuidv7_feed_id()', 'INSERT INTO followed SELECT FROM generate_series(1, 5)', 'SELECT uuidv7_feed_position()',
	"BEGIN; $insert; SELECT pg_terminate_backend(pg_backend_pid()) IS NULL FROM pg_sleep(random() * 0.002)");
my %writers = map { my $database = $_; ($database => [ map { session($database) } 1 .. 4 ]) } @databases;
my @late;

# Wait for what has been committed to be delivered to everybody.
sub check_delivered
{
	foreach my $database (@databases)
	{
		my $rows = $writers{$database}[0]->query_safe('SELECT count(*) FROM followed');
		my $readers = @{ $readers{$database} };
		within($node, "$database: all rows are delivered without a timeout", sub {
			wait_until('all is delivered', sub { $writers{$database}[0]->query_safe('SELECT count(*) FROM delivered') == $rows * $readers });
		});
	}
	return;
}

foreach (1 .. $bursts)
{
	my @sessions = map { @$_ } values %writers;
	$_->send($transactions[ rand @transactions ]) foreach @sessions;
	$_->receive foreach @sessions;
	my $ended = $other->query_safe('SELECT clock_timestamp()');
	foreach my $database (@databases)
	{
		$_ = $_->{closed} ? session($database) : $_ foreach @{ $writers{$database} };
		$_->query('ROLLBACK') foreach @{ $writers{$database} };
	}
	check_delivered();
	push @late, map { $_->[0]->query_safe("SELECT greatest(0, extract(epoch FROM max(at) - '$ended') * 1000)::int FROM delivered") } values %writers;
}
append_to_file($stop, '');
is(join('', map { $_->() } @noise), '', 'commits without ids went on meanwhile');
@late = sort { $a <=> $b } @late;
note("latest delivery after the end of a burst: median $late[@late / 2] ms, at most $late[-1] ms");
foreach my $database (@databases)
{
	my ($session) = @{ $writers{$database} };
	is($session->query_safe(q{SELECT count(*) FROM (SELECT id, lag(id) OVER (PARTITION BY reader ORDER BY n) AS before FROM delivered) AS d WHERE before >= id}),
		'0', "$database: each reader got its rows once, in order");
	$session->query_safe('INSERT INTO stopped SELECT now() FROM uuidv7_feed_id()');
}
foreach my $procedure (@procedures)
{
	$other->query_safe("SELECT pg_cancel_backend($procedure->{pid})");
	within($node, 'the procedure stops', sub { $procedure->receive });
	like($procedure->{error}, qr/^57014 /, 'the procedure of the page went on, until it is cancelled');
}
is(join('', map { within($node, 'the readers stop', $_) } @waits_for), '', 'readers had no error, and were told to stop');

# A standby; and a shutdown, after which the number is another one.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
my ($code, $out, $err) = $standby->psql('postgres', "\\set VERBOSITY verbose\nSELECT uuidv7_feed_wait(0)");
like($err, qr/ERROR:  55000: cannot execute uuidv7_feed_wait\(\) during recovery\n.*HINT:  Call it on the primary/s, 'refused on a standby');
$standby->stop;
$seen = $reader->query_safe('SELECT uuidv7_feed_wait(0)');
begin_wait($_) foreach $reader, $second;
within($node, 'a fast shutdown', sub { $node->stop('fast') });
$node->start;
isnt($node->safe_psql('postgres', "SELECT uuidv7_feed_wait($seen, '1 month')"), $seen, 'a fast shutdown ends waits; what was seen before it does not count');
$node->stop;
done_testing();
