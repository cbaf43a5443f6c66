# On 15 to 17 the script with PostgreSQL 18's names creates what behaves as 18's functions,
# in a schema that the user names, whatever else the schemas contain.  It says what is wrong,
# and then changes nothing.  From 18 on it refuses, and the page's way on works.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('names');
$node->init;
$node->append_conf('postgresql.conf', "timezone = 'America/New_York'\ndatestyle = 'SQL, DMY'");
$node->start;
$node->safe_psql('postgres', 'CREATE ROLE app LOGIN; CREATE ROLE eve');
$node->safe_psql('postgres', 'CREATE DATABASE app OWNER app');

# Where "make install" has put it, as the server would look for the extension
my $share = $node->config_data('--sharedir');
my $paths = $node->safe_psql('postgres', q{
SELECT CASE name WHEN 'extension_destdir' THEN setting || '$system' ELSE setting END
  FROM pg_settings WHERE name IN ('extension_destdir', 'extension_control_path')});
my ($script) = grep { -e }
  map { s/\$system/$share/r . '/extension/fast_uuid_postgresql_18_names.sql' }
  split(/[:\n]/, $paths), $share;
ok($script, 'the script is installed') or BAIL_OUT('no script');

# Run it as a role, with these arguments of psql: its exit status and what it complains of
sub run_script
{
	my ($role, @arguments) = @_;
	my $connection = $node->connstr('app') . " user=$role";
	my ($out, $err) = run_command([ 'psql', '-Xq', @arguments, '-f', $script, '-d', $connection ]);
	return ($? >> 8) . " $err";
}

my $found = q{
SELECT count(*) FROM pg_proc
 WHERE proname ~ '^uuid(v[47]$|_extract)' AND pronamespace <> 'pg_catalog'::regnamespace};

sub check_refused
{
	my ($message, $role, @arguments) = @_;
	my $before = $node->safe_psql('app', $found);
	like(run_script($role, @arguments), qr/^3 .*ERROR:  \Q$message\E/s, "refused: $message");
	is($node->safe_psql('app', $found), $before, '... nothing is created');
	return;
}

