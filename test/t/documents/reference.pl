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
my %documented;
foreach my $section ($text =~ /^## Functions [^\n]*\n\n(.*?)(?=^## )/msg)
{
	my ($general, @entries) = split /^### /m, $section;
	foreach my $entry (@entries)
	{
		my ($signature, $returns, $about) = $entry =~ /\A`(\w+\(.*?\)) → (.*?)`\n(.*)/s or die "no signature: $entry";
		$documented{$signature} = { returns => $returns, text => "$general$about", about => $about };
	}
}
my %columns_of = map { /^(\w+)\(/ ? ($1 => $documented{$_}{about}) : () } keys %documented;

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
	$returns =~ s/timestamp with time zone/timestamptz/;
	my $row = delete $documented{$signature};
	ok($row, "$signature is in the reference") or next;
	is($row->{returns}, $returns, "$signature: what it returns");
	like($row->{text}, { i => qr/`IMMUTABLE`/, s => qr/`STABLE`/, v => qr/`VOLATILE`/ }->{$volatility}, "$signature: volatility");
	is($row->{text} =~ /PARALLEL\s+RESTRICTED/ ? 'r' : 's', $parallel, "$signature: parallel safety");
	is($row->{text} =~ /`STRICT`/ ? 't' : 'f', $strict, "$signature: NULL");
	is($row->{text} =~ /Superusers\s+by\s+default/ ? 'f' : 't', $public, "$signature: who may call it");
}
is_deeply([ keys %documented ], [], 'and no function is there that does not exist');

# A column is in the entry of its function.
foreach my $row (split /\n/, $node->safe_psql('postgres', q{
SELECT proname, name FROM pg_proc, unnest(proargnames, proargmodes) AS argument (name, mode)
 WHERE pronamespace = 'public'::regnamespace AND mode = 'o'}))
{
	my ($function, $column) = split /\|/, $row;
	like($columns_of{$function}, qr/`$column`/, "$function(): column $column");
}

my %words = (all => $node->safe_psql('postgres', q{SELECT string_agg(name, ', ') FROM fast_uuid_sources()}), empty => '', '`4kB`' => 4096);
my %settings = map { /^`fast_uuid\.(\w+)`\n\nSet\s+by\s+(\w+)\.\s+Default:\s+(.*?)\.\s/ ? ($1 => [ $2, $3 ]) : () } split /^### /m, $text;
foreach my $row (split /\n/, $node->safe_psql('postgres', q{
SELECT substr(name, 11), context, boot_val FROM pg_settings WHERE name LIKE 'fast\_uuid.%'}))
{
	my ($name, $context, $default) = split /\|/, $row;
	my ($who, $documented) = @{ delete $settings{$name} // [ '', '' ] };
	is($who, $context eq 'user' ? 'everybody' : 'superusers', "fast_uuid.$name: who may set it");
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
