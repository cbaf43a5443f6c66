# The reference has every function with its arguments, properties and columns, and every
# setting with its default and who may set it, as the catalog has them.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('reference');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $text = slurp_file('doc/reference.md');

# The rows of the table with these headings, each a list of its cells.
sub table
{
	my ($headings) = @_;
	my ($rows) = $text =~ /^\| \Q$headings\E \|\n\|[- |]+\|\n((?:\|.*\n)+)/m;
	return map { [ /\G\|\s*((?:`[^`]*`|[^`|])*?)\s*(?=\|)/g ] } split /\n/, $rows;
}

my @catalog = split /\n/, $node->safe_psql('postgres', q{
SELECT proname,
       CASE WHEN proargmodes IS NULL OR 'i' = ANY (proargmodes)
            THEN pg_get_function_arguments(p.oid) ELSE '' END,
       CASE WHEN prorettype <> 'record'::regtype THEN lower(pg_get_function_result(p.oid))
            WHEN proretset THEN 'table' ELSE 'row' END,
       CASE provolatile WHEN 'i' THEN '`IMMUTABLE`' WHEN 's' THEN '`STABLE`' ELSE '`VOLATILE`' END
         || CASE WHEN proisstrict THEN ', `STRICT`' ELSE '' END
         || CASE proparallel WHEN 'r' THEN ', `RESTRICTED`' ELSE ', `SAFE`' END
         || CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN '' ELSE ', not everybody' END,
       (SELECT string_agg(name, ' ') FROM unnest(proargnames, proargmodes) AS argument (name, mode)
         WHERE mode = 'o')
  FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension AS e ON e.oid = d.refobjid AND extname = 'fast_uuid'
 WHERE NOT 'internal'::regtype = ANY (proargtypes)});
my @functions = table('function | meaning | example');
my @properties = table('functions | volatility | parallel safety');
is(@functions, @catalog, 'as many functions as there are');
foreach my $function (@catalog)
{
	my ($name, $arguments, $returns, $properties, $columns) = split /\|/, $function;
	$arguments =~ s/, OUT .*//;
	$arguments =~ s/::(text|interval)|"//g;
	$arguments =~ s/00:00:01/1 s/;
	s/timestamp with time zone/timestamptz/ foreach $arguments, $returns;
	my ($row) = grep { $_->[0] eq "`$name($arguments) → $returns`" } @functions;
	ok($row, "$name($arguments) → $returns is there") or next;

	# The last row is that of the others.
	my ($names, @documented) = @{ (grep { $_->[0] =~ /`$name`|^the others$/ } @properties)[0] };
	is(join(', ', @documented), $properties, "$name: its properties");

	# Those that return several columns have a heading, and the columns below it.
	my ($entry) = $text =~ /^##+ $name\n(.*?)(?=^##|\z)/ms;
	like($entry, qr/`$_`/, "$name: column $_") foreach split ' ', $columns // '';

	# Its example runs, and has that result if it is always the same.
	next if $returns eq 'trigger';
	my ($call, $result) = $row->[2] =~ /^`(.*?)`(?: → `(.*)`)?$/;
	$call = "SELECT $call" unless $call =~ /^SELECT/;
	my ($code, $out, $err) = $node->psql('postgres', "SET timezone = UTC; $call");
	is($code, 0, "$name: its example") or diag($err);
	is($out, $result, "$name: its result") if $properties =~ /IMMUTABLE/;
}

# What the other pages and the settings say of the sources
my $page = slurp_file('doc/sources.md');
my $strength = $node->safe_psql('postgres',
	"SELECT extra_desc FROM pg_settings WHERE name = 'fast_uuid.source'");
foreach my $source (split /\n/, $node->safe_psql('postgres',
	q{SELECT name, CASE WHEN cryptographic THEN 'yes' ELSE 'no' END FROM fast_uuid_sources()}))
{
	my ($name, $cryptographic) = split /\|/, $source;
	like($page, qr/^\| `\Q$name\E` \| \**$cryptographic\** \|/m, "$name: its row in doc/sources.md");
	like($strength, qr/"\Q$name\E"/, "$name: in the description of fast_uuid.source");
	like($text, qr/^\| `fast_uuid.source` \|.*`\Q$name\E`/m, "$name: a value of fast_uuid.source");
}

# The defaults are in force here.
my @settings = table('setting | default | changed by | meaning');
@catalog = split /\n/, $node->safe_psql('postgres', q{
SELECT name, current_setting(name), CASE context WHEN 'user' THEN 'any user' ELSE 'superusers' END,
       (SELECT string_agg(name, ', ') FROM fast_uuid_sources())
  FROM pg_settings WHERE name LIKE 'fast\_uuid.%'});
is(@settings, @catalog, 'as many settings as there are');
foreach my $setting (@catalog)
{
	my ($name, $value, $who, $sources) = split /\|/, $setting;
	my ($row) = grep { $_->[0] eq "`$name`" } @settings;
	ok($row, "$name is there") or next;
	is($row->[2], $who, "$name: who may set it");
	next if $name eq 'fast_uuid.source' && $value ne 'openssl';    # built without OpenSSL
	my %said = (all => $sources, empty => '');
	is($said{ $row->[1] } // $row->[1] =~ s/`//gr, $value, "$name: its default");
}

$node->stop;
done_testing();
