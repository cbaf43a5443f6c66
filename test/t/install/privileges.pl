# What is not for PUBLIC is for no other role either: whatever default privileges say,
# whoever creates the extension, whatever the names of the roles.  Dumps restore, also
# when these roles are gone.  Where the page's triggers alone generate feed ids, no role
# that may write to the table can generate others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my @names = ('bob', "o'brien", 'do$lar', 'Quo"te\\', 'My App; ALTER ROLE bob SUPERUSER');
my ($old, $new) = map { PostgreSQL::Test::Cluster->new($_) } 'old', 'new';
my $superuser;

sub quoted
{
	return '"' . ($_[0] =~ s/"/""/gr) . '"';
}

# Run some SQL as a role; its output, and the error that it got.
sub as_role
{
	my ($node, $role, $database, $sql) = @_;
	my ($code, $out, $err) = $node->psql($database, "\\set VERBOSITY verbose\nSET SESSION AUTHORIZATION " . quoted($role) . ";\n$sql", on_error_stop => 0);
	return "$out$err";
}

foreach my $node ($old, $new)
{
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'") if $node->pg_version < 17;
	$node->start;
	$node->safe_psql('postgres', 'CREATE ROLE ' . quoted($_)) foreach @names;
	$node->safe_psql('postgres', 'CREATE ROLE dba SUPERUSER');
}
$superuser = $old->safe_psql('postgres', 'SELECT current_user');

# Who has which privilege, besides the owner, on what is not for PUBLIC.
my $privileges = q{
SELECT string_agg(format('%s:%s:%s', object, CASE grantee WHEN 0 THEN 'PUBLIC' ELSE grantee::regrole::text END, privilege_type), ',')
  FROM (SELECT oid::regprocedure::text, proowner, proacl FROM pg_proc
         WHERE proname ~ '^(fast_uuid_(observe|reset_ordering|benchmark)|uuidv7_feed_(observe|position_observe|reset))$'
        UNION ALL
        SELECT relname, relowner, relacl FROM pg_class WHERE relname = 'fast_uuid_upper_bound') AS o (object, owner, acl), aclexplode(acl)
 WHERE grantee <> owner};
my $expected = 'fast_uuid_upper_bound:PUBLIC:SELECT';
my @calls = (
	"setval('fast_uuid_upper_bound', 1)", "nextval('fast_uuid_upper_bound')", 'fast_uuid_observe(uuidv7_fast())',
	'fast_uuid_reset_ordering()', 'fast_uuid_benchmark(1)', 'uuidv7_feed_observe(uuidv7_fast())', 'uuidv7_feed_position_observe(1)',
	'uuidv7_feed_reset()');
my @denied = map { /'(\w+)'/ ? "sequence $1" : /^(\w+)/ ? "function $1" : () } @calls;

sub restores
{
	my ($name, $database) = @_;
	my $dump = $old->basedir . '/dump';
	$new->safe_psql('postgres', 'DROP DATABASE IF EXISTS restored');
	$new->safe_psql('postgres', 'CREATE DATABASE restored');
	$old->command_ok([ 'pg_dump', '--format', 'custom', '--file', $dump, '-d', $old->connstr($database) ], "$name: dumped");
	$new->command_ok([ 'pg_restore', '--exit-on-error', '-d', $new->connstr('restored'), $dump ], "$name: restored");
	is($new->safe_psql('restored', 'INSERT INTO item DEFAULT VALUES; SELECT count(*) FROM item'), '11', "$name: restored, with its rows");
	is($new->safe_psql('restored', $privileges), $expected, "$name: restored, nobody has more than PUBLIC");
	return;
}

my (@databases, @dumped);
my $to = join(', ', 'pg_monitor', map { quoted($_) } @names);
foreach my $case ([ $superuser, $superuser ], [ 'dba', 'dba' ], map { [ $_, $superuser ] } @names)
{
	my ($creator, $owner) = @$case;
	my $database = 'd' . @databases;
	push @databases, $database;
	$old->safe_psql('postgres', "CREATE DATABASE $database OWNER " . quoted($creator));
	foreach my $where ('', 'IN SCHEMA public')
	{
		my $alter = 'ALTER DEFAULT PRIVILEGES FOR ROLE ' . quoted($owner) . " $where GRANT";
		$old->safe_psql($database, "$alter ALL ON SEQUENCES TO PUBLIC; $alter ALL ON SEQUENCES TO $to WITH GRANT OPTION;
$alter EXECUTE ON FUNCTIONS TO $to WITH GRANT OPTION");
	}
	is(as_role($old, $creator, $database, 'CREATE EXTENSION fast_uuid; CREATE TABLE item AS SELECT uuidv7_fast_set(9) AS id; ALTER TABLE item ALTER id SET DEFAULT uuidv7_fast(); INSERT INTO item DEFAULT VALUES'),
		'', "$creator creates it");
	is($old->safe_psql($database, $privileges), $expected, "created by $creator: nobody has more than PUBLIC");
	foreach my $role ('bob', $creator)
	{
		next if $role eq $owner;
		is_deeply([ as_role($old, $role, $database, join('', map { "SELECT $_;\n" } @calls)) =~ /42501: permission denied for (\w+ \w+)/g ],
			\@denied, "created by $creator, called by $role: what is not for PUBLIC is denied");
		is(as_role($old, $role, $database, 'SELECT uuidv7_fast() IS NOT NULL, upper_bound IS NULL FROM fast_uuid_stats() WHERE name = \'feed\''), 't|t', "created by $creator, called by $role: what is for PUBLIC");
	}
	next unless grep { $_ eq $creator } $superuser, 'dba', $names[-1];
	push @dumped, $database;
	restores("created by $creator", $database);
}

# Feed ids by triggers alone, as the page has it.
$old->safe_psql('postgres', 'CREATE DATABASE hardened');
$old->safe_psql('hardened', join "\n", 'CREATE EXTENSION fast_uuid;', (map { $_->{sql} } grep { $_->{sql} =~ /^REVOKE/ } examples('doc/security.md')),
	'GRANT SELECT, INSERT, UPDATE ON payment TO bob; GRANT USAGE ON SCHEMA ids TO bob');
is(as_role($old, 'bob', 'hardened', 'INSERT INTO payment (amount) VALUES (1), (2); SELECT amount FROM payment ORDER BY id'), "1\n2",
	'a role without the privilege writes to the feed');
like(as_role($old, 'bob', 'hardened', $_), qr/42501: permission denied for function/, "and cannot generate otherwise: $_")
  foreach 'SELECT ids.uuidv7_feed_id()', "SELECT ids.uuidv7_feed_id('openssl')", 'SELECT ids.uuidv7_feed_position()',
  "CREATE TEMP TABLE own (id uuid); CREATE TRIGGER own BEFORE INSERT ON own FOR EACH ROW EXECUTE FUNCTION ids.uuidv7_feed_stamp('id')", 'SELECT ids.uuidv7_feed_watermark()', 'SELECT ids.uuidv7_feed_wait(0)';
like(as_role($old, 'bob', 'hardened', 'UPDATE payment SET id = ids.uuidv7_fast()'), qr/ 23514: /, 'nor write another id');
$old->safe_psql('postgres', 'DROP DATABASE hardened');

# Without the roles.
foreach my $database (@databases)
{
	$old->safe_psql($database,
		join('', map { "REASSIGN OWNED BY $_ TO CURRENT_USER; DROP OWNED BY $_;" } map { quoted($_) } @names, 'dba'));
}
$old->safe_psql('postgres', 'DROP ROLE ' . quoted($_)) foreach @names, 'dba';
$new->safe_psql('postgres', 'DROP DATABASE restored');
$new->safe_psql('postgres', 'DROP ROLE ' . quoted($_)) foreach @names, 'dba';

# Before 17 PostgreSQL itself keeps the owner of an extension's members in dumps: not dba's.
splice(@dumped, 1, 1) if $old->safe_psql('postgres', 'SHOW server_version_num') < 170000;
restores("after the roles were dropped, $_", $_) foreach @dumped;

$_->stop foreach $old, $new;
done_testing();
