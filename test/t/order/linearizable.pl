# The feed's order across eight sessions while the clock jumps back and forth: of
# any two calls, if the first has returned before the second began, the first
# value is smaller, or the UUID that the first has observed; ids and positions, of
# statements, triggers and cursors.  With keys the same check finds violations.
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

my $calls = 20_000;         # of each session
my $total = 7 * $calls;     # of the sessions that generate

my $node = PostgreSQL::Test::Cluster->new('linearizable');
$node->init;
$node->append_conf('postgresql.conf', "shared_preload_libraries = 'fast_uuid'\nwork_mem = '256MB'\njit = off");
start_with_fake_clock($node);
$node->safe_psql('postgres', 'CREATE EXTENSION fast_uuid');

$node->safe_psql(
	'postgres', q{
CREATE FUNCTION by_cursor(calls int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	c CURSOR FOR SELECT uuidv7_feed_id() FROM generate_series(1, calls);
	began bigint;
	id uuid;
BEGIN
	OPEN c;
	FOR i IN 1..calls LOOP
		began := nextval('witness');
		FETCH c INTO id;
		INSERT INTO made VALUES (began, uuidv7_fast_ns(id), nextval('witness'));
	END LOOP;
END $$;
-- Of times that are ahead of the clock, which may have stepped backwards further than the limit.
CREATE FUNCTION observe(calls int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	began bigint;
	ns bigint;
BEGIN
	FOR i IN 1..calls LOOP
		ns := uuidv7_fast_ns(uuidv7_fast_at(clock_timestamp() + random() * interval '20 ms'));
		began := nextval('witness');
		BEGIN
			PERFORM uuidv7_feed_position_observe(ns);
			INSERT INTO made VALUES (began, ns, nextval('witness'), true);
		EXCEPTION WHEN invalid_parameter_value THEN
		END;
	END LOOP;
END $$});
my $rows = "nextval('witness') FROM generate_series(1, $calls)";
my @ways = (
	("INSERT INTO made SELECT nextval('witness'), uuidv7_fast_ns(uuidv7_feed_id()), $rows") x 3,
	("INSERT INTO made SELECT nextval('witness'), uuidv7_feed_position(), $rows") x 2,
	("SELECT by_cursor($calls)") x 2,
	'SELECT observe(10000)');

# Calls of all sessions at once, under a clock that is stepped backwards and returned
# until they have ended; the number of pairs out of order.
sub count_violations
{
	my ($name, @ways) = @_;
	$node->safe_psql('postgres',
		'DROP TABLE IF EXISTS made; CREATE UNLOGGED TABLE made (began bigint, ns bigint, returned bigint, observed bool DEFAULT false);'
		  . 'DROP SEQUENCE IF EXISTS witness; CREATE SEQUENCE witness');

	my @calls = map {
		IPC::Run::start(
			[ 'psql', '-XqAt', '-v', 'ON_ERROR_STOP=1', '-d', $node->connstr('postgres'), '-c', $_ ],
			'<', '/dev/null', '>', '/dev/null')
	} @ways;

	my $jumps = 0;
	while (grep { IPC::Run::pumpable($_) && do { IPC::Run::reap_nb($_); IPC::Run::pumpable($_) } } @calls)
	{
		set_clock_offset($node, ('+0', '-1', '-0.01', '-60', '-59.9')[ $jumps++ % 5 ]);
		usleep(20_000);
	}
	set_clock_offset($node, '+0');
	is(scalar(grep { !IPC::Run::finish($_) } @calls), 0,
		"$name: all sessions made their values, the clock jumped $jumps times");
	# In the order of the witness: the largest value that has been returned
	# must be smaller than what each call returns that begins later.
	return $node->safe_psql(
		'postgres', q{
SET enable_hashagg = off;
SELECT count(*) FROM (
  SELECT began, ns, max(CASE WHEN began IS NULL THEN ns END) OVER (ORDER BY at ROWS UNBOUNDED PRECEDING) AS largest_returned
    FROM (SELECT began AS at, began, ns FROM made WHERE NOT observed
          UNION ALL SELECT returned, NULL, ns FROM made) AS events) AS checked
 WHERE began IS NOT NULL AND ns <= largest_returned});
}

my @keys = map { s/uuidv7_feed_position\(\)/uuidv7_fast_ns(uuidv7_fast())/r =~ s/feed_id/fast/r } @ways[ 0 .. 4 ];
cmp_ok(count_violations('keys', @keys), '>', 0, 'keys: the check finds calls that began after another has returned, and got a smaller value');
is(count_violations('feed', @ways), 0, 'feed: it finds none');
is($node->safe_psql('postgres', 'SELECT count(*), count(DISTINCT ns) FROM made WHERE NOT observed'),
	"$total|$total", 'feed: every value is different');
is($node->safe_psql('postgres', 'SELECT count(*) > 100 FROM made WHERE observed'), 't', 'feed: others are observed');
$node->stop;
done_testing();
