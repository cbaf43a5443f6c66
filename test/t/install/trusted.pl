# The extension is trusted: its script runs as a superuser in a schema that whoever
# creates it chooses.  Functions and operators that are there do not come into it.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('trusted');
$node->init;
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE eve LOGIN; CREATE DATABASE hers; GRANT CREATE ON DATABASE hers TO eve');

# So that the script finds something to revoke.
$node->safe_psql('hers', 'ALTER DEFAULT PRIVILEGES GRANT ALL ON SEQUENCES TO eve; ALTER DEFAULT PRIVILEGES GRANT EXECUTE ON FUNCTIONS TO eve');

# Operators, for every pair of types, of which those that the server has come first; and
# the functions that the script calls, for the types of its calls.
my @types = qw(oid regclass regprocedure regrole name text integer bigint boolean aclitem[] regprocedure[] uuid);
my $planted = '';
foreach my $left (@types)
{
	foreach my $right (@types)
	{
		my $body = "RETURNS boolean LANGUAGE plpgsql AS 'BEGIN ALTER ROLE eve SUPERUSER; RETURN false; END'";
		my $name = "f_$left\_$right" =~ s/\W//gr;
		$planted .= "CREATE FUNCTION evil.$name($left, $right) $body;\n";
		$planted .= "CREATE OPERATOR evil.$_ (LEFTARG = $left, RIGHTARG = $right, FUNCTION = evil.$name);\n" foreach '=', '<', '<>', '>=';
	}
}
$planted .= "CREATE FUNCTION evil.$_ RETURNS text LANGUAGE plpgsql AS 'BEGIN ALTER ROLE eve SUPERUSER; RETURN NULL; END';\n"
  foreach 'format(text, regprocedure, regrole)', 'format(text, regclass, regrole)', 'aclexplode(aclitem[])';
my ($code, $out, $err) = $node->psql('hers', "CREATE SCHEMA evil;\n$planted", extra_params => [ '-U', 'eve' ], on_error_stop => 1);
is($code, 0, 'functions and operators are there') or diag($err);

# They do what they are made for, where somebody falls for them.
$node->safe_psql('hers', "SET search_path = evil; SELECT 'pg_class'::regclass = 1::oid FROM pg_catalog.pg_class LIMIT 1");
my $is_superuser = "SELECT rolsuper FROM pg_roles WHERE rolname = 'eve'";
is($node->safe_psql('postgres', $is_superuser), 't', 'a superuser who uses one is taken over');
$node->safe_psql('postgres', 'ALTER ROLE eve NOSUPERUSER');

foreach my $sql ('CREATE EXTENSION fast_uuid SCHEMA evil', 'ALTER EXTENSION fast_uuid UPDATE', 'DROP EXTENSION fast_uuid',
	'SET search_path = evil; CREATE EXTENSION fast_uuid')
{
	($code, $out, $err) = $node->psql('hers', $sql, extra_params => [ '-U', 'eve' ]);
	is($code, 0, $sql) or diag($err);
	is($node->safe_psql('postgres', $is_superuser), 'f', "$sql: she is no superuser");
}

$node->safe_psql('hers', 'DROP SCHEMA evil CASCADE; DROP EXTENSION plpgsql');
($code, $out, $err) = $node->psql('hers', 'CREATE EXTENSION fast_uuid');
like($err, qr/ERROR:  language "plpgsql" does not exist\nHINT:  Use CREATE EXTENSION to load the language into the database/, 'without plpgsql: an error that says so');
is(($node->psql('hers', 'CREATE EXTENSION plpgsql; CREATE EXTENSION fast_uuid; DROP EXTENSION plpgsql; SELECT uuidv7_fast()'))[0], 0, 'only CREATE EXTENSION needs it');
$node->stop;
done_testing();
