# A row with the feed's default is covered, whoever inserts it in whatever way, with nothing
# set: until its transaction has ended the watermark is not beyond it, after that readers get
# it.  Keys hold nothing back.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;
use Watchdog;

my $node = start_feed('ways', "autovacuum = off\njit = off");
$node->safe_psql('postgres', qq{
CREATE TABLE outbox (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(), n int UNIQUE);
${\ guard('outbox')};
CREATE TABLE item (key uuid DEFAULT uuidv7_fast());
CREATE TABLE many AS SELECT n FROM generate_series(1, 1000) AS n;
ALTER TABLE many SET (parallel_workers = 2);
CREATE ROLE plain LOGIN;
GRANT SELECT, INSERT ON outbox TO plain;
CREATE VIEW by_view AS SELECT * FROM outbox;
CREATE FUNCTION by_definer() RETURNS void SECURITY DEFINER SET search_path = pg_catalog
	LANGUAGE sql AS 'INSERT INTO public.outbox DEFAULT VALUES';
CREATE TABLE cause (n int);
CREATE FUNCTION by_trigger() RETURNS trigger LANGUAGE plpgsql AS
	'BEGIN INSERT INTO outbox DEFAULT VALUES; RETURN NULL; END';
CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON cause DEFERRABLE INITIALLY DEFERRED
	FOR EACH ROW EXECUTE FUNCTION by_trigger();
CREATE FUNCTION by_event() RETURNS event_trigger LANGUAGE plpgsql AS
	'BEGIN INSERT INTO outbox DEFAULT VALUES; END';
CREATE EVENT TRIGGER at_command ON ddl_command_end WHEN TAG IN ('COMMENT')
	EXECUTE FUNCTION by_event()});

my $asks = RawSession->start($node);
my $insert = 'INSERT INTO outbox DEFAULT VALUES';

# A session, which has run these statements before, inserts in a transaction.
sub check_way
{
	my ($name, $does, $to, @before) = @_;
	my $session = RawSession->start($to, @before);
	my $last = $asks->query_safe("$insert RETURNING id");
	$session->query_safe('BEGIN');
	$session->query_safe($does);
	my $id = $session->query_safe('SELECT max(id::text) FROM outbox');
	cmp_ok($id, 'gt', $last, "$name: a row is inserted");
	$asks->query_safe($insert);
	cmp_ok($asks->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, "$name: it holds back");
	$session->query_safe('COMMIT');
	is($asks->query_safe("SELECT '$id' < uuidv7_feed_watermark()"), 't', "$name: until the commit");
	$session->quit;
	return;
}

my $plain = 'SET SESSION AUTHORIZATION plain';
check_way('nothing before', $insert, $node);
check_way('after DISCARD ALL', $insert, $node, $insert, 'DISCARD ALL');
check_way('after a rollback', $insert, $node, 'BEGIN', $insert, 'ROLLBACK');
check_way('after a COMMIT in a block', $insert, $node, "DO \$\$ BEGIN $insert; COMMIT; END \$\$");
check_way('a key first', "SELECT uuidv7_fast(); $insert", $node, 'SELECT uuidv7_fast()');
check_way('a role without any right but to insert', $insert, $node, $plain);
check_way('a function of another role', 'SELECT by_definer()', $node, $plain);
check_way('a statement that was prepared', 'EXECUTE p', $node, "PREPARE p AS $insert",
	'SET plan_cache_mode = force_generic_plan', 'EXECUTE p');
check_way('a deferred trigger',
	'INSERT INTO cause VALUES (1); SET CONSTRAINTS ALL IMMEDIATE', $node);
check_way('an event trigger', "COMMENT ON TABLE cause IS ''", $node);
check_way('a view', 'INSERT INTO by_view (n) VALUES (NULL)', $node);

my @parallel = ('SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
	'SET min_parallel_table_scan_size = 0', 'SET parallel_leader_participation = off');
my $scan = 'SELECT uuidv7_feed_id() FROM many WHERE n = 500';
like($node->safe_psql('postgres', join ';', @parallel, "EXPLAIN $scan"), qr/Workers Planned: 2/);
check_way('above a parallel plan',
	"DO \$\$ BEGIN EXECUTE format('INSERT INTO outbox VALUES (%L)', ($scan)); END \$\$",
	$node, @parallel);

# PgBouncer in transaction mode, with two sessions of the server for all.
my ($program) = grep { -x } map { "$_/pgbouncer" } split(/:/, $ENV{PATH}), '/usr/sbin';
SKIP:
{
	skip 'pgbouncer is not installed', 1 unless $program;
	my $pooled = PostgreSQL::Test::Cluster->new('pooler');
	my $file = $node->basedir . '/pgbouncer';
	append_to_file("$file.ini", qq{
[databases]
postgres = host=${\ $node->host} port=${\ $node->port} user=${\ scalar getpwuid($>)}
[pgbouncer]
pool_mode = transaction
default_pool_size = 2
auth_type = any
logfile = $file.log
listen_port = ${\ $pooled->port}
unix_socket_dir = ${\ $pooled->host}
});
	my $output;
	my $pooler = IPC::Run::start([ $program, '-q', "$file.ini" ], '<', '/dev/null', '>&', \$output);
	wait_until('the pooler listens', sub { eval { RawSession->start($pooled) } });
	check_way('through PgBouncer', $insert, $pooled);
	check_way('through PgBouncer, after settings of another client', $insert,
		$pooled, 'SET ROLE plain', 'SET fast_uuid.max_clock_lead = 0');
	$pooler->signal('INT');
	ok($pooler->finish, 'the pooler was there to the end');
}

# A READ ONLY transaction reads all rows, and generates, which holds back.
my $session = RawSession->start($node, 'BEGIN READ ONLY');
is($session->query_safe('SELECT count(*) FROM outbox WHERE id >= uuidv7_feed_watermark()'),
	'0', 'READ ONLY: a reader gets all rows');
my $id = $session->query_safe('SELECT uuidv7_feed_id()');
cmp_ok($asks->query_safe('SELECT uuidv7_feed_watermark()'), 'le', $id, 'READ ONLY: holds back');
$session->query_safe('ROLLBACK');

# Transactions that have keys stay open.
my @keys = map { RawSession->start($node, 'BEGIN', 'INSERT INTO item DEFAULT VALUES') } 1 .. 5;
$id = $asks->query_safe("$insert RETURNING id");
is($asks->query_safe("SELECT '$id' < uuidv7_feed_watermark()"), 't', 'keys hold nothing back');
is($asks->query_safe(q{SELECT held_back_by IS NULL FROM fast_uuid_stats() WHERE name = 'feed'}),
	't', '... and nothing is shown to hold it back');
$node->stop;
done_testing();
