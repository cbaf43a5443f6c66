# A row with the feed's default is covered, whoever inserts it in whatever way, with nothing
# set: until its transaction has ended the watermark is not beyond it, after that readers
# get it.  And keys are not in the way: they hold nothing back, and push nothing.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;
use FeedWriters;
use RawSession;
use Watchdog;

my $node = new_feed_node('ways', "max_connections = 120\nautovacuum = off\njit = off");
fake_clock_installed() ? start_with_fake_clock($node) : $node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), n int UNIQUE);
CREATE TABLE item (key uuid DEFAULT uuidv7_fast());
CREATE TABLE many AS SELECT n FROM generate_series(1, 1000) AS n;
ALTER TABLE many SET (parallel_workers = 2);
CREATE ROLE plain LOGIN;
GRANT SELECT, INSERT ON outbox TO plain;
CREATE VIEW by_view AS SELECT * FROM outbox;
CREATE FUNCTION by_definer() RETURNS void SECURITY DEFINER SET search_path = pg_catalog LANGUAGE sql AS 'INSERT INTO public.outbox DEFAULT VALUES';
CREATE TABLE cause ();
CREATE FUNCTION by_trigger() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO outbox DEFAULT VALUES; RETURN NULL; END';
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON cause DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION by_trigger();
CREATE FUNCTION by_event() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN INSERT INTO outbox DEFAULT VALUES; END';
CREATE EVENT TRIGGER at_command ON ddl_command_end WHEN TAG IN ('COMMENT') EXECUTE FUNCTION by_event()});

$node->safe_psql('postgres', guard('outbox'));

# PgBouncer in transaction mode, with two sessions of the server for all.
my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
my ($pooler, $pooled);
if ($program)
{
	$pooled = PostgreSQL::Test::Cluster->new('pooler');
	my $file = $node->basedir . '/pgbouncer';
	append_to_file("$file.ini", join "\n", '[databases]', "postgres = host=${\ $node->host} port=${\ $node->port} user=" . getpwuid($>),
		'[pgbouncer]', 'pool_mode = transaction', 'default_pool_size = 2', 'auth_type = any', "logfile = $file.log",
		"listen_port = ${\ $pooled->port}", "unix_socket_dir = ${\ $pooled->host}", '');
	$pooler = IPC::Run::start([ $program, '-q', "$file.ini" ], '<', '/dev/null', '>&', \my $output);
	wait_until('the pooler listens', sub { -S $pooled->host . '/.s.PGSQL.' . $pooled->port });
}

my $insert = 'INSERT INTO outbox DEFAULT VALUES';
my @parallel = map { "SET $_" } 'parallel_setup_cost = 0', 'parallel_tuple_cost = 0', 'min_parallel_table_scan_size = 0', 'parallel_leader_participation = off';
my $scan = 'SELECT uuidv7_feed_id() FROM many WHERE n = 500';

# What comes before the transaction, and what inserts in it.
my %way = (
	'nothing before' => [ [], $insert ],
	'after DISCARD ALL' => [ [ $insert, 'DISCARD ALL' ], $insert ],
	'after a rollback' => [ [ 'BEGIN', $insert, 'ROLLBACK' ], $insert ],
	'a role without any right but to insert' => [ ['SET SESSION AUTHORIZATION plain'], $insert ],
	'a function of another role with a search path of its own' => [ ['SET SESSION AUTHORIZATION plain'], 'SELECT by_definer()' ],
	'a statement that was prepared' => [ [ "PREPARE p AS $insert", 'SET plan_cache_mode = force_generic_plan', 'EXECUTE p' ], 'EXECUTE p' ],
	'after a COMMIT in a block' => [ ["DO \$\$ BEGIN $insert; COMMIT; END \$\$"], $insert ],
	'a deferred trigger' => [ [], 'INSERT INTO cause DEFAULT VALUES; SET CONSTRAINTS ALL IMMEDIATE' ],
	'an event trigger' => [ [], "COMMENT ON TABLE cause IS ''" ],
	'a view' => [ [], 'INSERT INTO by_view (n) VALUES (NULL)' ],
	'above a parallel plan' => [ \@parallel, "DO \$\$ BEGIN EXECUTE format('INSERT INTO outbox VALUES (%L)', ($scan)); END \$\$" ],
	'a key first' => [ ['SELECT uuidv7_fast()'], "SELECT uuidv7_fast(); $insert" ],
	$program ? ('through PgBouncer' => [ [], $insert ], 'through PgBouncer, after settings of another client' => [ [ 'SET ROLE plain', 'SET fast_uuid.max_clock_lead = 0' ], $insert ]) : ());

