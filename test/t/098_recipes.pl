# What recipes promise besides that they run: partitions without a gap in any time zone.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Examples;

my $node = PostgreSQL::Test::Cluster->new('recipes');
$node->init;
$node->start;
my $version = int($node->safe_psql('postgres', 'SHOW server_version_num') / 10000);

sub query
{
	my ($database, $sql) = @_;
	return $node->safe_psql($database, "SET client_min_messages = warning;\n$sql");
}

sub new_database
{
	my ($name) = @_;
	$node->safe_psql('postgres', "CREATE DATABASE $name");
	query($name, 'CREATE EXTENSION fast_uuid');
	return;
}

# Those of the page, from November 2026 to December 2027.
my @partitions = grep { !$_->{extension} } examples('doc/partitions.md');
my ($search) = map { $_->{sql} } grep { $_->{sql} =~ /previous_ends/ } @partitions;

sub check_partitions
{
	my ($database, $zone, $name) = @_;
	is(query($database, $search), '', "$name: no gap between partitions");
	is( query($database, qq{
INSERT INTO event SELECT uuidv7_fast_at(t AT TIME ZONE 'UTC')
  FROM generate_series(timestamp '2026-11-02', '2027-12-30', '30 minutes') AS t;
SELECT count(*) = 48 * 423 + 1, count(DISTINCT tableoid), bool_and(tableoid::regclass::text =
       'event_' || to_char(uuidv7_fast_timestamp(id) AT TIME ZONE '$zone', 'YYYY_MM')) FROM event}),
		't|14|t', "$name: a row for every half an hour is in the partition of its month there");
	return;
}

foreach my $zone ('UTC', 'America/New_York', 'Europe/Berlin', 'Asia/Kolkata')
{
	my $database = 'partitions_' . lc($zone =~ s/\W/_/gr);
	new_database($database);
	query('postgres', "ALTER DATABASE $database SET timezone = '$zone'");
	query($database, $_->{sql}) foreach @partitions;
	check_partitions($database, 'UTC', "months of UTC, created under $zone");

	# Months of that zone, created under another.
	next if $zone eq 'UTC';
	new_database("of_$database");
	query("of_$database", 'CREATE TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id)');
	my ($create) = map { $_->{sql} =~ s/'UTC'/'$zone'/gr =~ s/2027-01-01/2026-11-01/r } grep { $_->{sql} =~ /gexec/ } @partitions;
	query("of_$database", "SET timezone = 'Pacific/Auckland';\n$create");
	check_partitions("of_$database", $zone, "months of $zone");
}

# The search does find gaps: those of a calendar on timestamptz, beside partitions of
# UTC and from one half of a year to the next.
my $on_timestamptz = q{
SELECT format('CREATE TABLE IF NOT EXISTS event_%%s PARTITION OF event FOR VALUES FROM (%%L) TO (%%L)',
              to_char(month, 'YYYY_MM'), uuidv7_fast_min(month), uuidv7_fast_min(month + interval '1 month'))
  FROM generate_series(timestamptz '%s 00:00+00', '%s 00:00+00', '1 month') AS month
\gexec
};
foreach my $zone ('America/New_York', 'Europe/Berlin')
{
	my $database = 'gaps_' . lc($zone =~ s/\W/_/gr);
	new_database($database);
	query($database, $partitions[0]{sql});
	$node->psql($database, "SET timezone = '$zone';\n" . sprintf($on_timestamptz, @$_), on_error_stop => 0)
	  foreach [ '2027-01-01', '2027-06-01' ], [ '2027-07-01', '2027-12-01' ];
	isnt(query($database, $search), '', "a calendar that depends on the session, $zone: gaps are found");
}

$node->stop;
done_testing();
