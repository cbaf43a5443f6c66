# A physical standby that is promoted while ids are being made on the primary,
# whose clock is an hour ahead: the standby makes ids before and after, in the
# promised order although its own clock is then stepped backwards by a minute, and no id
# is made twice, whichever server made it.  Between the two servers the order is
# as good as their clocks: every id of the new primary is smaller than those it
# got from the old one, and nothing fails for it.  Under both orders.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use FakeClock;

require_fake_clock();

my @scopes = ('session', 'instance');

my $old = PostgreSQL::Test::Cluster->new('old');
$old->init(allows_streaming => 1);
start_with_fake_clock($old);
if ($old->safe_psql('postgres', 'SHOW server_version_num') < 170000)
{
	$old->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'");
	$old->stop;
	start_with_fake_clock($old);
}
$old->safe_psql(
	'postgres', q{
CREATE EXTENSION fast_uuid;
CREATE TABLE made (
  id      uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  server  text NOT NULL DEFAULT current_setting('cluster_name'),
  scope   text NOT NULL DEFAULT current_setting('fast_uuid.ordering'),
  session text NOT NULL,
  counter int  NOT NULL
);
CREATE TABLE enough (yes bool);
});
$old->backup('copy');
my $new = PostgreSQL::Test::Cluster->new('new');
$new->init_from_backup($old, 'copy', has_streaming => 1);
start_with_fake_clock($new);
set_clock_offset($old, '+3600');

# A session of the old primary that inserts until it is told to stop.
my @writers = map {
	my $scope = $_;
	map {
		IPC::Run::start(
			[
				'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $old->connstr('postgres'),
				'-c', "SET fast_uuid.ordering = '$scope'",
				'-c', qq{
DO \$\$
BEGIN
  FOR i IN 1..1000000 LOOP
    INSERT INTO made (session, counter) VALUES ('old $scope $_', i);
    COMMIT;
    EXIT WHEN EXISTS (SELECT FROM enough);
  END LOOP;
END \$\$}
			],
			'<', '/dev/null', '>&', \my $output,
			IPC::Run::timeout($PostgreSQL::Test::Utils::timeout_default))
	} 1 .. 2
} @scopes;

sub count_of
{
	my ($node, $server) = @_;
	return $node->safe_psql('postgres', "SELECT count(*) FROM made WHERE server = '$server'");
}

sub wait_for_count
{
	my ($node, $server, $count) = @_;
	$node->poll_query_until('postgres', "SELECT count(*) >= $count FROM made WHERE server = '$server'")
	  or BAIL_OUT("no $count rows of $server");
	return;
}

wait_for_count($new, 'old', 1000);

foreach my $scope (@scopes)
{
	my ($code, $out, $err) = $new->psql('postgres',
		"SET fast_uuid.ordering = '$scope'; SELECT pg_is_in_recovery(), uuidv7_fast() IS NOT NULL, cardinality(uuidv7_fast_array(3))");
	is("$out$err", 't|t|3', "$scope order: a hot standby makes values");
}

# On the standby, in sessions that outlive the promotion.
my (%living, %latest);
foreach my $scope (@scopes)
{
	foreach my $n (1, 2)
	{
		$living{"$scope $n"} = $new->background_psql('postgres');
		$living{"$scope $n"}->query_safe("SET fast_uuid.ordering = '$scope'");
	}
}

# A value alone, in bulk and from each session in turn, in the order promised.
sub make_in_turn
{
	my ($scope, $when) = @_;
	my $violations = 0;
	foreach my $turn (1 .. 40)
	{
		my $name = "$scope " . ($turn % 2 + 1);
		my $call = ('uuidv7_fast()', '(uuidv7_fast_array(1000))[1000]', "uuidv7_fast('getrandom')")[ $turn / 2 % 3 ];
		my $id   = $living{$name}->query_safe("SELECT $call");

		# Under instance order the latest value of any session counts.
		my $last = \$latest{ $scope eq 'instance' ? $scope : $name };
		$violations++ if defined $$last && $id le $$last;
		$$last = $id;
	}
	is($violations, 0, "$scope order, $when: each value is greater than the one before");
	return;
}
make_in_turn($_, 'on the standby') foreach @scopes;

# The old primary goes on for a while, as one that nobody has told.
set_clock_offset($new, '-60');
$new->promote;
make_in_turn($_, 'after the promotion, in the same sessions') foreach @scopes;
$_->quit foreach values %living;
wait_for_count($old, 'old', count_of($old, 'old') + 1000);

