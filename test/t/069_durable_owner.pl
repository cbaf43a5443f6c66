# Durable order in a database whose owner is no superuser: he creates the extension,
# dumps and restores the horizon, and cannot move the time of the instance by it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

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
my $instance = "SET fast_uuid.ordering = 'instance'; SET fast_uuid.max_clock_lead = '2 s'";
my $far      = "(extract(epoch FROM timestamptz '2300-01-01') * 1000000)::bigint";

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
is($node->safe_psql('app', q{SELECT has_sequence_privilege('My App; ALTER ROLE owner SUPERUSER', 'fast_uuid_horizon', 'UPDATE'),
       has_sequence_privilege('My App; ALTER ROLE owner SUPERUSER', 'fast_uuid_horizon', 'UPDATE WITH GRANT OPTION'),
       (SELECT rolsuper FROM pg_roles WHERE rolname = 'owner')}), 't|f|f', '... and has the privilege to restore the horizon, which it cannot pass on');

# A sequence of his own in the extension.
foreach my $value ($far, -1, '9223372036854775807', '18446744073709551')
{
	is(as_role('owner', 'owned', qq{
CREATE SEQUENCE mine MINVALUE -9223372036854775808; ALTER EXTENSION fast_uuid ADD SEQUENCE mine;
SELECT setval('mine', $value) IS NOT NULL; $durable; SELECT uuidv7_fast() IS NOT NULL}),
		"t\nt", "another sequence in the extension, $value: does not count");
	unharmed("another sequence, $value");
	$node->restart;
	as_role('owner', 'owned', "$durable; SELECT uuidv7_fast(); SELECT uuidv7_fast_watermark()");
	unharmed("another sequence, $value, after a restart");
	as_role('owner', 'owned', 'ALTER EXTENSION fast_uuid DROP SEQUENCE mine; DROP SEQUENCE mine');
}

# A superuser's own.
$node->safe_psql('owned', "CREATE SEQUENCE other; ALTER EXTENSION fast_uuid ADD SEQUENCE other; SELECT setval('other', $far)");
is(as_role('owner', 'owned', "$durable; SELECT uuidv7_fast_timestamp(uuidv7_fast()) < now() + interval '1 day'"), 't',
	'a sequence of another name in the extension: does not count, although it is a superuser\'s');
$node->safe_psql('owned', 'ALTER EXTENSION fast_uuid DROP SEQUENCE other; DROP SEQUENCE other');

# The extension's, which he may set to restore a dump.
like(as_role('owner', 'owned', "SELECT nextval('fast_uuid_horizon')"), qr/ERROR:  2200H: nextval: reached maximum value/, 'nextval() does not move it');
my $set = "SELECT setval('fast_uuid_horizon', %s) IS NOT NULL; $durable; SELECT uuidv7_fast() IS NOT NULL";
is(as_role('owner', 'owned', sprintf($set, "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint + 500000")), "t\nt",
	'half a second ahead: believed');
like(as_role('owner', 'owned', sprintf($set, $far)),
	qr/^t.*ERROR:  55000: horizon of ordering "durable" is too far ahead of the clock\nDETAIL:  The horizon is \d+ ms ahead of the clock\. It was set by setval\(\).*HINT:  If the value is correct, revoke the UPDATE privilege/s, 'far ahead: refused');
unharmed('far ahead');
like(as_role('owner', 'owned', 'SELECT uuidv7_fast_watermark()'), qr/ERROR:  55000: horizon/, 'far ahead: no watermark either');
like(as_role('owner', 'owned', sprintf($set, '9223372036854775807')), qr/ERROR:  2200[38]|ERROR:  55000/, 'beyond the end: refused');
unharmed('beyond the end');
is($node->safe_psql('owned', "$durable; SELECT fast_uuid_reset_ordering(); SELECT uuidv7_fast() IS NOT NULL"), "\nt", 'a reset returns to the clock');

