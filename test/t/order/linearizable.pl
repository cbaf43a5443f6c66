# Instance order across eight sessions while the clock jumps back and forth: of
# any two calls, if the first has returned before the second began, the first
# value is smaller, or the UUID that the first has observed; single values, rows of
# sets, and cursors over sets.  Under session order the same check finds violations.
# Between two resets of the instance, in the middle of the traffic, the order holds as well.
#
# A sequence, which has no part in the extension, is the witness: each call
# stands between two numbers drawn from it, so that a call whose second number
# is below another's first has returned before the other began.

use strict;
use warnings;

use IPC::Run;
use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use lib 'test/perl';
use FakeClock;

require_fake_clock();

my $sessions = 8;              # as many as @ways
my $calls    = 40_000;     # of each session
my $total    = ($sessions - 1) * $calls;

my $node = PostgreSQL::Test::Cluster->new('linearizable');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\nwork_mem = '256MB'\njit = off");
start_with_fake_clock($node);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

$node->safe_psql(
	'postgres', q{
CREATE FUNCTION by_cursor(calls int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT uuidv7_fast_set(calls);
	began bigint;
	id uuid;
BEGIN
	OPEN c;
	FOR i IN 1..calls LOOP
		began := nextval('witness');
		FETCH c INTO id;
		INSERT INTO made VALUES (began, id, nextval('witness'));
	END LOOP;
END $$;
-- Of UUIDs that are ahead of the clock, which may have stepped backwards further than the limit.
CREATE FUNCTION observe(calls int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	began bigint;
	id uuid;
BEGIN
	FOR i IN 1..calls LOOP
		id := uuidv7_fast_at(clock_timestamp() + random() * interval '20 ms');
		began := nextval('witness');
		BEGIN
			PERFORM fast_uuid_observe(id);
			INSERT INTO made VALUES (began, id, nextval('witness'), true);
		EXCEPTION WHEN invalid_parameter_value THEN
		END;
	END LOOP;
END $$});
my @ways = (
	("INSERT INTO made SELECT nextval('witness'), uuidv7_fast(), nextval('witness') FROM generate_series(1, $calls)") x 3,
	("INSERT INTO made SELECT nextval('witness'), uuidv7_fast_set($calls), nextval('witness')") x 2,
	("SELECT by_cursor($calls)") x 2,
	'SELECT observe(20000)');

# Calls of all sessions at once, under a clock that is stepped backwards and returned
# until they have ended, with resets on the first steps and every third if wanted; the number of
# pairs out of order.
sub count_violations
{
	my ($scope, $with_resets) = @_;
	my $name = $scope . ($with_resets ? ' with resets' : '');
	$node->safe_psql('postgres',
		'DROP TABLE IF EXISTS made, resets; CREATE UNLOGGED TABLE made (began bigint, id uuid, returned bigint, observed bool DEFAULT false);'
		  . 'CREATE TABLE resets (began bigint, ended bigint);'
		  . 'DROP SEQUENCE IF EXISTS witness; CREATE SEQUENCE witness');

	my $dba = $node->background_psql('postgres');
	$dba->query_safe("SET fast_uuid.ordering = '$scope'; SELECT uuidv7_fast()");
	my @calls = map {
		IPC::Run::start(
			[
				'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'),
				'-c', "SET fast_uuid.ordering = '$scope'", '-c', $_
			],
			'<', '/dev/null', '>', '/dev/null')
	} @ways;

	my ($jumps, $resets) = (0, 0);
	while (grep { IPC::Run::pumpable($_) && do { IPC::Run::reap_nb($_); IPC::Run::pumpable($_) } } @calls)
	{
		set_clock_offset($node, ('+0', '-1', '-0.01', '-60', '-59.9')[ $jumps++ % 5 ]);
		if ($with_resets && ($resets < 10 || $jumps % 3 == 0))
		{
			$dba->query_safe("INSERT INTO resets VALUES (nextval('witness'))");
			$dba->query_safe('SELECT fast_uuid_reset_ordering()');
			$dba->query_safe("UPDATE resets SET ended = nextval('witness') WHERE ended IS NULL");
			$resets++;
		}
		usleep(20_000);
	}
	set_clock_offset($node, '+0');
	$dba->quit;
	is(scalar(grep { !IPC::Run::finish($_) } @calls), 0,
		"$name: $sessions sessions made their values, the clock jumped $jumps times");
	is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT id) FROM made WHERE NOT observed'),
		"$total|$total", "$name: every value is different");
	is($node->safe_psql('postgres', 'SELECT count(*) > 100 FROM made WHERE observed'), 't', "$name: others are observed");
	cmp_ok($resets, '>', 5, "$name: the instance was reset $resets times meanwhile") if $with_resets;

	# In the order of the witness: the largest value that has been returned
	# must be smaller than each that is made by a call which begins later.  Only
	# between resets: a call at the time of one may be on either side.
	return $node->safe_psql(
		'postgres', q{
SET enable_hashagg = off;
WITH edges AS MATERIALIZED (
  SELECT coalesce(array_agg(began ORDER BY began), '{0}') AS began,
         coalesce(array_agg(ended ORDER BY ended), '{0}') AS ended FROM resets),
counted AS (
  SELECT made.*, width_bucket(made.began, edges.ended) AS epoch FROM made, edges
   WHERE width_bucket(made.began, edges.ended) = width_bucket(made.returned, edges.began))
SELECT count(*) FROM (
  SELECT began, id, max(CASE WHEN began IS NULL THEN id::text END COLLATE "C")
                      OVER (PARTITION BY epoch ORDER BY at ROWS UNBOUNDED PRECEDING) AS largest_returned
    FROM (SELECT epoch, began AS at, began, id FROM counted WHERE NOT observed
          UNION ALL SELECT epoch, returned, NULL, id FROM counted) AS events) AS checked
 WHERE began IS NOT NULL AND id::text COLLATE "C" <= largest_returned});
}

is(count_violations('instance'), 0, 'instance: no call that began after another has returned got a smaller value');
is(count_violations('instance', 1), 0, 'instance with resets: the same between any two of them');
cmp_ok(count_violations('session'), '>', 0, 'session: the same check finds such calls');

$node->stop;
done_testing();
