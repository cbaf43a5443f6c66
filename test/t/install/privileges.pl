# What is not for PUBLIC is for no other role either: whatever default privileges say,
# whoever creates the extension, whatever the names of the roles, also in a dump.  Where the
# page's triggers alone generate feed ids, no role that may write to the table has others.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my @names = ('bob', q{"o'brien $do$"}, q{"Quo""te\; ALTER ROLE bob SUPERUSER"});
my $old   = PostgreSQL::Test::Cluster->new('old');
my $new   = PostgreSQL::Test::Cluster->new('new');
foreach my $node ($old, $new)
{
	$node->init;
	$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	$node->start;
	$node->safe_psql('postgres', "CREATE ROLE $_") foreach @names, 'dba SUPERUSER';
}
my $superuser = $old->safe_psql('postgres', 'SELECT quote_ident(current_user)');

# Run some SQL as a role; its output, and the errors that it got
sub as_role
{
	my ($role, $database, $sql) = @_;
	my ($code, $out, $err) = $old->psql($database,
		"\\set VERBOSITY verbose\nSET SESSION AUTHORIZATION $role;\n$sql", on_error_stop => 0);
	return "$out$err";
}

# Who has which privilege, besides the owner, on what is not for PUBLIC
my @calls = ("setval('fast_uuid_upper_bound', 1)", "nextval('fast_uuid_upper_bound')",
	'uuidv7_feed_observe(uuidv7_fast())', 'uuidv7_feed_position_observe(1)', 'uuidv7_feed_reset()');
my $expected   = 'fast_uuid_upper_bound:0:SELECT';
my $privileges = q{
SELECT string_agg(format('%s:%s:%s', object, grantee, privilege_type), ',')
  FROM (SELECT proname, proowner, proacl FROM pg_proc AS p
          JOIN pg_depend AS d ON d.classid = 'pg_proc'::regclass AND d.objid = p.oid AND deptype = 'e'
         WHERE NOT has_function_privilege('public', p.oid, 'EXECUTE')
        UNION ALL
        SELECT relname, relowner, relacl FROM pg_class WHERE relname = 'fast_uuid_upper_bound')
       AS o (object, owner, acl), aclexplode(acl)
 WHERE grantee <> owner};

sub check_restores
{
	my ($name, $database) = @_;
	my $dump = $old->basedir . '/dump';
	$new->safe_psql('postgres', 'DROP DATABASE IF EXISTS restored');
	$new->safe_psql('postgres', 'CREATE DATABASE restored');
	system_or_bail('pg_dump', '-Fc', '-f', $dump, '-d', $old->connstr($database));
	$new->command_ok([ 'pg_restore', '-e', '-d', $new->connstr('restored'), $dump ], $name);
	is($new->safe_psql('restored', 'SELECT count(*) FROM item'), '9', '... with its rows');
	is($new->safe_psql('restored', $privileges), $expected, '... nobody has more than PUBLIC');
	return;
}

my %database;
foreach my $creator ($superuser, 'dba', @names)
{
	my $owner    = $creator eq 'dba' ? 'dba' : $superuser;    # of what the script creates
	my $database = $database{$creator} = 'd' . keys %database;
	my $alter    = "ALTER DEFAULT PRIVILEGES FOR ROLE $owner";
	my $to       = join(', ', @names);
	$old->safe_psql('postgres', "CREATE DATABASE $database OWNER $creator");
	$old->safe_psql($database, "
$alter $_ GRANT ALL ON SEQUENCES TO PUBLIC;
$alter $_ GRANT ALL ON SEQUENCES TO $to WITH GRANT OPTION;
$alter $_ GRANT EXECUTE ON FUNCTIONS TO $to WITH GRANT OPTION") foreach '', 'IN SCHEMA public';
	is(as_role($creator, $database, q{
CREATE EXTENSION fast_uuid;
CREATE TABLE item (id uuid DEFAULT uuidv7_fast());
INSERT INTO item SELECT FROM generate_series(1, 9)}), '', "$creator creates it");
	is($old->safe_psql($database, $privileges), $expected, '... nobody has more than PUBLIC');
	foreach my $role ('bob', $creator)
	{
		next if $role eq $owner;
		like(as_role($role, $database, "SELECT $_"), qr/42501: permission denied for /,
			"... $role may not call $_") foreach @calls;
		my $for_all = 'SELECT count(uuidv7_fast()) > 0 FROM fast_uuid_stats(), fast_uuid_benchmark(1)';
		is(as_role($role, $database, $for_all), 't',
			"... $role may call what is for PUBLIC");
	}
	check_restores("a dump of what $creator created", $database);
}

# Feed ids by triggers alone, as the page has it
$old->safe_psql('postgres', 'CREATE DATABASE hardened');
$old->safe_psql('hardened', 'CREATE EXTENSION fast_uuid');
my $page = slurp_file('doc/security.md');
$old->safe_psql('hardened', $_) foreach $page =~ /^```sql\n(REVOKE.*?)^```$/msg;
$old->safe_psql('hardened', 'GRANT ALL ON payment TO bob; GRANT USAGE ON SCHEMA ids TO bob');
is(as_role('bob', 'hardened', q{
INSERT INTO payment (amount) VALUES (1), (2);
SELECT amount FROM payment ORDER BY id}), "1\n2", 'who has no privilege writes to the feed');
like(as_role('bob', 'hardened', $_), qr/42501: permission denied for function/, "... no $_")
  foreach 'SELECT ids.uuidv7_feed_id()', "SELECT ids.uuidv7_feed_id('openssl')",
  'SELECT ids.uuidv7_feed_position()', 'SELECT ids.uuidv7_feed_watermark()',
  "CREATE TEMP TABLE own (id uuid); CREATE TRIGGER own BEFORE INSERT ON own
   FOR EACH ROW EXECUTE FUNCTION ids.uuidv7_feed_stamp('id')";
like(as_role('bob', 'hardened', 'UPDATE payment SET id = ids.uuidv7_fast()'), qr/ 23514: /,
	'... nor can it write another id');
$old->safe_psql('postgres', 'DROP DATABASE hardened');

# Without the roles.  Before 17 PostgreSQL itself has the owner of an extension's members.
$new->safe_psql('postgres', 'DROP DATABASE restored');
foreach my $role (@names, 'dba')
{
	$old->safe_psql($_, "REASSIGN OWNED BY $role TO CURRENT_USER; DROP OWNED BY $role")
	  foreach values %database;
	$_->safe_psql('postgres', "DROP ROLE $role") foreach $old, $new;
}
delete $database{dba} if $old->pg_version < 17;
check_restores("a dump without $_", $database{$_}) foreach sort keys %database;

$_->stop foreach $old, $new;
done_testing();