my $page = slurp_file('doc/guide.md');
my ($command) = $page =~ /^(psql [^`]+postgresql_18_names.*)$/m;
my ($move_on) = $page =~ /^```sql 18\+\n([^`]*DROP SCHEMA IF EXISTS pg18.*?)^```$/ms;
$command =~ s/DATABASE/app/;
$command =~ s/"\$\(pg_config.*"/'$script'/;

if ($node->pg_version >= 18)
{
	$node->safe_psql('app', 'CREATE EXTENSION fast_uuid');
	check_refused('PostgreSQL 18 and later have these functions', 'app', '-v', 'schema=public');

	# What an upgrade brings: the script without that check
	my $earlier = $node->basedir . '/earlier.sql';
	append_to_file($earlier, slurp_file($script) =~ s/>= 180000/>= 990000/r);
	$node->command_ok([ 'sh', '-c', $command =~ s/\Q$script\E/$earlier/r ], 'as of an earlier version');
	$node->safe_psql('app', q{
CREATE TABLE item (id uuid DEFAULT pg18.uuidv7(), other uuid DEFAULT coalesce(NULL, pg18.uuidv4()));
INSERT INTO item DEFAULT VALUES});
	$node->safe_psql('app', $move_on);
	is($node->safe_psql('app', 'SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef ORDER BY adnum'),
		"uuidv7()\nCOALESCE(NULL::uuid, uuidv4())", 'the defaults are those of 18');
	$node->safe_psql('app', 'DROP EXTENSION fast_uuid; INSERT INTO item DEFAULT VALUES');
	is($node->safe_psql('app', 'SELECT count(DISTINCT uuid_extract_version(id)) FROM item'), '1',
		'without the extension: ids of one version');
	$node->stop;
	done_testing();
	exit;
}

# The commands of the page, by the owner of the database, who is no superuser
check_refused('the database "app" does not have the extension', 'app', '-v', 'schema=public');
$node->safe_psql('app', 'CREATE EXTENSION fast_uuid', extra_params => [ '-U', 'app' ]);
{
	local $ENV{PGUSER} = 'app';
	$node->command_ok([ 'sh', '-c', $command ], 'the command of the page');
	$node->command_ok([ 'sh', '-c', $command =~ s/-c '.*?'//r ], '... again');
}
is($node->safe_psql('app', 'SET search_path = public, pg18; SELECT uuidv7() < uuidv7()'), 't',
	'called without the schema');

# All kinds of schemas, where others may create better matches
my $schema = q{My "Schema"'s; \names};
my $quoted = q{"My ""Schema""'s; \names"};
$node->safe_psql('app', qq{
DROP SCHEMA pg18 CASCADE;
DROP EXTENSION fast_uuid;
CREATE SCHEMA "Its ""own";
CREATE EXTENSION fast_uuid SCHEMA "Its ""own";
CREATE SCHEMA $quoted AUTHORIZATION app;
CREATE SCHEMA not_ours;
GRANT USAGE ON SCHEMA "Its ""own" TO app});
my $planted = "LANGUAGE plpgsql AS 'BEGIN RAISE ''a planted function''; END'";
foreach my $place ('"Its ""own"', $quoted)
{
	my $sql = "SET search_path = $place;";
	$sql .= "CREATE FUNCTION $_ $planted;" foreach 'uuidv7_fast(interval) RETURNS uuid',
	  'uuidv7_fast_timestamp(uuid) RETURNS timestamptz', 'gen_random_uuid() RETURNS uuid',
	  'format(text, text) RETURNS text', 'current_setting(text) RETURNS text',
	  'get_byte(bytea, integer) RETURNS integer', 'uuid_send(uuid) RETURNS bytea',
	  'f_text(text, text) RETURNS text', 'f_name(name, text) RETURNS boolean',
	  'f_oid(oid, oid) RETURNS boolean', 'f_integer(integer, integer) RETURNS integer';
	$sql .= "CREATE OPERATOR $_);" foreach '|| (LEFTARG = text, RIGHTARG = text, FUNCTION = f_text',
	  '= (LEFTARG = name, RIGHTARG = text, FUNCTION = f_name',
	  '= (LEFTARG = oid, RIGHTARG = oid, FUNCTION = f_oid',
	  '& (LEFTARG = integer, RIGHTARG = integer, FUNCTION = f_integer';
	$node->safe_psql('app', $sql);
}
$node->safe_psql('app', qq{ALTER ROLE app SET search_path = $quoted, "Its ""own", pg_catalog});

check_refused('no schema is given', 'app');
check_refused('no schema is given', 'app', '-v', 'schema=');
check_refused('schema "no ""such" does not exist', 'app', '-v', 'schema=no ""such');
check_refused('schema "pg_catalog" is PostgreSQL\'s own', 'app', '-v', 'schema=pg_catalog');
check_refused('permission denied for schema not_ours', 'app', '-v', 'schema=not_ours');

# Nothing half done
my @named = ('-v', "schema=$schema");
$node->safe_psql('app', qq{
CREATE FUNCTION $quoted.uuid_extract_timestamp(uuid) RETURNS text RETURN ''});
check_refused(qq{$quoted.uuid_extract_timestamp(uuid) is there already}, 'app', @named);
$node->safe_psql('app', qq{ALTER FUNCTION $quoted.uuid_extract_timestamp OWNER TO app});
check_refused('cannot change return type of existing function', 'app', @named);
$node->safe_psql('app', qq{DROP FUNCTION $quoted.uuid_extract_timestamp});

is(run_script('app', @named), '0 ', 'created');
$node->safe_psql('app', qq{CREATE TABLE item (id uuid DEFAULT $quoted.uuidv7(), n int)});
is(run_script('app', @named), '0 ', '... again, beside a table with that default');
my $superuser = $node->safe_psql('app', 'SELECT current_user');
check_refused(qq{$quoted.uuid_extract_timestamp(uuid) is there already}, $superuser, @named);

# A role whose name needs quotes
$node->safe_psql('app', q{
CREATE ROLE "App-Owner" LOGIN;
CREATE SCHEMA capital AUTHORIZATION "App-Owner";
GRANT USAGE ON SCHEMA "Its ""own" TO "App-Owner"});
is(run_script('App-Owner', '-v', 'schema=capital'), '0 ', "a role with capitals: $_")
  foreach 'created', 'again';

is($node->safe_psql('app', q{
SELECT proname, pg_get_function_arguments(p.oid), prorettype::regtype, provolatile, proparallel
  FROM pg_proc AS p JOIN pg_namespace AS n ON n.oid = pronamespace AND nspname LIKE 'My %'
 WHERE proname ~ '^uuid(v[47]$|_extract)' ORDER BY 1, 2}),
	join("\n", 'uuid_extract_timestamp|uuid|timestamp with time zone|i|s',
		'uuid_extract_version|uuid|smallint|i|s', 'uuidv4||uuid|v|s', 'uuidv7||uuid|v|r',
		'uuidv7|shift interval|uuid|v|r'),
	'their arguments, results, volatility and parallel safety');

# What 18's functions return
my $as_app = [ '-U', 'app' ];
sub answer
{
	my ($sql) = @_;
	return $node->safe_psql('app', "SET search_path = $quoted, pg_catalog; $sql",
		extra_params => $as_app);
}
is(answer(q{
SELECT DISTINCT uuid_extract_version(uuidv7()), uuid_extract_version(uuidv7('1 hour')),
       uuid_extract_version(uuidv4())
  FROM generate_series(1, 1000)}), '7|7|4', 'their versions');
is(answer(q{
SELECT bool_and(id > before) FROM (
  SELECT id, lag(id, 1, uuid '00000000-0000-0000-0000-000000000000') OVER (ORDER BY n) AS before
    FROM (SELECT n, uuidv7() AS id FROM generate_series(1, 1000) AS n OFFSET 0) AS ids) AS pairs}),
	't', 'uuidv7() is monotonic');
is(answer(q{
SELECT uuid_extract_timestamp(uuidv7(shift => '-36 hours'))
       BETWEEN now() - interval '36 hours 1 ms' AND clock_timestamp() - interval '36 hours',
       uuid_extract_timestamp(uuidv7()) BETWEEN now() - interval '1 ms' AND clock_timestamp()}),
	't|t', 'the time in them');
is(answer(q{
SELECT num_nulls(uuidv7(NULL), uuid_extract_timestamp(NULL), uuid_extract_version(NULL))}), '3',
	'NULL for NULL');
like(answer(q{EXPLAIN (VERBOSE, COSTS OFF) SELECT uuidv7(), uuidv7('1 hour')}),
	qr/Output: "Its ""own"\.uuidv7_fast\(\), "Its ""own"\.uuidv7_fast\('01:00:00'/,
	'the planner inlines them');

# The examples of RFC 9562, appendices A and B, of which versions 1 and 7 are at the same
# time; other variants; the first and last times
my $at = '2022-02-22 19:22:22.000000';
foreach my $case (
	[ 'c232ab00-9414-11ec-b3c8-9f6bdeced846', 1, $at ],
	[ '5df41881-3aed-3515-88a7-2f4a814cf09e', 3, '' ],
	[ '919108f7-52d1-4320-9bac-f847db4148a8', 4, '' ],
	[ '2ed6657d-e927-568b-95e1-2665a8aea6a2', 5, '' ],
	[ '1ec9414c-232a-6b00-b3c8-9f6bdeced846', 6, '' ],
	[ '017f22e2-79b0-7cc3-98c4-dc0c0c07398f', 7, $at ],
	[ '2489e9ad-2ee2-8e00-8ec9-32d5f69181c0', 8, '' ],
	[ '00000000-0000-0000-0000-000000000000', '', '' ],
	[ 'ffffffff-ffff-ffff-ffff-ffffffffffff', '', '' ],
	[ 'c232ab00-9414-11ec-73c8-9f6bdeced846', '', '' ],
	[ '017f22e2-79b0-7cc3-c8c4-dc0c0c07398f', '', '' ],
	[ 'ffffffff-ffff-ffff-bfff-ffffffffffff', 15, '' ],
	[ '00000000-0000-1000-8000-000000000000', 1, '1582-10-15 00:00:00.000000' ],
	[ 'ffffffff-ffff-1fff-bfff-ffffffffffff', 1, '5236-03-31 21:21:00.684697' ],
	[ '00000000-0000-7000-8000-000000000000', 7, '1970-01-01 00:00:00.000000' ],
	[ 'ffffffff-ffff-7fff-bfff-ffffffffffff', 7, '10889-08-02 05:31:50.655000' ])
{
	my ($id, $version, $time) = @$case;
	is(answer(qq{
SELECT uuid_extract_version('$id'), to_char(uuid_extract_timestamp('$id') AT TIME ZONE 'UTC',
                                            'FMYYYY-MM-DD HH24:MI:SS.US')}),
		"$version|$time", "$id: version and time");
}

# Version 1's count of 100 ns, whose last digit is cut off, on both sides of midnights
foreach my $day (0, 1, 141_427, 152_384, 1_334_398)
{
	use integer;
	foreach my $count (map { $day * 864_000_000_000 + $_ } 0, 9, 10, 863_999_999_989, 863_999_999_999)
	{
		my $id = sprintf('%08x-%04x-1%03x-8000-000000000000',
			$count & 0xffffffff, $count >> 32 & 0xffff, $count >> 48);
		is(answer("SELECT trunc(extract(epoch FROM uuid_extract_timestamp('$id')) * 1000000)"),
			$count / 10 - 12_219_292_800_000_000, "version 1: $count");
	}
}

SKIP:
{
	skip 'before PostgreSQL 17 there is nothing to compare with', 1 if $node->pg_version < 17;
	is(answer(q{
SELECT count(DISTINCT uuid_extract_version(id)), count(uuid_extract_timestamp(id)) > 1000
  FROM (SELECT md5(n::text)::uuid AS id FROM generate_series(1, 100000) AS n) AS ids
 WHERE uuid_extract_version(id) IS NOT DISTINCT FROM pg_catalog.uuid_extract_version(id)
   AND (uuid_extract_timestamp(id) IS NOT DISTINCT FROM pg_catalog.uuid_extract_timestamp(id)
        OR uuid_extract_version(id) = 7)
HAVING count(*) = 100000}), '16|t', "of 100000 UUIDs the same as PostgreSQL 17's functions");
}

# Dump and restore, and the extension that is in use
$node->safe_psql('app', 'INSERT INTO item (n) VALUES (1), (2)');
my $dump = $node->basedir . '/dump';
$node->safe_psql('postgres', 'CREATE DATABASE restored');
system_or_bail('pg_dump', '-Fc', '-f', $dump, '-d', $node->connstr('app'));
$node->command_ok([ 'pg_restore', '-e', '-d', $node->connstr('restored'), $dump ], 'restored');
is($node->safe_psql('restored', q{
INSERT INTO item (n) VALUES (3);
SELECT string_agg(n::text, '' ORDER BY id), count(DISTINCT id) FROM item}), '123|3',
	'... with the ids and the default');
my ($code, $out, $err) = $node->psql('app', 'DROP EXTENSION fast_uuid');
like($err, qr/function \Q$quoted\E\.$_ depends on function/, "DROP EXTENSION names $_")
  foreach qr/uuidv7\(\)/, qr/uuidv7\(interval\)/, qr/uuid_extract_timestamp\(uuid\)/;
like($err, qr/default value for column id of table item depends on function/, '... and the default');

$node->stop;
done_testing();