my $asks = RawSession->start($node);
foreach my $name (sort keys %way)
{
	my ($before, $does) = @{ $way{$name} };
	my $session = RawSession->start($name =~ /PgBouncer/ ? $pooled : $node, @$before);
	like($session->query_safe("EXPLAIN $scan"), qr/Workers Planned: 2/, "$name: it is") if $name =~ /parallel/;
	my $last = $asks->query_safe("SELECT coalesce(max(id::text), '00000000-0000-0000-0000-000000000000') FROM outbox");
	$session->query_safe('BEGIN');
	$session->query_safe($does);
	my $id = $session->query_safe("SELECT max(id::text) FROM outbox WHERE id > '$last'");
	cmp_ok($id, 'gt', $last, "$name: a row is inserted");
	$asks->query_safe($insert);
	cmp_ok($asks->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, "$name: the watermark is held back");
	$session->query_safe('COMMIT');
	is($asks->query_safe("SELECT count(*) FROM outbox WHERE id = '$id' AND id < uuidv7_feed_watermark()"), '1', "$name: until it is committed");
	$session->quit;
}
SKIP:
{
	skip 'pgbouncer is not installed', 1 unless $program;
	$pooler->signal('INT');
	ok($pooler->finish, 'the pooler was there to the end');
}

# A READ ONLY transaction generates, is not ahead of readers by that, cannot insert, and reads.
{
	my $session = RawSession->start($node, 'BEGIN READ ONLY');
	my $id = $session->query_safe('SELECT uuidv7_feed_id()');
	cmp_ok($asks->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, 'READ ONLY: the watermark is held back');
	is($session->outcome($insert), '25006', 'READ ONLY: no row');
	$session->query_safe('ROLLBACK; BEGIN READ ONLY');
	is($session->query_safe('SELECT count(*) FROM outbox WHERE id < uuidv7_feed_watermark()'),
		$asks->query_safe('SELECT count(*) FROM outbox'), 'READ ONLY: a reader gets all rows');
	$session->quit;
}

# Fifty transactions that have keys stay open.
{
	my @keys = map { RawSession->start($node, 'BEGIN', 'SELECT uuidv7_fast()', 'INSERT INTO item DEFAULT VALUES') } 1 .. 50;
	my $id = $asks->query_safe("$insert RETURNING id");
	is($asks->query_safe("SELECT count(*) FROM outbox WHERE id = '$id' AND id < uuidv7_feed_watermark()"), '1', 'fifty transactions with keys are open: a row is delivered at once');
	is($asks->query_safe("SELECT held_back_by IS NULL FROM fast_uuid_stats() WHERE name = 'feed'"), 't', '... and nothing is shown to hold it back');
	$_->quit foreach @keys;
}

# A session has keys of an hour ahead.
SKIP:
{
	skip 'libfaketime is not installed', 1 unless fake_clock_installed();
	my $session = RawSession->start($node, 'SELECT uuidv7_feed_id()');
	my $feed = q{SELECT clock_lead < '1 s' AND upper_bound < now() + '3 s' FROM fast_uuid_stats() WHERE name = 'feed'};
	set_clock_offset($node, '+3600');
	my $key = $session->query_safe('SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	my $ahead = $session->query_safe("SELECT uuidv7_fast_min(now() + '1 min')");
	my @ids = map { $session->query_safe('SELECT uuidv7_feed_id()'), $session->query_safe('INSERT INTO item DEFAULT VALUES RETURNING key') } 1 .. 3;
	is(scalar(grep { $ids[$_] ge $ahead } 0, 2, 4), 0, 'keys of an hour ahead do not push the feed ids of their session');
	ok($ahead lt $key && $key lt $ids[1] && $ids[1] lt $ids[3] && $ids[3] lt $ids[5], '... while they go on themselves');
	is($asks->query_safe($feed), 't', "... nor is the feed's time or its upper bound pushed");

	# Nor does the feed push keys.
	$session->query_safe("SET fast_uuid.max_clock_lead = '2 h'; SELECT uuidv7_feed_observe(uuidv7_fast_max(now() + '90 min'))");
	my ($id, $next) = map { $session->query_safe($_) } 'SELECT uuidv7_feed_id()', 'SELECT uuidv7_fast()';
	ok($ids[5] lt $next && $next lt $id, 'keys do not follow feed ids of half an hour later');
	$session->quit;
}
$asks->quit;
$node->stop;
done_testing();
