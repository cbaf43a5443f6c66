# The watermark, step by step: what holds it back, until when, and where the call is
# refused.  The statements that it serves are those of statements.pl.

use strict;
use warnings;

use Cwd qw(getcwd);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use WatermarkNode;
use Watchdog;

$node = PostgreSQL::Test::Cluster->new('watermark');
$node->init(allows_streaming => 1);
$node->append_conf('postgresql.conf', "autovacuum = off\nmax_prepared_transactions = 5\n"
	  . "synchronous_standby_names = 'nobody'\nsynchronous_commit = local\n");
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE made (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text);
});
my $version = $node->safe_psql('postgres', 'SHOW server_version_num');
my $callback = getcwd() . '/test/modules/xact_callback';

# The backend ends after the client.
sub end_session
{
	my ($session) = @_;
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	$session->quit;
	$node->poll_query_until('postgres', "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid = $pid") or BAIL_OUT('the session does not end');
	return;
}

sub refused
{
	my ($sql, $error, $name, $on) = @_;
	my ($code, $out, $err) = ($on // $node)->psql('postgres', "\\set VERBOSITY verbose\n$sql");
	like($err, $error, "refused: $name");
	is($out, '', "refused: $name: nothing is returned");
	return;
}

if ($version < 170000)
{
	refused('SELECT uuidv7_fast_watermark()', qr/ERROR:  55000: fast_uuid must be loaded via "shared_preload_libraries"/,
		'without shared memory');
	like($node->safe_psql('postgres', "SELECT uuidv7_fast(); SELECT * FROM fast_uuid_stats() WHERE name = 'instance'"),
		qr/\ninstance\|+$/, 'without shared memory the statistics of the instance are empty');
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	$node->restart;
}

# The first UUID since the server started holds it back like any other.
$node->restart;
my $one = session();
my $first_of_all = in_transaction($one);
cmp_ok(watermark(), 'le', $first_of_all, 'the first UUID of the instance is in flight');
$one->query_safe('COMMIT');
$one->quit;
cmp_ok(watermark(), 'gt', $first_of_all, '... until its transaction has ended');

# Nothing in flight: it is beyond what was generated, and goes with the clock.
my $id     = $node->safe_psql('postgres', "$instance; INSERT INTO made DEFAULT VALUES RETURNING id");
my $first  = watermark();
my $second = watermark();
cmp_ok($first, 'gt', $id, 'nothing in flight: beyond the latest value');
cmp_ok($second, 'gt', $first, 'nothing in flight: it goes with the clock');
cmp_ok($node->safe_psql('postgres', "$instance; SELECT uuidv7_fast()"), 'ge', $second, 'a value that is generated later is not below it');
like($first, qr/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/, 'it is a UUID of version 7');
is( $node->safe_psql('postgres', "SELECT uuidv7_fast_timestamp('$second', true) BETWEEN now() - interval '1 min' AND now()"),
	't', 'with a time of this moment');
is(stats('held_back_by IS NULL'), 't', 'nobody holds it back');

# What a transaction in flight holds back, and until when.
my @calls = (
	[ 'a row',          undef ],
	[ 'an argument',    "INSERT INTO made VALUES (uuidv7_fast('getrandom')) RETURNING id" ],
	[ 'an array',       "WITH a AS (INSERT INTO made SELECT unnest(uuidv7_fast_array(1000)) RETURNING id) SELECT id FROM a ORDER BY id LIMIT 1" ],
	[ 'a set',          "WITH a AS (INSERT INTO made SELECT uuidv7_fast_set(1000) RETURNING id) SELECT id FROM a ORDER BY id LIMIT 1" ],
	[ 'a subtransaction', "SAVEPOINT a; INSERT INTO made DEFAULT VALUES RETURNING id; RELEASE a" ],
	[ 'a value that is rolled back to a savepoint', "SAVEPOINT a; INSERT INTO made DEFAULT VALUES RETURNING id; ROLLBACK TO a" ],
	[ 'an exception block', "DO \$\$ BEGIN BEGIN PERFORM uuidv7_fast(); RAISE EXCEPTION 'x'; EXCEPTION WHEN OTHERS THEN NULL; END; END \$\$; SELECT uuidv7_fast()" ],
	[ 'another order meanwhile', "SELECT uuidv7_fast(); SET LOCAL fast_uuid.ordering = 'session'; SELECT uuidv7_fast()" ]);
my @ends = (
	[ 'COMMIT',            sub { $_[0]->query_safe('COMMIT') } ],
	[ 'ROLLBACK',          sub { $_[0]->query_safe('ROLLBACK') } ],
	[ 'an error',          sub { $_[0]->query('SELECT 1/0') } ],
	[ 'the end of the session', \&end_session ],
	[ 'pg_terminate_backend()', sub {
		my $pid = $_[0]->query_safe('SELECT pg_backend_pid()');
		$node->safe_psql('postgres', "SELECT pg_terminate_backend($pid, 60000)"); } ]);
foreach my $i (0 .. ($#calls > $#ends ? $#calls : $#ends))
{
	my ($what, $call) = @{ $calls[ $i % @calls ] };
	my ($end, $do)    = @{ $ends[ $i % @ends ] };
	my $session = session();
	my $before  = watermark();
	my $id      = (split(/\n/, in_transaction($session, $call)))[0];
	my $held    = watermark();
	ok($held le $id && $held ge $before, "$what: holds the watermark back") or diag("before $before held $held id $id");
	my $latest = $node->safe_psql('postgres', "$instance; SELECT uuidv7_fast()");
	is(watermark(), $held, "$what: it stands still");
	my $pid = $session->query_safe('SELECT pg_backend_pid()');
	is(stats('held_back_by'), $pid, "$what: the statistics tell who holds it back");
	$do->($session);
	cmp_ok(watermark(), 'gt', $latest, "$end: it goes on");
	is(stats('held_back_by IS NULL'), 't', "$end: nobody holds it back");
	$session->quit unless $i % @ends >= 3;
}

# The end of a process whose abort another library does not let come to ours.  Without a
# lock, which would stay.
{
	my $session = session();
	my $id      = in_transaction($session, 'SELECT uuidv7_fast()');
	$session->query_safe("LOAD '$callback'");
	cmp_ok(watermark(), 'le', $id, "another library's abort callback fails: the watermark is held back");
	end_session($session);
	like(slurp_file($node->logfile), qr/raised at exit/, '... it does so as the process ends');
	cmp_ok(watermark(), 'gt', $id, '... and nothing holds the watermark back any more');
}

# Another library's callback that comes after ours, as that of one which was preloaded
# does, and which commits elsewhere in it: until it has returned the watermark waits.
{
	$node->safe_psql('postgres', "CREATE FUNCTION wait_after_end() RETURNS bool LANGUAGE c AS '$callback'");
	my $waits = $node->data_dir . '/xact_callback.waits';
	foreach my $end ('COMMIT', 'ROLLBACK', "PREPARE TRANSACTION 'waits'")
	{
		my $session = session();
		$session->query_safe("LOAD '$callback'");
		my $id = in_transaction($session);
		$session->query_safe('SELECT wait_after_end()');
		begin_query($session, $end);
		wait_until('the callback waits', sub { -e $waits });
		is($node->safe_psql('postgres', "SELECT count(*) FROM made WHERE id = '$id'"), $end eq 'COMMIT' ? '1' : '0', "$end: a later callback waits");
		cmp_ok(watermark(), 'le', $id, "$end: ... and the watermark with it");
		unlink $waits or die "could not remove: $!";
		$session->query_safe('SELECT 1');
		$node->safe_psql('postgres', "ROLLBACK PREPARED 'waits'") if $end =~ /PREPARE/;
		cmp_ok(watermark(), 'gt', $id, "$end: until it has returned");
		$session->quit;
	}
}

# Another library releases resources of its own, which are no transaction's, during one.
{
	$node->safe_psql('postgres', "CREATE FUNCTION release_owner() RETURNS bool LANGUAGE c AS '$callback'");
	my $session = session();
	my $id      = in_transaction($session);
	$session->query_safe('SELECT release_owner()');
	cmp_ok(watermark(), 'le', $id, 'resources of another library are released: the watermark is held back');
	$session->query_safe('COMMIT');
	cmp_ok(watermark(), 'gt', $id, '... until the transaction ends');
	$session->quit;
}

# What another library generates after a commit is in no transaction: it holds nothing
# back, and durable order, which reads the catalogs, refuses it.
{
	$node->safe_psql('postgres', "CREATE FUNCTION $_ LANGUAGE c AS '$callback'")
	  foreach 'generate_after_commit() RETURNS bool', 'generated_after_commit() RETURNS text';
	my $session = session();

	# The callback that was registered first is called last.
	$session->query_safe("LOAD '$callback'; $instance; SELECT uuidv7_fast()");
	$session->query_safe('SELECT generate_after_commit()');
	is(stats('held_back_by IS NULL'), 't', 'generated after a commit: nothing is held back');
	is($session->query_safe('SELECT generated_after_commit()'), 'generated', '... though a UUID was');
	$session->query_safe("SET fast_uuid.ordering = 'durable'; SELECT generate_after_commit()");
	is($session->query_safe('SELECT generated_after_commit()'),
		$version >= 170000 ? 'ordering "durable" requires a transaction' : 'ordering "durable" requires PostgreSQL 17 or later',
		'durable order after a commit: an error');
	end_session($session);
}

# What cannot insert here does not: a transaction of another database, or one that has
# drawn no id, however long it is idle.
{
	$node->safe_psql('postgres', 'CREATE DATABASE other');
	$node->safe_psql('other', 'CREATE EXTENSION fast_uuid');
	my ($elsewhere, $idle) = ($node->background_psql('other'), session());
	my $id = $elsewhere->query_safe("$instance; BEGIN; SELECT uuidv7_fast()");
	$idle->query_safe('BEGIN; SELECT count(*) FROM made; CREATE TABLE idle ()');
	cmp_ok(watermark(), 'gt', $id, 'a transaction of another database, and an idle one without an id, do not hold it back');
	is(stats('held_back_by IS NULL'), 't', 'nor are they said to');
	is( $node->safe_psql('other', "SELECT uuidv7_fast_watermark() <= '$id', held_back_by FROM fast_uuid_stats() WHERE name = 'instance'"),
		't|' . $elsewhere->query_safe('SELECT pg_backend_pid()'), 'in the other database it does, and is');
	$_->quit foreach $elsewhere, $idle;
}

# Its age is for those who may see it in pg_stat_activity.
{
	$node->safe_psql('postgres', 'CREATE ROLE somebody; CREATE ROLE monitor; GRANT pg_monitor TO monitor');
	my $session = session();
	in_transaction($session);
	my $began = $session->query_safe('SELECT now()');
	my $shown = "SELECT to_jsonb(s) - '{clock_lead,largest_clock_lead}'::text[], xact_start"
	  . " FROM fast_uuid_stats() AS s JOIN pg_stat_activity ON pid = held_back_by WHERE name = 'instance'";
	my $earlier = $node->safe_psql('postgres', "SET ROLE somebody; $shown");
	like($earlier, qr/"held_back_by": \d+.*\}\|$/, 'another role sees the process');
	$node->poll_query_until('postgres', "SELECT clock_timestamp() > '$began'::timestamptz + interval '0.1 s'") or BAIL_OUT('time stands still');
	is($node->safe_psql('postgres', "SET ROLE somebody; $shown"), $earlier, '... and nothing that tells the age of its transaction');
	is($node->safe_psql('postgres', "SET ROLE monitor; $shown"), $earlier . $began, 'pg_monitor sees that too');
	$session->query_safe('COMMIT');
	$session->quit;
}

# Transactions of one session after each other, in a procedure.
is( $node->safe_psql(
		'postgres', qq{$instance;
CREATE TABLE seen (n int, below bool);
DO \$\$
DECLARE
	previous uuid := uuidv7_fast();
	present uuid;
BEGIN
	FOR i IN 1..20 LOOP
		present := uuidv7_fast();
		INSERT INTO seen VALUES (i, uuidv7_fast_watermark() <= previous);
		COMMIT;
		previous := uuidv7_fast();
	END LOOP;
END \$\$;
SELECT bool_and(below), count(*) FROM seen}), 't|20', 'a procedure with COMMIT: each transaction holds it back from its first value on');

# The commit has begun, and is not visible yet.
{
	my $session = session();
	my $id      = in_transaction($session);
	my $pid = $session->query_safe('SET synchronous_commit = on; SELECT pg_backend_pid()');
	begin_query($session, 'COMMIT');
	$node->poll_query_until('postgres', "SELECT wait_event = 'SyncRep' FROM pg_stat_activity WHERE pid = $pid")
	  or BAIL_OUT('the commit does not wait');
	is($node->safe_psql('postgres', "SELECT count(*) FROM made WHERE id = '$id'"), '0', 'a commit that waits for a standby is not visible');
	cmp_ok(watermark(), 'le', $id, 'and holds the watermark back');
	$node->safe_psql('postgres', "SELECT pg_cancel_backend($pid)");
	$node->poll_query_until('postgres', "SELECT count(*) = 1 FROM made WHERE id = '$id'") or BAIL_OUT('the commit does not end');
	cmp_ok(watermark(), 'gt', $id, 'visible: it does so no more');
	$session->quit;
}

$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
refused('SELECT uuidv7_fast_watermark()', qr/ERROR:  55000: cannot execute uuidv7_fast_watermark\(\) during recovery\n.*HINT:  Call it on the primary/s, 'on a standby', $standby);

# A session that lives through the promotion: its snapshot does not tell which
# transactions were running.
{
	my $session = $standby->background_psql('postgres');
	$session->query_safe('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM made');
	$node->wait_for_catchup($standby);
	$node->stop;
	$standby->promote;
	my $none = '00000000-0000-7000-8000-000000000000';
	is($session->query_safe('SELECT uuidv7_fast_watermark()'), $none, 'promoted: no row is below the watermark for a snapshot from before');
	cmp_ok($session->query_safe('COMMIT; SELECT uuidv7_fast_watermark()'), 'gt', $none, 'for the next snapshot there is one');
	$session->quit;
}
$standby->stop;
done_testing();
