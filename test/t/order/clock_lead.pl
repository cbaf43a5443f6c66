# A clock that goes back a second, an hour, and forward ten years and back, in
# both orders: monotonic where it is promised, the limit on the
# lead where it is asked for, and the way out.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;

require_fake_clock();

my $ten_years = 10 * 365 * 86400;
my $node      = PostgreSQL::Test::Cluster->new('lead');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");

# A session takes its order along when it changes the scope behind its clock.
start_with_fake_clock($node);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');
{
	my $session = $node->background_psql('postgres');
	set_clock_offset($node, '+3600');
	my $ahead = $session->query_safe('SELECT uuidv7_fast()');
	set_clock_offset($node, '+0');
	my $first = $session->query_safe("SET fast_uuid.ordering = 'instance'; SELECT uuidv7_fast()");
	cmp_ok($first, 'gt', $ahead, 'a value under instance order exceeds the session\'s before');
	cmp_ok($node->safe_psql('postgres', "SET fast_uuid.ordering = 'instance'; SELECT uuidv7_fast()"),
		'gt', $first, 'and so do those of other sessions from then on');
	$session->quit;
}
$node->stop;

foreach my $scope ('session', 'instance')
{
	start_with_fake_clock($node);
	$node->safe_psql('postgres', 'CREATE EXTENSION IF NOT EXISTS fast_uuid; DROP TABLE IF EXISTS kept;'
		  . 'CREATE TABLE kept (n bigserial, session text, id uuid)');
	# Rows of a set, one by one, with single values between them.
	$node->safe_psql(
		'postgres', q{
CREATE OR REPLACE FUNCTION by_cursor(session text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT uuidv7_fast_set(500);
	id uuid;
BEGIN
	OPEN c;
	FOR i IN 1..500 LOOP
		FETCH c INTO id;
		INSERT INTO kept (session, id) VALUES (session, id), (session, uuidv7_fast());
	END LOOP;
END $$});
	my $set    = "SET fast_uuid.ordering = '$scope'";
	my $living = $node->background_psql('postgres', on_error_stop => 0);
	$living->query_safe($set);

	my $make = sub {
		my ($session) = @_;
		my $sql = "INSERT INTO kept (session, id) SELECT '$session', uuidv7_fast() FROM generate_series(1, 1000);"
		  . "INSERT INTO kept (session, id) SELECT '$session', unnest(uuidv7_fast_array(1000));"
		  . "INSERT INTO kept (session, id) SELECT '$session', uuidv7_fast_set(1000);"
		  . "SELECT by_cursor('$session')";
		return $session eq 'living' ? $living->query_safe($sql) : $node->safe_psql('postgres', "$set; $sql");
	};
	# Seconds by which the latest UUID, and the largest lead ever, are ahead of the clock.
	my $leads = sub {
		return $living->query_safe(
			"SELECT round(extract(epoch FROM clock_lead)), round(extract(epoch FROM largest_clock_lead))"
			  . " FROM fast_uuid_stats() WHERE name = '$scope'");
	};

	my $new = 0;
	foreach my $step ([ '+0', '0|0' ], [ '-1', '1|1' ], [ '-3600', '3600|3600' ], [ '+0', '0|3600' ],
		[ "+$ten_years", '0|3600' ], [ '+0', "$ten_years|$ten_years" ])
	{
		my ($offset, $expected) = @$step;
		set_clock_offset($node, $offset);
		$make->('living');
		# A second of waiting more or less may round either way.
		my @seen = split /\|/, $leads->();
		my @want = split /\|/, $expected;
		cmp_ok(abs($seen[$_] - $want[$_]), '<=', 30, "$scope, clock at $offset: lead of $want[$_] s") foreach 0, 1;
		$make->('new ' . $new++);
		$make->('living');
	}

	is( $node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id), bool_and(id > previous) FROM'
			  . ' (SELECT id, lag(id) OVER (PARTITION BY session ORDER BY n) AS previous FROM kept) AS pairs'),
		'72000|72000|t', "$scope: every session kept its order, no value twice");
	is( $node->safe_psql('postgres', 'SELECT bool_and(id > previous) FROM'
			  . ' (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM kept) AS pairs'),
		$scope eq 'instance' ? 't' : 'f', "$scope: order across sessions as promised");

	# The existing session is ten years ahead now, and each call finds that it is more.
	$living->query_safe("SET fast_uuid.max_clock_lead = '1 h'");
	my $back = 0;
	foreach my $call ('uuidv7_fast()', 'uuidv7_fast_array(10)', 'uuidv7_fast_set(10)', "uuidv7_fast(interval '1 s')")
	{
		$back += 100 * 86400;
		set_clock_offset($node, -$back);
		$living->{stderr} = '';
		is($living->query("SELECT $call"), '', "$scope: $call makes nothing beyond the limit");
		like($living->{stderr}, qr/ERROR:  embedded time would be ahead of the clock by more than "fast_uuid.max_clock_lead"/,
			"$scope: $call, the error");
		like($living->{stderr}, qr/DETAIL:  The clock is 3\d{11} ms behind the latest UUID; the limit is 3600000 ms/,
			"$scope: $call, the lead in the detail");
		like($living->{stderr}, qr/HINT: .*fast_uuid_reset_ordering\(\)/, "$scope: $call, the way out in the hint");
		$living->{stderr} = '';
		set_clock_offset($node, '+0');
		my ($now, $largest) = split /\|/, $leads->();
		cmp_ok(abs($now + $back - $largest), '<=', 30, "$scope: $call, which failed, has noted the lead");
	}
	is($living->query_safe("SELECT uuidv7_fast_at(now()) IS NOT NULL"), 't', "$scope: a given time has no lead");
	is( $living->query_safe("SET fast_uuid.max_clock_lead = -1; SELECT uuidv7_fast() IS NOT NULL"),
		't', "$scope: without a limit values go on");

	# The way out.
	$living->query_safe("SET fast_uuid.max_clock_lead = 0; SELECT fast_uuid_reset_ordering()");
	is( $living->query_safe('SELECT abs(extract(epoch FROM uuidv7_fast_timestamp(uuidv7_fast()) - clock_timestamp())) < 60'),
		't', "$scope: after the reset values have the time of the clock");
	is($leads->(), '0|0', "$scope: and no lead is left of which an alert could tell");
	is( $node->safe_psql('postgres', "$set; SET fast_uuid.max_clock_lead = 0; SELECT uuidv7_fast() IS NOT NULL"),
		't', "$scope: new sessions do so too");
	$living->quit;
	$node->stop;
}

done_testing();
