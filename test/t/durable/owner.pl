# The owner of a database, who is no superuser and creates the extension there, can
# neither move the time of others by the upper bound nor stop them; nor can a role that
# was granted too much move it by more than some seconds.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;
use Watchdog;

my $node = start_feed('owner', '');
$node->safe_psql('postgres', 'CREATE ROLE owner LOGIN; CREATE DATABASE owned OWNER owner');
my $now     = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
my $far     = "(extract(epoch FROM timestamptz '2300-01-01') * 1000000)::bigint";

sub as_role
{
	my ($role, $sql) = @_;
	my ($code, $out, $err) = $node->psql('owned', "\\set VERBOSITY verbose\n$sql", extra_params => [ '-U', $role ], on_error_stop => 0);
	return "$out$err";
}

my $denied = qr/ERROR:  42501: permission denied for sequence fast_uuid_upper_bound/;
as_role('owner', 'CREATE EXTENSION fast_uuid');
like(as_role('owner', "SELECT setval('fast_uuid_upper_bound', $now + 59900000)"), $denied, 'the creator does not set the upper bound');
like(as_role('owner', "SELECT nextval('fast_uuid_upper_bound')"), $denied, '... nor by nextval()');
like(as_role('owner', $_), qr/ERROR:  42501: must be owner of sequence/, "... nor by $_")
  foreach 'ALTER SEQUENCE fast_uuid_upper_bound RESTART', 'ALTER EXTENSION fast_uuid DROP SEQUENCE fast_uuid_upper_bound';

sub unharmed
{
	my ($name) = @_;
	my ($code, $out, $err) = $node->psql('postgres', "SET fast_uuid.max_clock_lead = '10 s'; SELECT uuidv7_feed_id() IS NOT NULL");
	is("$out$err", 't', "$name: other databases go on by the clock");
	return;
}

is(as_role('owner', 'SELECT uuidv7_feed_id() IS NOT NULL'), 't', 'the creator has the order');
unharmed('the creator tried');

# A sequence of the creator's own in the extension, in another schema.
foreach my $value ($far, -1)
{
	is(as_role('owner', qq{
CREATE SCHEMA mine; CREATE SEQUENCE mine.fast_uuid_upper_bound MINVALUE -9223372036854775808; ALTER EXTENSION fast_uuid ADD SEQUENCE mine.fast_uuid_upper_bound;
SELECT setval('mine.fast_uuid_upper_bound', $value) IS NOT NULL; SELECT uuidv7_feed_id() IS NOT NULL}),
		"t\nt", "another sequence in the extension, $value: does not count");
	$node->restart;
	as_role('owner', 'SELECT uuidv7_feed_id()');
	unharmed("another sequence, $value, after a restart");
	as_role('owner', 'ALTER EXTENSION fast_uuid DROP SEQUENCE mine.fast_uuid_upper_bound; DROP SCHEMA mine CASCADE');
}

# A role that may write all sequences.
$node->safe_psql('postgres', 'CREATE ROLE careless LOGIN');
$node->safe_psql('owned', 'GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO careless');
like(as_role('careless', "SELECT nextval('fast_uuid_upper_bound')"), qr/ERROR:  2200H: nextval: reached maximum value/, 'nextval() does not move it');
$node->safe_psql('postgres', 'CREATE DATABASE fresh');
$node->safe_psql('fresh', 'CREATE EXTENSION fast_uuid');
is(($node->psql('fresh', "SELECT nextval('fast_uuid_upper_bound') FROM generate_series(1, 2)"))[0], 3, '... nor where it was never set');
is($node->safe_psql('fresh', 'SELECT uuidv7_feed_id() IS NOT NULL'), 't', '... and feed ids begin');
is(as_role('careless', "SELECT setval('fast_uuid_upper_bound', $now + 4000000) IS NOT NULL;"
		. ' SELECT uuidv7_fast_timestamp(uuidv7_feed_id()) > clock_timestamp()'), "t\nt", 'four seconds ahead: UUIDs continue from there');
