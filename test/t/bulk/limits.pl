# Bulk at its limits: the largest array, a set that streams in constant memory,
# and calls that are cancelled by another session.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('bulk');
$node->init;
$node->append_conf('postgresql.conf', 'jit = off');
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $session = $node->background_psql('postgres', on_error_stop => 0);
my $pid     = $session->query_safe('SELECT pg_backend_pid()');

SKIP:
{
	skip 'needs /proc', 1 unless -r "/proc/$pid/status";
	my $memory = sub { (slurp_file("/proc/$pid/status") =~ /^RssAnon:\s+(\d+) kB/m)[0] };
	my $stream = 'SELECT count(id) FROM (SELECT uuidv7_fast_set(%d) AS id) AS made';
	$session->query_safe(sprintf $stream, 100_000);
	my $before = $memory->();
	is($session->query_safe(sprintf $stream, 10_000_000), 10_000_000, 'a set of ten million');
	cmp_ok($memory->() - $before, '<', 512, 'a set streams in constant memory');
}

# Cancelled while they run: the canceller looks for the statement at work.
sub cancel
{
	my ($statement) = @_;
	my ($out, $err) = ('', '');
	my $running = IPC::Run::start(
		[
			'psql', '-XAtq', '-d', $node->connstr('postgres') . " application_name=victim",
			'-c', $statement, '-c', 'SELECT uuidv7_fast() IS NOT NULL'
		],
		'<', '/dev/null', '>', \$out, '2>', \$err);
	if (!$node->poll_query_until('postgres',
			"SELECT count(pg_cancel_backend(pid)) > 0 FROM pg_stat_activity"
			  . " WHERE application_name = 'victim' AND state = 'active'"))
	{
		IPC::Run::kill_kill($running);
		return 'nothing to cancel';
	}
	IPC::Run::finish($running);
	return "$err$out";
}

like(cancel("SELECT uuidv7_fast_array(60000000, 'urandom') IS NULL"),
	qr/canceling statement due to user request\nt\n/, 'an array is cancelled, the session goes on');
like(cancel("SELECT count(*) FROM (SELECT uuidv7_fast_set(1000000000000)) AS made"),
	qr/canceling statement due to user request\nt\n/, 'a set is cancelled, the session goes on');

SKIP:
{
	my ($free) = -r '/proc/meminfo' ? slurp_file('/proc/meminfo') =~ /^MemAvailable:\s+(\d+) kB/m : 0;
	skip 'the largest array takes 1 GB of memory', 2 if $free < 4 * 1024 * 1024;
	is($session->query_safe(
			"SELECT cardinality(ids), ids[1] < ids[2] AND ids[67108861] < ids[67108862]"
			  . " FROM (SELECT uuidv7_fast_array(67108862, 'xorshift128+') AS ids OFFSET 0) AS made"),
		'67108862|t', 'the largest array');
	is($session->query('SELECT uuidv7_fast_array(67108863)'), '', 'one more is refused');
}

$session->quit;
$node->stop;
done_testing();
