# fast_uuid_observe(): after it every value is greater, whichever generator the
# UUID is from and wherever it is called; and which UUIDs it refuses.

use strict;
use warnings;

use PostgreSQL::Test::Cluster;
use PostgreSQL::Test::Utils;
use Test::More;

use lib 'test/perl';
use Observed;
use Together;

start_node();
$node->safe_psql(
	'postgres', q{
-- A UUID of a generator of some kind, near the latest value.
CREATE FUNCTION other_id(kind int, latest uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
	hex text := replace(latest::text, '-', '');
	latest_ms bigint := ('x' || substr(hex, 1, 12))::bit(48)::bigint;
	latest_fraction int := (('x' || substr(hex, 14, 3))::bit(12)::int << 8)
		| ((('x' || substr(hex, 17, 4))::bit(16)::int >> 6) & 255);
	ms bigint := latest_ms + floor(random() * 5)::int - 2;
	bits int := floor(random() * 1048576);
	ones bigint := (1::bigint << 54) - 1;
	rest bigint := (floor(random() * 134217728)::bigint << 27) | floor(random() * 134217728)::bigint;
BEGIN
	RETURN CASE kind
		WHEN 0 THEN built(ms, bits, rest)	-- milliseconds, then random bits; or uuidv7()
		WHEN 1 THEN built(ms, 1048575, ones)	-- the largest of a millisecond
		WHEN 2 THEN built(ms, 0, 0)	-- the smallest
		WHEN 3 THEN built(ms, ((bits & 7) << 8) | (bits >> 12), rest)	-- a counter in rand_a
		WHEN 4 THEN built(ms, bits >> 1, ones - (bits & 3))	-- a long counter that began below one half
		WHEN 5 THEN built(ms, ((bits % 1000) << 8) | (bits >> 12), rest)	-- microseconds as a number
		WHEN 6 THEN built(ms, 1048575 - (bits & 15), rest)	-- fractions of the last nanoseconds, and of none
		WHEN 7 THEN built(latest_ms, least(greatest(latest_fraction + bits % 7 - 3, 0), 1048575), rest)	-- the same nanosecond
		WHEN 8 THEN built(latest_ms, least(latest_fraction + bits % 3, 1048575), ones)
	END;
END $$;
CREATE FUNCTION observe_other(kind int, latest uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
	id uuid := other_id(kind, latest);
BEGIN
	PERFORM fast_uuid_observe(id);
	RETURN id;
END $$;

-- After each of n UUIDs, of every kind in turn, values of a generator in turn.
CREATE FUNCTION try_ids(n int) RETURNS TABLE (kind int, beyond bigint, wrong bigint) LANGUAGE plpgsql AS $$
DECLARE
	latest uuid := uuidv7_fast();
	id uuid;
	made uuid[];
	one uuid;
	resting CURSOR FOR SELECT uuidv7_fast_set(n);
	beyond_of bigint[] := array_fill(0, ARRAY[9]);
	wrong_of bigint[] := array_fill(0, ARRAY[9]);
BEGIN
	OPEN resting;
	FOR i IN 1..n LOOP
		id := observe_other(i % 9, latest);
		CASE i % 5
			WHEN 0 THEN made := ARRAY[uuidv7_fast(), uuidv7_fast()];
			WHEN 1 THEN made := uuidv7_fast_array(300);
			WHEN 2 THEN made := ARRAY(SELECT uuidv7_fast_set(300));
			WHEN 3 THEN made := ARRAY[uuidv7_fast('getrandom')];
			WHEN 4 THEN FETCH resting INTO one; made := ARRAY[one];
		END CASE;
		beyond_of[i % 9 + 1] := beyond_of[i % 9 + 1] + (id > latest)::int;
		wrong_of[i % 9 + 1] := wrong_of[i % 9 + 1] + (made[1] <= greatest(id, latest))::int;
		latest := made[cardinality(made)];
	END LOOP;
	RETURN QUERY SELECT k - 1, beyond_of[k], wrong_of[k] FROM generate_series(1, 9) AS k;
END $$;
});

# Some thousand UUIDs near the latest value, of every kind, before values of every generator.
my $seed = 0.20251121;
diag("seed: $seed");
foreach my $order (@orders)
{
	my $session = session($node, "SET fast_uuid.ordering = '$order'", "SET fast_uuid.max_clock_lead = '1h'", "SELECT setseed($seed)");
	is($session->query('SELECT string_agg(kind::text, \' \') FROM try_ids(4500) WHERE wrong > 0 OR beyond < 50'),
		'', "$order: after UUIDs of each kind, many of them beyond the latest value, all values are greater");
	$session->quit;
}
$node->restart;

# Two sessions and more.
foreach my $order (grep { $_ ne 'session' } @orders)
{
	my @two = map { session($node, "SET fast_uuid.ordering = '$order'", "SET fast_uuid.max_clock_lead = '1h'", "SELECT setseed($seed)") } 1, 2;
	my $latest = $two[0]->query('SELECT uuidv7_fast()');
	my ($wrong, $beyond) = (0, 0);
	foreach my $turn (1 .. 900)
	{
		my $id = $two[ $turn & 1 ]->query('SELECT observe_other(' . $turn % 9 . ", '$latest')");
		my $next = $two[ $turn + 1 & 1 ]->query(('SELECT uuidv7_fast()', 'SELECT uuidv7_fast_set(1)', 'SELECT (uuidv7_fast_array(2))[1]')[ $turn / 9 % 3 ]);
		$beyond++ if $id gt $latest;
		$wrong++  if $next le $id || $next le $latest || $id eq '';
		$latest = $next;
	}
	is($wrong, 0, "$order: the values of a session are greater than what another one observed");
	cmp_ok($beyond, '>', 300, "$order: of which many were beyond the latest value");

	my $far = $two[0]->query("SELECT uuidv7_fast_at(clock_timestamp() + '10 min')");
	$two[0]->query("SELECT fast_uuid_observe('$far')");
	my $new = session($node, "SET fast_uuid.ordering = '$order'");
	cmp_ok($new->query('SELECT uuidv7_fast()'), 'gt', $far, "$order: and so are those of a new session");
	is($new->query("RESET fast_uuid.ordering; SELECT uuidv7_fast() > '$far'"), 't', "$order: and of one that returns to its own order");
	is($two[0]->query("RESET fast_uuid.ordering; SELECT uuidv7_fast() > '$far'"), 't', "$order: and of the one that observed, in its own order");
	is(session($node)->query("SELECT uuidv7_fast() < '$far'"), 't', "$order: but not of one that has its own order alone");
	foreach my $scope ('session', 'instance')
	{
		my $lead = lead($new, $scope);
		ok($lead <= 600 && $lead > 400, "$order: the lead of the $scope is shown ($lead s)");
	}
	$_->quit foreach @two, $new;
}

# Sessions that observe and generate at the same time: what one has observed before
# the call of another begins is smaller.  The witness is a sequence.
$node->safe_psql('postgres', q{
CREATE SEQUENCE moment;
CREATE UNLOGGED TABLE call (began bigint, ended bigint, id uuid, observed bool);
CREATE FUNCTION work(n int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
	began bigint;
	id uuid;
	observes bool;
BEGIN
	FOR i IN 1..n LOOP
		observes := random() < 0.2;
		id := uuidv7_fast_at(clock_timestamp() + random() * interval '20 ms');
		began := nextval('moment');
		IF observes THEN
			PERFORM fast_uuid_observe(id);
		ELSE
			id := (uuidv7_fast_array(1 + i % 2 * 299))[1];
		END IF;
		INSERT INTO call VALUES (began, nextval('moment'), id, observes);
		PERFORM pg_sleep(0.03) WHERE i % 100 = 0;
	END LOOP;
END $$;
});
foreach my $order (grep { $_ ne 'session' } @orders)
{
	session($node, "SET fast_uuid.ordering = '$order'", 'SELECT fast_uuid_reset_ordering()')->quit;
	$node->restart;
	is(run_together(map { [ $node, "SET fast_uuid.ordering = '$order'", 'SELECT work(3000)' ] } 1 .. 5), '', "$order: five sessions at once");
	is($node->safe_psql('postgres', q{
WITH event AS (
	SELECT ended AS at, id, true AS is_end, observed FROM call UNION ALL SELECT began, id, false, observed FROM call
), past AS (
	SELECT *, max(id::text) FILTER (WHERE is_end) OVER (ORDER BY at ROWS UNBOUNDED PRECEDING) AS largest FROM event
) SELECT count(*) FILTER (WHERE id::text <= largest) || ' of ' || (count(*) > 5000)::text FROM past WHERE NOT is_end AND NOT observed}),
		'0 of true', "$order: each value is greater than what was observed, or generated, before its call began");
	is($node->safe_psql('postgres', "SELECT largest_clock_lead > '0' FROM fast_uuid_stats() WHERE name = 'instance'"),
		't', "$order: leads are seen");
	$node->safe_psql('postgres', 'TRUNCATE call');
}

# Whatever becomes of the transaction, and in every place that runs functions.
$node->safe_psql('postgres', q{
CREATE ROLE app LOGIN;
CREATE FUNCTION note(id uuid) RETURNS void LANGUAGE sql SECURITY DEFINER AS 'SELECT fast_uuid_observe(id)';
CREATE FUNCTION note_and_fail(id uuid) RETURNS void LANGUAGE plpgsql AS
	$$ BEGIN PERFORM fast_uuid_observe(id); RAISE EXCEPTION 'failed'; EXCEPTION WHEN OTHERS THEN NULL; END $$;
CREATE TABLE received (id uuid);
CREATE FUNCTION note_row() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM fast_uuid_observe(NEW.id); RETURN NULL; END';
CREATE TRIGGER note AFTER INSERT ON received FOR EACH ROW EXECUTE FUNCTION note_row();
});
my @places = (
	[ 'a READ ONLY transaction', "BEGIN READ ONLY; SELECT fast_uuid_observe('%s'); COMMIT" ],
	[ 'a SERIALIZABLE transaction', "BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT fast_uuid_observe('%s'); COMMIT" ],
	[ 'a transaction that is rolled back', "BEGIN; SELECT fast_uuid_observe('%s'); ROLLBACK" ],
	[ 'a subtransaction that is rolled back', "BEGIN; SAVEPOINT a; SELECT fast_uuid_observe('%s'); ROLLBACK TO a; COMMIT" ],
	[ 'an exception block', "SELECT note_and_fail('%s')" ],
	[ 'a SECURITY DEFINER function of SQL, called by a role without the privilege', "SET ROLE app; SELECT note('%s'); RESET ROLE" ],
	[ 'a trigger', "INSERT INTO received VALUES ('%s')" ]);
foreach my $order (@orders)
{
	my $session = session($node, "SET fast_uuid.ordering = '$order'", "SET fast_uuid.max_clock_lead = '1d'");
	my $latest = $session->query('SELECT uuidv7_fast()');
	foreach my $place (@places)
	{
		my ($what, $sql) = @$place;
		my $id = $session->query("SELECT built_at(extract(epoch FROM uuidv7_fast_timestamp('$latest'))::bigint * 1000000000 + 2000000000)");
		$session->query(sprintf $sql, $id);
		is($session->{error}, '', "$order, $what: allowed");
		$latest = $session->query('SELECT uuidv7_fast()');
		cmp_ok($latest, 'gt', $id, "$order, $what: counts");
	}
	$session->query('SELECT fast_uuid_reset_ordering()');
	is($session->query('SELECT ahead(uuidv7_fast())'), '0', "$order: until a reset");

	# What is refused changes nothing.
	my $before = $session->query('SELECT uuidv7_fast()');
	$session->query("SET fast_uuid.max_clock_lead = -1");
	foreach my $case (
		[ '8000-01-01', '22008' ],
		[ '2554-07-21 23:34:33Z', '22008' ], [ '2554-07-21 23:34:32.999Z', '22023' ], [ '2100-01-01', '22023' ])
	{
		my ($time, $error) = @$case;
		is($session->outcome("SELECT fast_uuid_observe(uuidv7_fast_max('$time'))"), $error, "$order: refused: one of $time");
	}
	is($session->outcome("SELECT fast_uuid_observe('$_')"), '22023', "$order: refused: $_")
	  foreach map({ "ffffffff-ffff-${_}fff-bfff-ffffffffffff" } 0 .. 6, 8 .. 9, 'a' .. 'f'),
	  map({ "ffffffff-ffff-7fff-${_}fff-ffffffffffff" } 0 .. 7, 'c' .. 'f'), '00000000-0000-0000-0000-000000000000';
	is($session->outcome('SELECT fast_uuid_observe(NULL) IS NULL'), 'value t', "$order: NULL does nothing");
	is($session->outcome("SELECT fast_uuid_observe(uuidv7_fast_max('$_'))"), 'value ', "$order: one of $_ is not refused")
	  foreach '1970-01-01 UTC', '2000-01-01', 'yesterday';
	is($session->query("SELECT uuidv7_fast() > '$before' AND ahead(uuidv7_fast()) = 0"), 't', "$order: none of these changes anything");
	$session->quit;
}

# On a standby.
$node->backup('copy');
my $standby = PostgreSQL::Test::Cluster->new('standby');
$standby->init_from_backup($node, 'copy', has_streaming => 1);
$standby->start;
foreach my $order ('session', 'instance')
{
	my $session = session($standby, "SET fast_uuid.ordering = '$order'");
	my $id = $session->query("SELECT uuidv7_fast_at(clock_timestamp() + '500 ms')");
	is($session->outcome("SELECT fast_uuid_observe('$id')"), 'value ', "$order: a standby observes");
	cmp_ok($session->query('SELECT uuidv7_fast()'), 'gt', $id, "$order: and generates after it");
	$session->quit;
}
{
	my $session = session($standby, "SET fast_uuid.ordering = 'durable'", "SET fast_uuid.max_clock_lead = '1h'");
	is($session->outcome("SELECT fast_uuid_observe(uuidv7_fast_at(clock_timestamp() + '30 min'))"),
		(grep { $_ eq 'durable' } @orders) ? '55000' : '0A000', 'durable: a standby refuses');
	is($session->query("SET fast_uuid.ordering = '$_'; SELECT ahead(uuidv7_fast()) < 60"), 't', "durable: which changes nothing under $_ order")
	  foreach 'session', 'instance';
	$session->quit;
}
$standby->stop;
$node->stop;
done_testing();
