# Generators do not stand in the way of a parallel plan: the leader calls them above it, in
# one order.  In a worker, which only a wrong label can bring about, nothing is generated.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;

my $node = PostgreSQL::Test::Cluster->new('parallel');
$node->init;
$node->append_conf('postgresql.conf', "jit = off\nmax_worker_processes = 16");
$node->start;
$node->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE input AS SELECT n FROM generate_series(1, 10000) AS n;
ALTER TABLE input SET (parallel_workers = 2);
CREATE FUNCTION mislabelled(call text) RETURNS text LANGUAGE plpgsql PARALLEL SAFE AS
	'DECLARE id text; BEGIN EXECUTE concat($$SELECT $$, call) INTO id; RETURN id; END';
});
my $plan = 'FROM input WHERE n % 100 = 0';

my @generators = (
	'uuidv7_fast()', "uuidv7_fast('urandom')", "uuidv7_fast(interval '0')",
	'unnest(uuidv7_fast_array(3))');

sub start_session
{
	return RawSession->start($node, 'SET parallel_setup_cost = 0', 'SET parallel_tuple_cost = 0',
		'SET min_parallel_table_scan_size = 0', 'SET parallel_leader_participation = off');
}

# In a worker, where the library is loaded for the first time or not
sub check_refused_in_worker
{
	my ($session, $call, $name) = @_;
	my $quoted = $call =~ s/'/''/gr;
	$session->query("SELECT mislabelled('$quoted') $plan");
	is( $session->{error},
		"25000 cannot generate UUIDs in a parallel worker||Mark the calling function PARALLEL RESTRICTED.",
		"$name, $call in a worker");
	return;
}

foreach my $preload ('', 'fast_uuid')
{
	my $name = $preload eq '' ? 'not preloaded' : 'preloaded';
	$node->append_conf('postgresql.conf', "shared_preload_libraries = '$preload'\n");
	$node->restart;

	# Workers start whatever seed their leader has, and its ids do not notice.
	foreach my $time ('', ' 2026-01-01', ' 2026-01-01T00:00:00Z', ' 2026-01-01 09:00+09')
	{
		my $session = start_session();
		$session->query_safe("SET fast_uuid.$_") foreach "source = 'xorshift128+'", "seed = '42$time'";
		like($session->query_safe('SELECT right(uuidv7_fast()::text, 12)'),
			qr/^1559e2525f98$/, "$name, seed 42$time: the first id");
		like($session->query_safe("SELECT count(*) $plan"), qr/^\d+$/, '... workers');
		like($session->query_safe('SELECT right(uuidv7_fast()::text, 12)'),
			qr/^533f2de1e247$/, '... the second id');
		$session->quit;
	}

	foreach my $call (@generators)
	{
		my $session = start_session();
		my $made    = "CREATE TABLE made AS SELECT $call AS id $plan";
		like($session->query_safe("EXPLAIN $made"), qr/Gather/, "$name, $call: a parallel plan");
		$session->query_safe($made);
		is( $session->query_safe(
				'SELECT bool_and(id > previous) FROM'
				  . ' (SELECT id, lag(id) OVER (ORDER BY ctid) AS previous FROM made) AS pairs'),
			't', "$name, $call above it: in one order");
		is("@{ $session->{notices} }", '', "$name, $call above it: no warning");
		$session->query_safe('DROP TABLE made');
		$session->quit;
	}

	my $session = start_session();
	foreach my $call (@generators, 'uuidv7_fast_at(now())')
	{
		check_refused_in_worker($session, $call, $name);
		like($session->outcome("SELECT $call"), qr/^value [0-9a-f]/, "$name, $call in its leader");
	}
	$session->quit;
}

$node->stop;
done_testing();
