# A table partitioned by ranges of its id over two servers, by postgres_fdw:
# rows with keys by default and of given times go where they belong, and only
# the partitions that a range of time needs are asked.  Once the past is on the
# other server, as an archive, and once the present, to which both servers then
# add rows with keys of their own at the same time.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Together;

my $near = PostgreSQL::Test::Cluster->new('near');
my $far  = PostgreSQL::Test::Cluster->new('far');
foreach my $node ($near, $far)
{
	$node->init;
	$node->start;
	$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
}
my ($code, $out, $err) = $near->psql('postgres', 'CREATE EXTENSION postgres_fdw');
if ($code != 0 && $err =~ /extension "postgres_fdw" is not available|could not open extension control file/)
{
	$_->stop foreach $near, $far;
	plan skip_all => 'postgres_fdw, of the server\'s contrib modules, is not installed';
}
is($err, '', 'postgres_fdw is created');

my ($host, $port, $user) = ($far->host, $far->port, $far->safe_psql('postgres', 'SELECT current_user'));
$near->safe_psql(
	'postgres', qq{
CREATE SERVER far FOREIGN DATA WRAPPER postgres_fdw
  OPTIONS (host '$host', port '$port', dbname 'postgres', extensions 'fast_uuid', batch_size '100');
CREATE USER MAPPING FOR CURRENT_USER SERVER far OPTIONS (user '$user');
});

# The bound between the past and the present: midnight, ten days ago.
my $bound = $near->safe_psql('postgres', q{SELECT date_trunc('day', now() - interval '10 days')});
my $start = $near->safe_psql('postgres', "SELECT timestamptz '$bound' - interval '240 hours'");
my %range = (past => "(MINVALUE) TO (uuidv7_fast_min('$bound'))", present => "(uuidv7_fast_min('$bound')) TO (MAXVALUE)");

sub plan_of
{
	my ($sql) = @_;
	return $near->safe_psql('postgres', "EXPLAIN (VERBOSE, COSTS OFF) $sql");
}

