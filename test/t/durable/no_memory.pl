# Memory that runs out while feed ids are generated: an error then, that has done nothing, and
# that keeps no lock while a client does not read it.

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
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
$ENV{LD_PRELOAD} = getcwd() . '/test/modules/preload_faults.so';
$node->restart;

# The record that goes to the WAL takes more memory than all else.
my $no_memory = "SELECT inject_fault('malloc 65536')";
my $lead = "SET fast_uuid.max_clock_lead = '1 h'";
my $call = 'SELECT uuidv7_feed_id()';

# Ten minutes ahead of the clock, which a reset would give up.
my $session = RawSession->start($node, $lead);
$session->query_safe("SELECT uuidv7_feed_observe(uuidv7_fast_max(now() + interval '10 min'))");
my $latest = $session->query_safe($call);
$session->query_safe($no_memory);
is($session->outcome('SELECT uuidv7_feed_reset()'), '53200', 'a reset without memory: an error');
$session->query_safe("SELECT inject_fault('')");
cmp_ok($session->query_safe($call), 'gt', $latest, '... and the order goes on');
$session->quit;
$node->restart;
delete $ENV{LD_PRELOAD};

# Each call finds an upper bound to begin after, and has no memory to move it.
my $deaf = RawSession->start($node, $lead, $no_memory);
is($deaf->outcome($call), '53200', 'an id without memory for its upper bound: an error');
$deaf->flood($call, 5000);
my $waits = "SELECT wait_event FROM pg_stat_activity WHERE pid = $deaf->{pid}";
wait_until('the server waits for the client',
	sub { $node->safe_psql('postgres', $waits) eq 'ClientWrite' });
my $other = RawSession->start($node, $lead);
like(within($node, 'beside a client that does not read', sub { $other->outcome($call) }),
	qr/^value /, 'a client that does not read the error: others get their ids');
$_->quit foreach $other, $deaf;
stop_faulty_node($node);
done_testing();
