# The reference has every function with its arguments, properties and columns, and
# every setting with its default and who may set it, as the catalog has them.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = PostgreSQL::Test::Cluster->new('reference');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\n");
$node->start;
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

my $text = slurp_file('doc/reference.md');

# The rows of the table with these headings, each a list of its cells.
sub table
{
	my ($headings) = @_;
	my ($rows) = $text =~ /^\| \Q$headings\E \|\n\|[- |]+\|\n((?:\|.*\n)+)/m or die "no table: $headings";
	return map { [ /\G\|\s*((?:`[^`]*`|[^`|])*?)\s*(?=\|)/g ] } split /\n/, $rows;
}

my (%documented, %example);
foreach my $row (table('function | meaning | example'))
{
	my ($function, $meaning, $example) = @$row;
	my ($signature, $returns) = $function =~ /\A`(\w+\(.*\)) → (.*)`\z/ or die "no signature: $function";
	$documented{$signature} = $returns;
	$example{$signature} = [ map { s/^`(.*)`$/$1/r } split / → /, $example, 2 ];
}
my %properties;
foreach my $row (table('functions | volatility | parallel safety | executed by'))
{
	my ($names, @properties) = @$row;
	$properties{ s/`//gr } = \@properties foreach split /, /, $names;
}
my %columns_of = map { /\A(\w+)\n(.*)\z/s ? ($1 => $2) : () } split /^##+ /m, $text;

my @functions = split /\n/, $node->safe_psql('postgres', q{
SELECT proname || '(' || CASE WHEN proargmodes IS NULL OR 'i' = ANY (proargmodes) THEN pg_get_function_arguments(p.oid) ELSE '' END || ')',
       CASE WHEN prorettype = 'record'::regtype THEN CASE WHEN proretset THEN 'table' ELSE 'row' END
            ELSE lower(pg_get_function_result(p.oid)) END,
       provolatile, proparallel, proisstrict, has_function_privilege('public', p.oid, 'EXECUTE')
  FROM pg_proc AS p JOIN pg_depend AS d ON d.objid = p.oid AND d.deptype = 'e'
  JOIN pg_extension AS e ON e.oid = d.refobjid AND extname = 'fast_uuid'
 WHERE NOT 'internal'::regtype = ANY (proargtypes) ORDER BY 1});
cmp_ok(scalar @functions, '>', 10, 'functions are found');
foreach my $function (@functions)
{
	my ($signature, $returns, $volatility, $parallel, $strict, $public) = split /\|/, $function;
	$signature =~ s/, OUT .*?\)$/)/;
	$signature =~ s/timestamp with time zone/timestamptz/;
	$signature =~ s/::(text|interval)//;
	$signature =~ s/00:00:01/1 s/;
	$signature =~ s/"//g;
	$returns =~ s/timestamp with time zone/timestamptz/;
	is(delete $documented{$signature}, $returns, "$signature is in the reference, with what it returns");
	my %called = (i => 'IMMUTABLE', s => 'STABLE', v => 'VOLATILE');
	is_deeply($properties{ $signature =~ s/\(.*//r } // $properties{'the others'},
		[ "`$called{$volatility}`" . ($strict eq 't' ? ', `STRICT`' : ''), $parallel eq 'r' ? '`RESTRICTED`' : '`SAFE`',
			$public eq 't' ? 'everybody' : 'superusers by default' ],
		"$signature: its properties");

	# Its example runs, and has that result if it is always the same.
	my ($call, $result) = @{ delete $example{$signature} // [ 'none' ] };
	next if $returns eq 'trigger';
	my ($code, $out, $err) = $node->psql('postgres', 'SET timezone = UTC; ' . ($call =~ /^SELECT/ ? $call : "SELECT $call"));
	is($code, 0, "$signature: its example") or diag($err);
	is($out, $result, "$signature: its result") if $volatility eq 'i';
}
is_deeply([ sort keys %documented ], [], 'and no function is there that does not exist');

# A column is in the entry of its function.
foreach my $row (split /\n/, $node->safe_psql('postgres', q{
SELECT proname, name FROM pg_proc, unnest(proargnames, proargmodes) AS argument (name, mode)
 WHERE pronamespace = 'public'::regnamespace AND mode = 'o'}))
{
	my ($function, $column) = split /\|/, $row;
	like($columns_of{$function}, qr/`$column`/, "$function(): column $column");
}

my %words = (all => $node->safe_psql('postgres', q{SELECT string_agg(name, ', ') FROM fast_uuid_sources()}), empty => '', '`4kB`' => 4096);
my %settings = map { $_->[0] =~ /^`fast_uuid\.(\w+)`$/ ? ($1 => [ @$_[ 2, 1 ] ]) : () } table('setting | default | changed by | meaning');
foreach my $row (split /\n/, $node->safe_psql('postgres', q{
SELECT substr(name, 11), context, boot_val FROM pg_settings WHERE name LIKE 'fast\_uuid.%'}))
{
	my ($name, $context, $default) = split /\|/, $row;
	my ($who, $documented) = @{ delete $settings{$name} // [ '', '' ] };
	is($who, $context eq 'user' ? 'any user' : 'superusers', "fast_uuid.$name: who may set it");
	if ($name eq 'source')
	{
		my $without = $text =~ /Without OpenSSL the default is `(\w+)`, or `(\w+)`/ ? "$1|$2" : '';
		like($default, qr/\A(?:openssl|$without)\z/, "fast_uuid.$name: its default");
		is($documented, '`openssl`', "fast_uuid.$name: with OpenSSL");
		next;
	}
	is($words{$documented} // $documented =~ s/`//gr, $default, "fast_uuid.$name: its default");
}
is_deeply([ keys %settings ], [], 'and no setting is there that does not exist');

$node->stop;
done_testing();
