# The feed's order across eight sessions at work at once, while the clock jumps back and forth,
# and over crashes in the middle of that: if a call has returned before another one began, its
# id or position, or what it has observed, is smaller.  No id comes twice.
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

my $second = 1_000_000_000;
my $node = PostgreSQL::Test::Cluster->new('linearizable');
$node->init;
$node->append_conf('postgresql.conf', q{
shared_preload_libraries = 'fast_uuid'
wal_writer_delay = '10 s'
work_mem = '256MB'
jit = off
});
my $clock = KnownClock->new($node);
my $now = 1_800_000_000 * $second;
$clock->put($now);

# Rows are committed by the hundred.  What is observed is up to 20 ms ahead of the clock.
$node->safe_psql('postgres', q{
CREATE EXTENSION fast_uuid;
CREATE SEQUENCE witness;
CREATE TABLE made (began bigint, ns bigint, returned bigint, observed bool);
CREATE PROCEDURE generate(call text, hundreds int) LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1 .. hundreds LOOP
		EXECUTE format('INSERT INTO made SELECT nextval(%1$L), %2$s, nextval(%1$L), false'
					   ' FROM generate_series(1, 100)', 'witness', call);
		COMMIT;
	END LOOP;
END $$;
CREATE PROCEDURE observe(hundreds int) LANGUAGE plpgsql AS $$
DECLARE
	began bigint;
	ns bigint;
BEGIN
	FOR i IN 1 .. 100 * hundreds LOOP
		ns := uuidv7_fast_ns(uuidv7_fast()) + (random() * 20000000)::bigint;
		began := nextval('witness');
		PERFORM uuidv7_feed_position_observe(ns);
		INSERT INTO made VALUES (began, ns, nextval('witness'), true);
		COMMIT;
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

# A call that began after another had returned and got a smaller value, one that got what was
# observed before, and two that overlap.
$node->safe_psql('postgres', q{
INSERT INTO made VALUES (1, 20, 2, false), (3, 10, 4, false), (5, 30, 6, true),
	(7, 30, 8, false), (9, 50, 12, false), (10, 40, 11, false)});
is(count_violations(), '2', 'the check finds two violations, where there are two');
$node->safe_psql('postgres', 'TRUNCATE made');

my $id = "CALL generate('uuidv7_fast_ns(uuidv7_feed_id())', %d)";
my $position = "CALL generate('uuidv7_feed_position()', %d)";
my $observe = 'CALL observe(%d)';
my @jumps = (0, -$second, -0.01 * $second, 30 * $second, -20 * $second);
my $rows = 'SELECT count(*) FROM made';
foreach my $crashes (1, 1, 0)
{
	# Far more than are made until the crash.
	my $hundreds = $crashes ? 10_000 : 100;
	my $enough = $node->safe_psql('postgres', $rows) + 20_000;
	my @sessions;
	foreach my $work (($id) x 4, ($position) x 3, $observe)
	{
		my $session = RawSession->start($node, "SET fast_uuid.max_clock_lead = '1 d'");
		$session->send(sprintf($work, $hundreds));
		push @sessions, $session;
	}

	# The clock goes on with each reading, and jumps.
	for (my $n = 0; grep { !$_->has_answer } @sessions; $n++)
	{
		$now += $jumps[ $n % @jumps ];
		$clock->put($now, 100);
		usleep(20_000);
		last if $crashes && $node->safe_psql('postgres', $rows) >= $enough;
	}
	if ($crashes)
	{
		$node->stop('immediate');
		$clock->put($now -= 3600 * $second);
		$clock->start($node);
		next;
	}
	foreach my $session (@sessions)
	{
		$session->receive;
		is($session->{error}, '', 'a session has made its values');
	}
}
is(count_violations(), '0', 'no call got a smaller value than one that had returned before');
my $twice = 'SELECT count(*) - count(DISTINCT ns) FROM made WHERE NOT observed';
is($node->safe_psql('postgres', $twice), '0', 'every value is different');
note($node->safe_psql('postgres', $rows) . ' rows');
$node->stop;
done_testing();
