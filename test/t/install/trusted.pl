# The extension is trusted: its script runs as a superuser in a schema that whoever creates
# it chooses.  Functions and operators that are there do not come into it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('trusted');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE eve LOGIN');
$node->safe_psql('postgres', 'CREATE DATABASE hers');
my @as_eve = (extra_params => [ '-U', 'eve' ]);

# So that the script finds something to revoke
$node->safe_psql('hers', q{
GRANT CREATE ON DATABASE hers TO eve;
ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO eve;
ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO eve});

# Operators for every pair of types, of which those that fit exactly come before the
# server's; and the functions that the script calls, for the types of its calls.
my @types = qw(oid regclass regprocedure regrole name text integer bigint boolean aclitem[]
  regprocedure[] uuid);
my $evil    = "LANGUAGE plpgsql AS 'BEGIN ALTER ROLE eve SUPERUSER; RETURN NULL; END'";
my $planted = "CREATE SCHEMA evil;\n";
foreach my $left (@types)
{
	foreach my $right (@types)
	{
		my $name = "evil.f_${left}_$right" =~ s/[][]//gr;
		$planted .= "CREATE FUNCTION $name($left, $right) RETURNS boolean $evil;\n";
		$planted .= "CREATE OPERATOR evil.$_
			(LEFTARG = $left, RIGHTARG = $right, FUNCTION = $name);\n" foreach '=', '<', '<>', '>=';
	}
}
$planted .= "CREATE FUNCTION evil.$_ RETURNS text $evil;\n" foreach 'aclexplode(aclitem[])',
  'format(text, regprocedure, regrole)', 'format(text, regclass, regrole)';
$node->safe_psql('hers', $planted, @as_eve);

# They do what they are made for, where somebody falls for them.
my $is_superuser = "SELECT rolsuper FROM pg_roles WHERE rolname = 'eve'";
$node->safe_psql('hers', q{
SET search_path = evil;
SELECT 'pg_class'::regclass = 1::oid FROM pg_catalog.pg_class LIMIT 1});
is($node->safe_psql('postgres', $is_superuser), 't', 'a superuser who uses one is taken over');
$node->safe_psql('postgres', 'ALTER ROLE eve NOSUPERUSER');

foreach my $sql ('CREATE EXTENSION fast_uuid SCHEMA evil', 'ALTER EXTENSION fast_uuid UPDATE',
	'DROP EXTENSION fast_uuid', 'SET search_path = evil; CREATE EXTENSION fast_uuid')
{
	$node->safe_psql('hers', $sql, @as_eve);
	is($node->safe_psql('postgres', $is_superuser), 'f', "$sql: she is no superuser");
}

# Only CREATE EXTENSION needs plpgsql.
$node->safe_psql('hers', 'DROP EXTENSION plpgsql CASCADE; SELECT evil.uuidv7_fast()');
$node->stop;
done_testing();
