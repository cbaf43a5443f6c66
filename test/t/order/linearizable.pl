# The feed's order across eight sessions at work at once, while the clock jumps back and forth:
# if a call has returned before another one began, its id or position, or what it has observed,
# is smaller.  No id comes twice.
#
# A sequence, which has no part in the extension, is the witness: each call stands between two
# numbers drawn from it, so that a call whose second number is below another's first has
# returned before the other began.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(usleep);

use lib 'test/perl';
use KnownClock;
use RawSession;

plan skip_all => 'needs Linux' unless $^O eq 'linux';

my $calls = 20_000;    # of each session
my $node = PostgreSQL::Test::Cluster->new('linearizable');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'fast_uuid'
work_mem = '256MB'
jit = off
});
my $clock = KnownClock->new($node);
my $now = 1_800_000_000_000_000_000;
$clock->put($now);
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE SEQUENCE witness;
CREATE UNLOGGED TABLE made (
	began bigint, ns bigint, returned bigint, observed bool DEFAULT false);
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
-- times up to 20 ms ahead of what the clock has shown
CREATE FUNCTION observe(calls int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	began bigint;
	ns bigint;
BEGIN
	SET fast_uuid.max_clock_lead = '1 d';
	FOR i IN 1..calls LOOP
		ns := uuidv7_fast_ns(uuidv7_fast()) + (random() * 20000000)::bigint;
		began := nextval('witness');
		PERFORM uuidv7_feed_position_observe(ns);
		INSERT INTO made VALUES (began, ns, nextval('witness'), true);
	END LOOP;
END $$});

# The pairs of calls that are out of order.  In the order of the witness, the largest value that
# was returned must be smaller than what each call returns that begins later.
sub count_violations
{
	return $node->safe_psql('postgres', q{
SET enable_hashagg = off;
SELECT count(*) FROM (
  SELECT began, ns, max(CASE WHEN began IS NULL THEN ns END)
                      OVER (ORDER BY at ROWS UNBOUNDED PRECEDING) AS largest_returned
    FROM (SELECT began AS at, began, ns FROM made WHERE NOT observed
          UNION ALL SELECT returned, NULL, ns FROM made) AS events) AS checked
 WHERE began IS NOT NULL AND ns <= largest_returned});
}

# What the check finds: a call that began after another had returned and got a smaller value,
# one that got what was observed before, and none where two calls overlap.
$node->safe_psql('postgres', q{
INSERT INTO made VALUES (1, 20, 2, false), (3, 10, 4, false), (5, 30, 6, true),
	(7, 30, 8, false), (9, 50, 12, false), (10, 40, 11, false)});
is(count_violations(), '2', 'the check finds two violations, where there are two');
$node->safe_psql('postgres', 'TRUNCATE made');

my $id = "INSERT INTO made SELECT nextval('witness'), uuidv7_fast_ns(uuidv7_feed_id()),"
  . " nextval('witness') FROM generate_series(1, $calls)";
my $position = $id =~ s/uuidv7_fast_ns\(.*\)\),/uuidv7_feed_position(),/r;
my $cursor = "SELECT by_cursor($calls)";
my @sessions;
foreach my $work (($id) x 3, ($position, $cursor) x 2, "SELECT observe($calls)")
{
	my $session = RawSession->start($node);
	$session->send($work);
	push @sessions, $session;
}

# The clock goes on with each reading, and jumps until all have ended.
my @jumps = (0, -1_000_000_000, -10_000_000, 30_000_000_000, -20_000_000_000);
for (my $n = 0; grep { !$_->has_answer } @sessions; $n++)
{
	$now += $jumps[ $n % @jumps ];
	$clock->put($now, 100);
	usleep(20_000);
}
foreach my $session (@sessions)
{
	$session->receive;
	is($session->{error}, '', 'a session has made its values');
	$session->quit;
}
is(count_violations(), '0', 'no call got a smaller value than one that had returned before');
is( $node->safe_psql('postgres', 'SELECT count(DISTINCT ns) FROM made WHERE NOT observed'),
	7 * $calls, 'every value is different');
$node->stop;
done_testing();
