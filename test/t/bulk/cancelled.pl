# A cancel is answered soon, whatever is being generated or measured, and the session
# goes on; so is the end of a session, and of the server.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use Test::More;

use lib 'test/perl';
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = PostgreSQL::Test::Cluster->new('cancel');
$node->init;
$node->append_conf('postgresql.conf', q{
jit = off
# An array that is generated without a buffer takes minutes.
fast_uuid.source = 'urandom'
fast_uuid.buffer_size = 0
});
$node->start;
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE made (id uuid DEFAULT uuidv7_fast(), n bigint)});
my $many = 60_000_000;
my $rows = 'generate_series(1, 1000000000000)';
my $keys = "$rows, uuidv7_fast() AS id";
my %statements = (
	'an array' => "SELECT cardinality(uuidv7_fast_array($many))",
	'keys' => "SELECT count(id) FROM (SELECT $keys OFFSET 0) AS made",
	'an insert by default' => "INSERT INTO made (n) SELECT $rows",
	'a cursor' => "BEGIN; DECLARE c CURSOR FOR SELECT $keys; MOVE ALL FROM c",
	'a benchmark' => 'SELECT count(*) FROM fast_uuid_benchmark(10000)');
my $session = RawSession->start($node, 'SET fast_uuid.vdso = off');
check_cancel($node, $_, $session, $statements{$_}) foreach sort keys %statements;

# The benchmark measures with the vDSO first.
is($session->query('SHOW fast_uuid.vdso'),
	'off', 'a benchmark that was cancelled leaves the settings as they were');
$session->quit;

# The session ends, in the middle of an array; then the server.
foreach my $end ('pg_terminate_backend', 'stop')
{
	$session = RawSession->start($node);
	my $pid = $session->query('SELECT pg_backend_pid()');
	$session->send($statements{'an array'});
	at_work($pid);
	ok(!$session->has_answer, "$end: an array is being generated");
	within(
		$node, $end,
		sub {
			$end eq 'stop'
			  ? $node->stop('fast')
			  : $node->safe_psql('postgres', "SELECT pg_terminate_backend($pid)");
		});
	within($node, "$end: the session ends", sub { $session->receive });
	is(substr($session->{error}, 0, 5), '57P01', "$end: the session ends");
}

done_testing();
