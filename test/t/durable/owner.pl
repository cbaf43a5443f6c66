# Durable order in a database whose owner is no superuser: he creates the extension,
# dumps and restores the upper bound, and cannot move the time of the instance by it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use RawSession;
use Watchdog;

my $node = PostgreSQL::Test::Cluster->new('owner');
$node->init;
$node->start;
if ($node->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	$node->stop;
	plan skip_all => 'durable order requires PostgreSQL 17';
}
$node->safe_psql('postgres',
	'CREATE ROLE owner LOGIN; CREATE ROLE app LOGIN; CREATE DATABASE owned OWNER owner; CREATE EXTENSION fast_uuid');
my $durable  = "SET fast_uuid.ordering = 'durable'";
my $instance = "SET fast_uuid.ordering = 'instance'; SET fast_uuid.max_clock_lead = '61 s'";
my $far      = "(extract(epoch FROM timestamptz '2300-01-01') * 1000000)::bigint";

my $superuser = $node->safe_psql('postgres', 'SELECT current_user');

sub as_role
{
	my ($role, $database, $sql) = @_;
	my ($code, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\n$sql", extra_params => [ '-U', $role ], on_error_stop => 0);
	return "$out$err";
}

sub unharmed
{
	my ($name, $database) = @_;
	my ($code, $out, $err) = $node->psql($database // 'postgres', "$instance; SELECT uuidv7_fast() IS NOT NULL, uuidv7_fast_watermark() IS NOT NULL");
	is("$out$err", 't|t', "$name: other databases go on by the clock");
	return;
}

is(as_role('owner', 'owned', "CREATE EXTENSION fast_uuid; $durable; SELECT uuidv7_fast() IS NOT NULL"), 't', 'the owner creates it, and has the order');

# A name is no SQL.
$node->safe_psql('postgres', 'CREATE ROLE "My App; ALTER ROLE owner SUPERUSER" LOGIN; CREATE DATABASE app OWNER "My App; ALTER ROLE owner SUPERUSER"');
is(as_role('My App; ALTER ROLE owner SUPERUSER', 'app', "CREATE EXTENSION fast_uuid; $durable; SELECT uuidv7_fast() IS NOT NULL"), 't', 'a role of any name creates it');
is($node->safe_psql('app', q{SELECT has_sequence_privilege('My App; ALTER ROLE owner SUPERUSER', 'fast_uuid_upper_bound', 'UPDATE'),
       has_sequence_privilege('My App; ALTER ROLE owner SUPERUSER', 'fast_uuid_upper_bound', 'UPDATE WITH GRANT OPTION'),
       (SELECT rolsuper FROM pg_roles WHERE rolname = 'owner')}), 't|f|f', '... and has the privilege to restore the upper bound, which it cannot pass on');

# A sequence of his own in the extension, in another schema.
foreach my $value ($far, -1)
{
	is(as_role('owner', 'owned', qq{
CREATE SCHEMA mine; CREATE SEQUENCE mine.fast_uuid_upper_bound MINVALUE -9223372036854775808; ALTER EXTENSION fast_uuid ADD SEQUENCE mine.fast_uuid_upper_bound;
SELECT setval('mine.fast_uuid_upper_bound', $value) IS NOT NULL; $durable; SELECT uuidv7_fast() IS NOT NULL}),
		"t\nt", "another sequence in the extension, $value: does not count");
	$node->restart;
	as_role('owner', 'owned', "$durable; SELECT uuidv7_fast(); SELECT uuidv7_fast_watermark()");
	unharmed("another sequence, $value, after a restart");
	as_role('owner', 'owned', 'ALTER EXTENSION fast_uuid DROP SEQUENCE mine.fast_uuid_upper_bound; DROP SCHEMA mine CASCADE');
}

# The extension's, which he may set to restore a dump.
like(as_role('owner', 'owned', "SELECT nextval('fast_uuid_upper_bound')"), qr/ERROR:  2200H: nextval: reached maximum value/, 'nextval() does not move it');
my $set = "SELECT setval('fast_uuid_upper_bound', %s) IS NOT NULL; $durable; SELECT uuidv7_fast() IS NOT NULL";
my $now = '(extract(epoch FROM clock_timestamp()) * 1000000)::bigint';
is(as_role('owner', 'owned', "$durable; SELECT setval('fast_uuid_upper_bound', $now + 50000000) IS NOT NULL;"
		. " SELECT uuidv7_fast_timestamp(uuidv7_fast()) > clock_timestamp() + interval '40 s'"), "t\nt", 'less than a minute ahead: UUIDs continue from there');
unharmed('less than a minute ahead');
my $too_far = qr/ERROR:  55000: upper bound of ordering "durable" is too far ahead of the clock\nDETAIL:  It was set by setval\(\).* \d+ ms ahead; the limit is 60000 ms\.\nHINT:.*fast_uuid_observe\(\).*to the present time with setval\(\)/;
foreach my $value ($far, "$now + 70000000", '9223372036854775807')
{
	like(as_role('owner', 'owned', sprintf($set, $value)), qr/^t.*$too_far/s, "$value: refused");
	unharmed($value);
	like(as_role('owner', 'owned', "$durable; SELECT uuidv7_fast_array(3)"), $too_far, "$value: no array either");
}

# A client that does not read these errors holds nobody up.
my $deaf = RawSession->connect($node, user => 'owner', database => 'owned');
my $pid  = $deaf->query_safe("$durable; SELECT pg_backend_pid()");
my $call = 'SELECT uuidv7_fast()';
$deaf->{socket}->print(('Q' . pack('N', 5 + length $call) . "$call\0") x 2000);
$deaf->{socket}->flush;
wait_until('the server waits for the client',
	sub { $node->safe_psql('postgres', "SELECT wait_event FROM pg_stat_activity WHERE pid = $pid") eq 'ClientWrite' });
my $other = RawSession->connect($node, user => 'owner', database => 'owned');
is(within($node, 'a client that does not read', sub { $other->outcome("$durable; $call") }), '55000', 'a client that does not read: others get their error');
$_->quit foreach $other, $deaf;

is($node->safe_psql('owned', "$durable; SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast() IS NOT NULL"), "\nt", 'a reset returns to the clock');

# Each of the ways out of an upper bound that a dump has restored, 20 minutes ahead: the
# owner gives the order up, or a superuser accepts it.
my $dump = $node->basedir . '/owned.sql';
my $observe = "$durable; SET fast_uuid.max_clock_lead = '30 min'; SELECT fast_uuid_observe(uuidv7_fast_max(%s)) FROM fast_uuid_stats() WHERE name = 'durable'";
$node->safe_psql('owned', sprintf($observe, "clock_timestamp() + interval '20 min'"));
$node->command_ok([ 'pg_dump', '-U', 'owner', '-f', $dump, '-d', $node->connstr('owned') ], 'the owner dumps it');
$node->safe_psql('owned', "$durable; SELECT fast_uuid_reset_ordering()");
foreach my $case (
	[ 'the owner sets it to the present time', 'owner', "SELECT setval('fast_uuid_upper_bound', $now) IS NOT NULL", "t\n", '<' ],
	[ 'a superuser accepts it', $superuser, sprintf($observe, 'upper_bound'), "\n", '>' ])
{
	my ($name, $role, $sql, $out, $compared) = @$case;
	$node->safe_psql('postgres', 'DROP DATABASE IF EXISTS restored');
	$node->safe_psql('postgres', 'CREATE DATABASE restored OWNER owner');
	$node->command_ok([ 'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-U', 'owner', '-f', $dump, '-d', $node->connstr('restored') ], "$name: the owner restores it");
	like(as_role('owner', 'restored', "$durable; SELECT uuidv7_fast()"), $too_far, "$name: refused before");
	is(as_role($role, 'restored', $sql) . "\n" . as_role('owner', 'restored', "$durable; SELECT uuidv7_fast_timestamp(uuidv7_fast()) $compared clock_timestamp() + interval '15 min'"),
		$out . 't', "$name: UUIDs are generated");
}
$node->safe_psql('owned', "$durable; SELECT fast_uuid_reset_ordering()");

# What durable order has written itself is believed, however far ahead it is.
$node->safe_psql('owned', "$durable; SET fast_uuid.max_clock_lead = '1 h'; SELECT fast_uuid_observe(uuidv7_fast_at(now() + interval '30 min'))");
$node->restart;
is(as_role('owner', 'owned', "$durable; SELECT uuidv7_fast_timestamp(uuidv7_fast()) > now() + interval '20 min'"), 't', 'an upper bound of its own, half an hour ahead: goes on from there after a restart');
$node->safe_psql('owned', "$durable; SELECT fast_uuid_reset_ordering()");

# A superuser's value is limited in the same way.
like(as_role($superuser, 'postgres', sprintf($set, $far)), $too_far, 'a superuser: refused as well');
$node->safe_psql('postgres', "$durable; SELECT fast_uuid_reset_ordering()");

# Whose the sequence is does not matter: what is generated, and the watermark, are covered.
{
	$node->safe_psql('postgres', 'CREATE ROLE dba SUPERUSER');
	$node->safe_psql('postgres', 'CREATE DATABASE lost');
	$node->safe_psql('lost', 'CREATE EXTENSION fast_uuid; ALTER SEQUENCE fast_uuid_upper_bound OWNER TO dba');
	$node->safe_psql('postgres', 'ALTER ROLE dba NOSUPERUSER');
	my $watermark = $node->safe_psql('lost', "$durable; SELECT uuidv7_fast_watermark()");
	is($node->safe_psql('lost', "SELECT upper_bound > uuidv7_fast_timestamp('$watermark', true) FROM fast_uuid_stats() WHERE name = 'durable'"), 't',
		'the owner of the sequence has lost superuser: the watermark is covered');
	is(as_role('owner', 'lost', "$durable; SELECT uuidv7_fast() > '$watermark'"), 't', '... and UUIDs are generated');

	# What nextval() has counted is not what durable order writes there.
	$node->safe_psql('postgres', 'ALTER ROLE dba LOGIN');
	like(as_role('dba', 'lost', "ALTER SEQUENCE fast_uuid_upper_bound INCREMENT BY 1; SELECT setval('fast_uuid_upper_bound', $far, false) IS NOT NULL;"
			. " SELECT nextval('fast_uuid_upper_bound') IS NOT NULL; SELECT log_cnt > 0 FROM fast_uuid_upper_bound; $durable; SELECT uuidv7_fast()"),
		qr/^t\nt\nt.*$too_far/, '... and its owner does not set it by nextval() either');
}
$node->stop;
done_testing();
