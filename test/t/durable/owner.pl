# The owner of a database, who is no superuser and creates the extension there, can neither move
# the time of others by the upper bound nor stop them; nor can a role that was granted too much
# move it by more than some seconds.

use strict;
use warnings;

use Test::More;

use lib 'test/perl';
use FeedWriters;
use RawSession;
use Watchdog;

my $node = start_feed('owner', '');
$node->safe_psql('postgres', q{
CREATE ROLE owner LOGIN;
CREATE ROLE careless LOGIN;
CREATE DATABASE owned OWNER owner});
my $now = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
my $far = "(extract(epoch FROM timestamptz '2300-01-01') * 1000000)::bigint";
my $call = 'SELECT uuidv7_feed_id()';
my $works = "$call IS NOT NULL";

sub as_role
{
	my ($role, $sql, $database) = (@_, 'owned');
	my (undef, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$sql",
		extra_params => [ '-U', $role ], on_error_stop => 0);
	return "$out$err";
}

sub check_others
{
	my ($name) = @_;
	my (undef, $out, $err) =
	  $node->psql('postgres', "SET fast_uuid.max_clock_lead = '10 s'; $works");
	is("$out$err", 't', "$name: other databases go on by the clock");
	return;
}

as_role('owner', 'CREATE EXTENSION fast_uuid');
foreach my $sql ("SELECT setval('fast_uuid_upper_bound', $now)",
	"SELECT nextval('fast_uuid_upper_bound')",
	'ALTER SEQUENCE fast_uuid_upper_bound RESTART',
	'ALTER EXTENSION fast_uuid DROP SEQUENCE fast_uuid_upper_bound')
{
	like(as_role('owner', $sql), qr/ERROR:  42501: /, "denied to the creator: $sql");
}
is(as_role('owner', "BEGIN READ ONLY; $works"), 't', 'the creator has the order, READ ONLY too');
check_others('the creator tried');

# A sequence of the creator's own in the extension, created after it or before, with which
# he does what he can.
$node->safe_psql('postgres', 'CREATE DATABASE planted OWNER owner');
my $plant = "CREATE SCHEMA mine;\n"
  . 'CREATE SEQUENCE mine.fast_uuid_upper_bound INCREMENT BY 3155760000000000';
my $add = 'ALTER EXTENSION fast_uuid ADD SEQUENCE mine.fast_uuid_upper_bound';
as_role('owner', "$plant;\n$add");
as_role('owner', "$plant;\nCREATE EXTENSION fast_uuid;\n$add", 'planted');
foreach my $database ('owned', 'planted')
{
	my $members = $node->safe_psql($database,
		q{SELECT count(*) FROM pg_depend JOIN pg_class ON objid = pg_class.oid
		  WHERE deptype = 'e' AND relname = 'fast_uuid_upper_bound'});
	is($members, '2', "$database: the extension has two sequences");
	foreach my $sql ($works, "SELECT nextval('mine.fast_uuid_upper_bound') IS NOT NULL",
		"SELECT setval('mine.fast_uuid_upper_bound', $far) IS NOT NULL",
		'ALTER SEQUENCE mine.fast_uuid_upper_bound RESTART 9223372036854775807')
	{
		as_role('owner', $sql, $database);
		is(as_role('owner', $works, $database), 't', "$database: works after $sql");
		check_others("$database: $sql");
	}
	$node->restart;
	is(as_role('owner', $works, $database), 't', "$database: works after a restart");
	check_others("$database: after a restart");
}

# Nor does one count that takes the place of the extension's.
$node->safe_psql('planted', 'ALTER SEQUENCE public.fast_uuid_upper_bound RENAME TO moved');
$node->safe_psql('planted', 'GRANT CREATE ON SCHEMA public TO owner');
like(as_role('owner', qq{
ALTER EXTENSION fast_uuid DROP SEQUENCE mine.fast_uuid_upper_bound;
ALTER SEQUENCE mine.fast_uuid_upper_bound SET SCHEMA public;
ALTER EXTENSION fast_uuid ADD SEQUENCE public.fast_uuid_upper_bound;
$call}, 'planted'), qr/ERROR:  55000: feed ids require sequence.*\nDETAIL:  .* belongs to a superuser\.\nHINT:  Restore/,
	'in its place: an error');
check_others('in its place');

# A role that may write all sequences.
$node->safe_psql('owned', 'GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO careless');
like(as_role('careless', "SELECT nextval('fast_uuid_upper_bound')"),
	qr/ERROR:  2200H: nextval: reached maximum/, 'nextval() does not move it');
is( as_role('careless', qq{
SELECT setval('fast_uuid_upper_bound', $now + 4000000) AS us \\gset
SELECT uuidv7_feed_position() > 1000 * :us}), 't', 'four seconds ahead: from there on');
check_others('four seconds ahead');
my $too_far = qr/ERROR:  55000: upper bound of feed ids is too far ahead of the clock
DETAIL:  It was set by setval\(\) or pg_upgrade, and is \d+ ms ahead; the limit is 5000 ms\.
HINT:.*max_clock_lead.*uuidv7_feed_observe\(\).*uuidv7_feed_reset\(\)/;

# The next but one is a few nanoseconds, where it overflows.
foreach my $value ($far, "$now + 60000000", '18446744073709552', '9223372036854775807')
{
	like(as_role('careless', "SELECT setval('fast_uuid_upper_bound', $value) IS NOT NULL; $call"),
		qr/^t.*$too_far/s, "$value: refused");
	check_others($value);
}
is( $node->safe_psql('owned', q{
SELECT extract(year FROM upper_bound) FROM fast_uuid_stats() WHERE name = 'feed'}),
	'2554', 'an upper bound beyond all UUIDs is shown as their end');

# A client that does not read these errors holds nobody up.
my $deaf = RawSession->connect($node, user => 'owner', database => 'owned');
$deaf->flood($call, 2000);
my $waits = "SELECT wait_event FROM pg_stat_activity WHERE pid = $deaf->{pid}";
wait_until('the server waits for the client',
	sub { $node->safe_psql('postgres', $waits) eq 'ClientWrite' });
my $other = RawSession->connect($node, user => 'owner', database => 'owned');
is(within($node, 'a client that does not read', sub { $other->outcome($call) }),
	'55000', 'a client that does not read: others get their error');
$_->quit foreach $other, $deaf;

# What nextval() has counted is not what feed ids write there.
$node->safe_psql('owned', qq{
ALTER SEQUENCE fast_uuid_upper_bound INCREMENT BY 1;
SELECT setval('fast_uuid_upper_bound', $far, false), nextval('fast_uuid_upper_bound')});
like(as_role('owner', $call), $too_far, 'a sequence that counts does not set it either');
is($node->safe_psql('owned', "SELECT uuidv7_feed_reset(); $works"),
	"\nt", 'a reset returns to the clock');

# What feed ids have written themselves is believed, however far ahead it is.
$node->safe_psql('owned', q{
SET fast_uuid.max_clock_lead = '1 h';
SELECT uuidv7_feed_observe(uuidv7_fast_at(now() + interval '30 min'))});
$node->restart;
is( as_role('owner', "$call > uuidv7_fast_at(now() + interval '20 min')"),
	't', 'an upper bound of its own, half an hour ahead: ids continue from there');
$node->stop;
done_testing();