foreach my $foreign ('past', 'present')
{
	my $table   = "event_$foreign";
	my %part    = map { $_ => "${table}_$_" } 'past', 'present';
	my $local   = $foreign eq 'past' ? 'present' : 'past';
	my $columns = 'session text NOT NULL, counter int NOT NULL';
	$far->safe_psql('postgres', "CREATE TABLE $part{$foreign} (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), $columns)");
	$near->safe_psql(
		'postgres', qq{
CREATE TABLE $table (id uuid NOT NULL DEFAULT uuidv7_fast(), $columns) PARTITION BY RANGE (id);
CREATE FOREIGN TABLE $part{$foreign} PARTITION OF $table FOR VALUES FROM $range{$foreign} SERVER far;
CREATE TABLE $part{$local} PARTITION OF $table (PRIMARY KEY (id)) FOR VALUES FROM $range{$local};
});

	# By default, row by row, from a set and in batches; and a row for each
	# hour of twenty days around the bound.
	my @work = map {
		[
			$near,
			"INSERT INTO $table (session, counter) SELECT 'near $_', n FROM generate_series(1, 500) AS n",
			"INSERT INTO $table (id, session, counter) SELECT uuidv7_fast_set(500), 'near $_', generate_series(501, 1000)",
			"DO \$\$ BEGIN FOR i IN 1001..1100 LOOP INSERT INTO $table (session, counter) VALUES ('near $_', i); END LOOP; END \$\$"
		]
	} 1 .. 2;
	push @work,
	  [
		$near,
		"INSERT INTO $table SELECT uuidv7_fast_at(timestamptz '$start' + n * interval '1 hour'), 'given', n"
		  . ' FROM generate_series(0, 479) AS n'
	  ];
	my %expected = (past => 240, present => 2 * 1100 + 240);
	if ($foreign eq 'present')
	{
		push @work,
		  map { [ $far, "INSERT INTO $part{present} (session, counter) SELECT 'far $_', generate_series(1, 1000)" ] } 1 .. 2;
		$expected{present} += 2 * 1000;
	}
	is(run_together(@work), '', "$foreign elsewhere: all insert");

	my $total = $expected{past} + $expected{present};
	is( $near->safe_psql('postgres', "SELECT tableoid::regclass, count(*) FROM $table GROUP BY 1 ORDER BY count(*)"),
		"$part{past}|$expected{past}\n$part{present}|$expected{present}",
		"$foreign elsewhere: each row is in the partition of its time");
	is($far->safe_psql('postgres', "SELECT count(*) FROM $part{$foreign}"),
		$expected{$foreign}, "$foreign elsewhere: the other server holds the rows");
	is( $near->safe_psql(
			'postgres', qq{
SELECT count(*), count(DISTINCT id), bool_and(id > previous)
  FROM (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY counter) AS previous FROM $table) AS pairs}),
		"$total|$total|t", "$foreign elsewhere: no row is lost, none is there twice, each session kept its order");
	is( $near->safe_psql(
			'postgres', qq{
SELECT count(*) FROM $table WHERE session = 'given'
   AND uuidv7_fast_timestamp(id) <> timestamptz '$start' + counter * interval '1 hour'}),
		'0', "$foreign elsewhere: given times come back");

	# Constant bounds are applied when the query is planned, others when it
	# starts.
	my $first_days = "id >= uuidv7_fast_min('$start') AND id < uuidv7_fast_min(timestamptz '$start' + interval '48 hours')";
	my $last_days  = "id >= uuidv7_fast_min(now() - interval '9 days')";
	my %where      = (
		past    => "id >= uuidv7_fast_min('$start') AND id < uuidv7_fast_min('$bound')",
		present => "id >= uuidv7_fast_min('$bound')");
	foreach my $asked ('past', 'present')
	{
		my $other = $asked eq 'past' ? 'present' : 'past';
		my $plan  = plan_of("SELECT count(*) FROM $table WHERE $where{$asked}");
		like($plan, qr/$part{$asked}/, "$foreign elsewhere: the $asked is read for itself");
		unlike($plan, qr/$part{$other}/, "$foreign elsewhere: the $other is not read for it");
		like($plan, qr/Remote SQL: .*id >= '[0-9a-f-]{36}'/, "$foreign elsewhere: the far server gets the bound as a constant")
		  if $asked eq $foreign;
		is($near->safe_psql('postgres', "SELECT count(*) FROM $table WHERE $where{$asked}"),
			$expected{$asked}, "$foreign elsewhere: and all rows of the $asked are found");
	}
	foreach my $query ([ $first_days, 'past', 'present' ], [ $last_days, 'present', 'past' ])
	{
		my ($condition, $asked, $other) = @$query;
		my $plan = plan_of("SELECT id FROM $table WHERE $condition");
		like($plan, qr/Subplans Removed: 1/, "$foreign elsewhere: a range in the $asked, known when the query starts");
		unlike($plan, qr/$part{$other}/, "$foreign elsewhere: the $other is not read for it");
	}
	is($near->safe_psql('postgres', "SELECT count(*) FROM $table WHERE $first_days"),
		'48', "$foreign elsewhere: 48 hours of the past have their rows");

	# The functions that make values are called here, not shipped there.
	unlike(plan_of("SELECT uuidv7_fast() FROM $part{$foreign}"),
		qr/Remote SQL: .*uuidv7_fast/, "$foreign elsewhere: values are made by the server that is asked for them");
	unlike(plan_of("UPDATE $part{$foreign} SET id = uuidv7_fast() WHERE counter = 0"),
		qr/Remote SQL: .*uuidv7_fast/, "$foreign elsewhere: in an update too");
	like(plan_of("SELECT FROM $part{$foreign} WHERE uuidv7_fast_timestamp(id) = '$bound'"),
		qr/Remote SQL: .*uuidv7_fast_timestamp/, "$foreign elsewhere: the immutable ones may be shipped");
}

$_->stop foreach $near, $far;
done_testing();
