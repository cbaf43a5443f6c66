# doc/choosing.md on postgres_fdw: the statement's server evaluates the default and calls
# what generates; what reads times is sent to the other; a range asks only its partitions.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use Test::More;

my ($near, $far) = map { PostgreSQL::Test::Cluster->new($_) } 'near', 'far';
foreach my $node ($near, $far)
{
	$node->init;
	$node->start;
}
$far->safe_psql('postgres', 'CREATE TABLE present (id uuid NOT NULL, at timestamptz)');
my ($code, undef, $error) = $near->psql('postgres', 'CREATE EXTENSION postgres_fdw');
plan skip_all => 'postgres_fdw is not installed' if $code && $error =~ /not available/;

my ($host, $port, $bound) = ($far->host, $far->port, "uuidv7_fast_min('2025-01-01')");
$_->safe_psql('postgres', 'CREATE EXTENSION fast_uuid') foreach $near, $far;
$near->safe_psql('postgres', qq{
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
	OPTIONS (host '$host', port '$port', dbname 'postgres', extensions 'fast_uuid');
CREATE USER MAPPING FOR CURRENT_USER SERVER far;
CREATE TABLE event (id uuid DEFAULT uuidv7_fast(), at timestamptz) PARTITION BY RANGE (id);
CREATE TABLE past PARTITION OF event FOR VALUES FROM (MINVALUE) TO ($bound);
CREATE FOREIGN TABLE present PARTITION OF event (id DEFAULT uuidv7_fast())
	FOR VALUES FROM ($bound) TO (MAXVALUE) SERVER far;
CREATE FOREIGN TABLE without (id uuid, at timestamptz) SERVER far OPTIONS (table_name 'present')});

$near->safe_psql('postgres', "INSERT INTO $_ DEFAULT VALUES") foreach 'event', 'present';
is($far->safe_psql('postgres', 'SELECT count(DISTINCT id) FROM present'), '2', 'evaluated here');
(undef, undef, $error) = $near->psql('postgres', 'INSERT INTO without DEFAULT VALUES');
like($error, qr/null value in column "id"/, 'without a default: NULL is sent');

sub plan_of { return $near->safe_psql('postgres', "EXPLAIN (VERBOSE) SELECT FROM $_[0]") }

unlike(plan_of("event WHERE id >= $bound"), qr/public\.past/, 'only the present');
unlike(plan_of("event WHERE id < $bound"), qr/Remote SQL/, 'only the past');
like(plan_of('event WHERE id >= uuidv7_fast_min(now())'), qr/Subplans Removed: 1/, 'by now()');
foreach my $condition ('id > uuidv7_fast_min(at)', 'id > uuidv7_fast_max(at)',
	'uuidv7_fast_timestamp(id) > at', 'uuidv7_fast_ns(id) > 1')
{
	like(plan_of("present WHERE $condition"), qr/Remote SQL: .*uuidv7/, "sent: $condition");
}
foreach my $call ('fast()', 'fast_at(at)')
{
	unlike(plan_of("present WHERE id < uuidv7_$call"), qr/Remote.*uuidv7/, "not sent: $call");
}
$_->stop foreach $near, $far;
done_testing();