my $insert = sub {
	my ($scope, $n) = @_;
	return $new->safe_psql(
		'postgres', qq{
SET fast_uuid.ordering = '$scope';
SET fast_uuid.max_clock_lead = '10 min';
INSERT INTO made (session, counter) SELECT 'new $scope $n', i FROM generate_series(1, 5000) AS i;
SELECT largest_clock_lead < '10 min', (SELECT bool_and(id > '$latest{instance}') FROM made WHERE session LIKE 'new instance%')
  FROM fast_uuid_stats() WHERE name = '$scope'});
};
foreach my $scope (@scopes)
{
	is($insert->($scope, $_), $scope eq 'instance' ? 't|t' : 't|',
		"$scope order: new session $_ of the new primary inserts, by that server's clock and order")
	  foreach 1, 2;
}
wait_for_count($old, 'old', count_of($old, 'old') + 1000);
$old->safe_psql('postgres', 'INSERT INTO enough VALUES (true)');
is(scalar(grep { !IPC::Run::finish($_) } @writers), 0, 'the old primary made ids all the time');

my $got = count_of($new, 'old');
cmp_ok($got, '<', count_of($old, 'old'), 'the old primary made some after the promotion');
is( $new->safe_psql(
		'postgres', q{
SELECT server, count(*) = count(DISTINCT id), bool_and(id > previous), count(DISTINCT scope)
  FROM (SELECT *, lag(id) OVER (PARTITION BY session ORDER BY counter) AS previous FROM made) AS pairs
 GROUP BY server ORDER BY server}),
	"new|t|t|2\nold|t|t|2", 'every session of either server kept its order, under both orders');
is( $new->safe_psql(
		'postgres', q{
SELECT count(DISTINCT session), sum(missing) FROM (
  SELECT session, max(counter) - count(*) AS missing FROM made WHERE server = 'old' GROUP BY session) AS gaps}),
	'4|0', 'no row of the old primary is missing in between');

# The order between the servers is that of their clocks.
set_clock_offset($new, '+0');
is( $new->safe_psql(
		'postgres', q{
SELECT (SELECT id FROM made WHERE server = 'new' ORDER BY id DESC LIMIT 1)
     < (SELECT id FROM made WHERE server = 'old' ORDER BY id LIMIT 1)}),
	't', 'the ids of the new primary are smaller than all that it got from the old one');
is( $new->safe_psql(
		'postgres', q{
SELECT server, bool_and(abs(extract(epoch FROM uuidv7_fast_timestamp(id) - now())
                            - CASE server WHEN 'old' THEN 3600 ELSE 0 END) < 300)
  FROM made GROUP BY server ORDER BY server}),
	"new|t\nold|t", 'and each has the time of its server');
is($new->safe_psql('postgres', 'SELECT count(*) FROM made WHERE id > uuidv7_fast_max(now())'),
	$got, 'ids of the wrong time are found as documented');

# The rows that only the old primary has can be brought over.
my $dump = $old->basedir . '/made';
$old->command_ok([ 'psql', '-Xq', '-d', $old->connstr('postgres'), '-c', "\\copy made TO '$dump'" ], 'the old table is read');
$new->command_ok(
	[
		'psql', '-Xq', '-v', 'ON_ERROR_STOP=1', '-d', $new->connstr('postgres'),
		'-c', 'CREATE TABLE old_made (LIKE made)',
		'-c', "\\copy old_made FROM '$dump'"
	],
	'and written beside the new one');
is( $new->safe_psql(
		'postgres', q{
SELECT count(*) FROM (SELECT * FROM made WHERE server = 'old' EXCEPT SELECT * FROM old_made) AS invented;
SELECT count(*) FROM made AS m JOIN old_made AS o USING (id) WHERE m::text <> o::text;
INSERT INTO made SELECT * FROM old_made ON CONFLICT (id) DO NOTHING;
SELECT count(*) = (SELECT count(*) FROM old_made) FROM made WHERE server = 'old';
SELECT count(*) FROM made WHERE server = 'new'}),
	"0\n0\nt\n20000", 'no id of the new primary was made by the old one too, and every row comes together');
unlike(slurp_file($new->logfile), qr/ERROR: |PANIC|TRAP/, 'the log of the new primary has no error');

$old->stop;
$new->stop;
done_testing();
