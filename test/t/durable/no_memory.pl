# Memory that runs out while feed ids are generated: an error then, that has done nothing,
# and that keeps no lock while a client does not read it.

use strict;
use warnings;

use Cwd qw(getcwd);
use Test::More;

use lib 'test/perl';
use Faults;
use RawSession;
use Watchdog;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $node = start_faulty_node('no_memory');
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'") if $node->pg_version < 17;
sub restart
{
	local $ENV{LD_PRELOAD} = getcwd() . '/test/modules/preload_faults.so';
	return $node->restart;
}
restart();

# The record that goes to the WAL takes more memory than all else.
my $no_memory = "SELECT inject_fault('malloc 65536')";
my $lead      = "SET fast_uuid.max_clock_lead = '1 h'";

# Ten minutes ahead of the clock, which a reset would give up.
my $session = RawSession->start($node, $lead, "SELECT uuidv7_feed_observe(uuidv7_fast_max(clock_timestamp() + interval '10 min'))");
my $latest  = $session->query_safe('SELECT uuidv7_feed_id()');
my $upper_bound = "SELECT upper_bound FROM fast_uuid_stats() WHERE name = 'feed'";
my $before  = $session->query_safe($upper_bound);
$session->query_safe($no_memory);
like($session->outcome('SELECT uuidv7_feed_reset()'), qr/^53200/, 'a reset without memory: an error');
$session->query_safe("SELECT inject_fault('')");
is($session->query_safe($upper_bound), $before, 'the upper bound is where it was');
cmp_ok($session->query_safe('SELECT uuidv7_feed_id()'), 'gt', $latest, 'and the order goes on');
$session->query_safe('SELECT uuidv7_feed_reset()');
cmp_ok($session->query_safe('SELECT uuidv7_feed_id()'), 'lt', $latest, 'with memory it is given up');
$session->quit;
restart();

# Each call finds an upper bound to begin after, and has no memory to move it.
my $deaf = RawSession->start($node, $lead, $no_memory);
my $pid  = $deaf->query_safe('SELECT pg_backend_pid()');
my $call = 'SELECT uuidv7_feed_id()';
like($deaf->outcome($call), qr/^53200/, 'a UUID without memory for its upper bound: an error');
$deaf->flood($call, 5000);
wait_until('the server waits for the client',
	sub { $node->safe_psql('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid") eq 'ClientWrite' });
my $other = RawSession->start($node, $lead);
like(within($node, 'a client that does not read', sub { $other->outcome($call) }), qr/^value /, 'a client that does not read the error: others get their UUID');
$_->quit foreach $other, $deaf;

stop_faulty_node($node);
done_testing();
