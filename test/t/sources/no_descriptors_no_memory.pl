# A session without descriptors, and one without memory.

use strict;
use warnings;

use Errno qw(EMFILE);
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Faults;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('resources');

# None to be had: only urandom opens a file.
check_failing(
	$node, 'no descriptors',
	source => 'urandom',
	start  => 'limit_descriptors(3)',
	stop   => 'limit_descriptors(0)',
	why    => 'Could not open file "/dev/urandom": ' . reason(EMFILE) . '.');

# All in use, some of them by files that the server keeps open for later.
my $session = session_of($node);
outcome($session, 'SELECT 1');
$session->query_safe("LOAD 'fast_uuid'; SELECT count(*) FROM pg_class, pg_proc; SELECT take_descriptors(true)");
my $open = descriptors($session);
check_working($session, 'urandom', 'where all descriptors are in use one of the server\'s own is freed');
cmp_ok(descriptors($session), '<=', $open, 'and none is kept');
$session->query_safe('SELECT take_descriptors(false)');
check_working($session, 'urandom', 'with descriptors back it works on');
$session->quit;

# No memory for an array; what a value needs is there from the start.
$session = session_of($node, 'SET fast_uuid.buffer_size = 65536; LOAD \'fast_uuid\'; SELECT limit_memory(NULL)');
$session->query_safe('SELECT limit_memory(4096)');
check_working($session, $_, "$_ is first used with 4 MB of memory left") foreach sources();
foreach my $source (sources())
{
	my $array = "SELECT cardinality(uuidv7_fast_array(30000000, '$source'))";
	my $error = qr/^53200\|out of memory\|Failed on request of size 4800000\d\d in memory context /;
	like(outcome($session, $array), $error, "$source: no memory for an array is an error");
	like(error_of($session, $array), $error, "$source: in a transaction of its own too");
	check_working($session, $source, "$source goes on with single values");
	is($session->query_safe("SELECT cardinality(uuidv7_fast_array(1000, '$source'))"),
		1000, "$source: and with a small array");
}
$session->query_safe('SELECT limit_memory(NULL)');
is($session->query_safe('SELECT cardinality(uuidv7_fast_array(1000000))'),
	1000000, 'with memory back a large array is made');
$session->quit;

# No memory for the vDSO's state, not even a page: the system call serves.
SKIP:
{
	my $implementation = "SELECT implementation FROM fast_uuid_sources() WHERE name = 'getrandom'";
	skip 'this kernel has no getrandom in its vDSO', 2 unless $node->safe_psql('postgres', $implementation) eq 'vDSO';
	$session = session_of($node, 'LOAD \'fast_uuid\'; SELECT limit_memory(NULL)');
	is(outcome($session, "SELECT limit_memory(0) AND uuidv7_fast('getrandom') IS NOT NULL AND limit_memory(NULL)"),
		'value true', 'where the state of the vDSO cannot be mapped getrandom works');
	is($session->query_safe($implementation), 'system call', 'by system call');
	check_working($session, 'getrandom', 'and goes on');
	$session->quit;
}

stop_faulty_node($node);
done_testing();