unharmed('four seconds ahead');
my $too_far = qr/ERROR:  55000: upper bound of feed ids is too far ahead of the clock\nDETAIL:  It was set by setval\(\) or pg_upgrade, and is \d+ ms ahead; the limit is 5000 ms\.\nHINT:.*max_clock_lead.*uuidv7_feed_observe\(\).*uuidv7_feed_reset\(\)/;
# The next but one is a few nanoseconds, where it overflows.
foreach my $value ($far, "$now + 10000000", '18446744073709552', '9223372036854775807')
{
	like(as_role('careless', "SELECT setval('fast_uuid_upper_bound', $value) IS NOT NULL; SELECT uuidv7_feed_id()"), qr/^t.*$too_far/s, "$value: refused");
	unharmed($value);
}

# A client that does not read these errors holds nobody up.
my $deaf = RawSession->connect($node, user => 'owner', database => 'owned');
my $pid  = $deaf->query_safe('SELECT pg_backend_pid()');
my $call = 'SELECT uuidv7_feed_id()';
$deaf->flood($call, 2000);
wait_until('the server waits for the client',
	sub { $node->safe_psql('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid") eq 'ClientWrite' });
my $other = RawSession->connect($node, user => 'owner', database => 'owned');
is(within($node, 'a client that does not read', sub { $other->outcome($call) }), '55000', 'a client that does not read: others get their error');
$_->quit foreach $other, $deaf;

is($node->safe_psql('owned', "SELECT setval('fast_uuid_upper_bound', 9223372036854775807) IS NULL; SELECT extract(year FROM upper_bound) FROM fast_uuid_stats() WHERE name = 'feed'"),
	"f\n2554", 'an upper bound beyond all UUIDs: shown as their end');

# What nextval() has counted is not what feed ids write there.
like($node->safe_psql('owned', "ALTER SEQUENCE fast_uuid_upper_bound INCREMENT BY 1; SELECT setval('fast_uuid_upper_bound', $far, false) IS NOT NULL;"
		. " SELECT nextval('fast_uuid_upper_bound') IS NOT NULL; SELECT log_cnt > 0 FROM fast_uuid_upper_bound"), qr/^t\nt\nt$/, 'a sequence that counts');
like(as_role('owner', $call), $too_far, '... does not set it either');

is($node->safe_psql('owned', 'SELECT uuidv7_feed_reset(); SELECT uuidv7_feed_id() IS NOT NULL'), "\nt", 'a reset returns to the clock');

# What feed ids have written themselves is believed, however far ahead it is.
$node->safe_psql('owned', "SET fast_uuid.max_clock_lead = '1 h'; SELECT uuidv7_feed_observe(uuidv7_fast_at(now() + interval '30 min'))");
$node->restart;
is(as_role('owner', "SELECT uuidv7_fast_timestamp(uuidv7_feed_id()) > now() + interval '20 min'"), 't', 'an upper bound of its own, half an hour ahead: goes on from there after a restart');
# In a schema that others may not use, no lock of theirs reaches the sequence, and defaults work.
$node->safe_psql('owned', 'CREATE SCHEMA ids; ALTER EXTENSION fast_uuid SET SCHEMA ids; CREATE ROLE plain LOGIN;'
	  . 'CREATE TABLE item (id uuid DEFAULT ids.uuidv7_feed_id()); GRANT ALL ON item TO plain');
is(as_role('plain', 'INSERT INTO item DEFAULT VALUES; SELECT count(*) FROM item WHERE id IS NOT NULL'), '1', 'a schema without USAGE: a default generates');
like(as_role('plain', "BEGIN; $_"), qr/ERROR:  42501: permission denied for schema ids/, "... and this locks nothing: $_")
  foreach 'CREATE RULE r AS ON INSERT TO ids.fast_uuid_upper_bound DO NOTHING', "SELECT nextval('ids.fast_uuid_upper_bound')";
$node->stop;
done_testing();