# What durable order has written itself is believed, however far ahead it is.
$node->safe_psql('owned', "$durable; SET fast_uuid.max_clock_lead = '1 h'; SELECT fast_uuid_observe(uuidv7_fast_at(now() + interval '30 min'))");
$node->restart;
is(as_role('owner', 'owned', "$durable; SELECT uuidv7_fast_timestamp(uuidv7_fast()) > now() + interval '20 min'"), 't', 'a horizon of its own, half an hour ahead: goes on from there after a restart');
$node->safe_psql('owned', "$durable; SELECT fast_uuid_reset_ordering()");

# A common grant.
$node->safe_psql('postgres', 'GRANT ALL ON ALL SEQUENCES IN SCHEMA public TO app');
like(as_role('app', 'postgres', sprintf($set, $far)), qr/ERROR:  55000: horizon/, 'GRANT ALL ON ALL SEQUENCES: refused');
unharmed('GRANT ALL ON ALL SEQUENCES', 'owned');

# A predefined role that may set every sequence, by itself or by way of another role;
# its members that are superusers anyway do not count.
$node->safe_psql('postgres', 'REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM app; CREATE ROLE writers; CREATE ROLE dba SUPERUSER');
foreach my $case ([ 'GRANT pg_write_all_data TO app', 'REVOKE pg_write_all_data FROM app' ],
	[ 'GRANT pg_write_all_data TO writers; GRANT writers TO app', 'REVOKE pg_write_all_data FROM writers' ])
{
	my ($grant, $revoke) = @$case;
	$node->safe_psql('postgres', $grant);
	like(as_role('app', 'postgres', sprintf($set, $far)), qr/^t.*ERROR:  55000: horizon.*DETAIL:.*which a role other than a superuser may call.*HINT:.*membership in "pg_write_all_data"/s, "$grant: refused");
	unharmed($grant, 'owned');
	$node->safe_psql('postgres', $revoke);
}
$node->safe_psql('postgres', 'GRANT pg_write_all_data TO dba');

# A privilege that is granted while a session has the sequence open.
$node->safe_psql('postgres', "$durable; SELECT fast_uuid_reset_ordering()");
{
	my $superuser = $node->background_psql('postgres', on_error_stop => 0);
	my $call      = 'SELECT uuidv7_fast()';
	$superuser->query($_)
	  foreach $durable, $call, 'BEGIN', "SELECT setval('fast_uuid_horizon', (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)", $call;
	my $covered = $node->safe_psql('postgres', 'SELECT clock_timestamp()');
	$node->safe_psql('postgres', 'GRANT UPDATE ON SEQUENCE fast_uuid_horizon TO app');
	is(as_role('app', 'postgres', "SELECT setval('fast_uuid_horizon', $far) IS NOT NULL"), 't', 'granted meanwhile: set far ahead');
	$superuser->{stderr} = '';
	$node->poll_query_until('postgres', "SELECT clock_timestamp() > '$covered'::timestamptz + interval '1 second'") or die 'the clock stands still';
	$superuser->query($call);
	like($superuser->{stderr}, qr/horizon of ordering "durable" is too far ahead/, 'granted meanwhile: refused');
	$superuser->query('ROLLBACK');
	unharmed('granted meanwhile', 'owned');
	$node->safe_psql('postgres', "REVOKE UPDATE ON SEQUENCE fast_uuid_horizon FROM app; $durable; SELECT fast_uuid_reset_ordering()");
	$superuser->quit;
}

# Where only superusers can, they are believed.
is($node->safe_psql('postgres', sprintf($set, "(extract(epoch FROM now() + interval '1 hour') * 1000000)::bigint")
		. "; SELECT clock_lead > '59 min' FROM fast_uuid_stats() WHERE name = 'instance'"), "t\nt\nt", 'only superusers can set it: an hour is believed');
$node->stop;
done_testing();
