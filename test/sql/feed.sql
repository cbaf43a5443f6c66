-- Feed ids and positions, the triggers that stamp and guard them, and what these refuse.  Where
-- there are no feeds, before PostgreSQL 17 without preloading, feed_1.out is expected.
\set ECHO none
\c -
SELECT current_setting('server_version_num')::int < 170000
   AND current_setting('shared_preload_libraries') NOT LIKE '%fast_uuid%' AS without \gset
\if :without
  \quit
\endif

-- What comes of a command: its value, or the error.
CREATE FUNCTION pg_temp.outcome(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE value text;
BEGIN
  EXECUTE command INTO value;
  RETURN value;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

-- Each is greater than the one before, an id or a position, and has the time of its call.
SELECT count(*) AS generated, bool_and(ns > previous) AS ascending,
       bool_and(to_timestamp(ns / 1000 / 1e6) BETWEEN before - interval '1 us' AND after + interval '1 s') AS in_time,
       bool_and(id::text ~ '^.{14}7...-[89ab]') AS version_7, count(DISTINCT right(id::text, 13)) AS random_tails
  FROM (SELECT *, lag(ns, 1, 0::bigint) OVER (ORDER BY n) AS previous
          FROM (SELECT n, clock_timestamp() AS before, CASE WHEN n % 3 > 0 THEN uuidv7_feed_id() END AS id,
                       CASE WHEN n % 3 = 0 THEN uuidv7_feed_position() END AS position, clock_timestamp() AS after
                  FROM generate_series(1, 10000) AS n) AS made, coalesce(position, uuidv7_fast_ns(id)) AS ns) AS pairs;

-- Random bits are those of the source; of a position there are none.
SET fast_uuid.buffer_size = 0;
SET fast_uuid.source = 'urandom';
SET fast_uuid.allowed_sources = 'getrandom, urandom';
CREATE FUNCTION pg_temp.drawn(call text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := (SELECT jsonb_object_agg(name, refills) FROM fast_uuid_sources());
  error text := substring(pg_temp.outcome('SELECT ' || call) FROM '^\d\w{4} .*');
BEGIN
  RETURN (SELECT concat_ws(' ', error, string_agg(name || ' ' || refills - (before ->> name)::int, ', '))
            FROM fast_uuid_sources() WHERE refills > (before ->> name)::int);
END $$;
SELECT call, pg_temp.drawn(call)
  FROM unnest(ARRAY['uuidv7_feed_id()', 'uuidv7_feed_id(NULL)', 'uuidv7_feed_id(''GetRandom'')', 'uuidv7_feed_position()',
                    'uuidv7_feed_id(''xorshift128+'')', 'uuidv7_feed_id(''typo'')']) AS call;
RESET ALL;

-- The error of the statement that fires a trigger with this definition.
CREATE DOMAIN pg_temp.id_of_item AS uuid;
SELECT CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END AS kind \gset
CREATE TEMP TABLE item (id int, version uuid, number bigint, name text, gone uuid, domain pg_temp.id_of_item,
                        copied uuid GENERATED ALWAYS AS (version) STORED, computed uuid GENERATED ALWAYS AS (version) :kind);
ALTER TABLE item DROP COLUMN gone;
CREATE TEMP VIEW items AS SELECT * FROM item;
CREATE FUNCTION pg_temp.fired(definition text, function text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'CREATE TRIGGER a_trigger ' || format(definition, 'EXECUTE FUNCTION uuidv7_feed_' || function);
  INSERT INTO items (id) VALUES (1);
  DELETE FROM item;
  TRUNCATE item;
  RAISE 'accepted';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || replace(SQLERRM, function, '...');
END $$;
SELECT definition, string_agg(DISTINCT pg_temp.fired(definition, function), ' | ') AS both
  FROM unnest(ARRAY['AFTER INSERT ON item FOR EACH ROW %s(version)',
                    'BEFORE INSERT ON item %s(version)',
                    'INSTEAD OF INSERT ON items FOR EACH ROW %s(version)',
                    'BEFORE DELETE ON item FOR EACH ROW %s(version)',
                    'BEFORE TRUNCATE ON item %s(version)',
                    'BEFORE INSERT ON item FOR EACH ROW %s()',
                    'BEFORE INSERT ON item FOR EACH ROW %s(version, id)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(typo)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(gone)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(ctid)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(name)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(id)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(domain)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(copied)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(computed)']) WITH ORDINALITY AS tried (definition, n),
       unnest(ARRAY['stamp', 'guard']) AS function
 GROUP BY n, definition ORDER BY n;

-- The guard: what it says, and the edges of what the transaction was given.  Ids of every origin,
-- inserted in every way, are in test/t/feeds/guard.pl.
CREATE TEMP TABLE by_id (id uuid DEFAULT uuidv7_feed_id(), n int);
CREATE TEMP TABLE by_number (id bigint DEFAULT uuidv7_feed_position(), n int);
CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON by_id FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON by_number FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
\set SHOW_CONTEXT never
INSERT INTO by_id VALUES (uuidv7_fast());
INSERT INTO by_number VALUES (42);
\set VERBOSITY sqlstate
COPY by_id (n) FROM stdin;
1
2
\.
COPY by_id (id) FROM stdin;
019c44d9-0800-7000-8000-000000000000
\.
SELECT count(*) AS copied FROM by_id;
\set ON_ERROR_ROLLBACK on
BEGIN;
SELECT uuidv7_feed_id() AS first, uuidv7_feed_position() AS last \gset
INSERT INTO by_id VALUES (:'first');
INSERT INTO by_number VALUES (:last), (uuidv7_fast_ns(:'first')), (:last - 1);
INSERT INTO by_id VALUES (overlay(:'first' PLACING '4' FROM 15)::uuid);
INSERT INTO by_id VALUES (overlay(:'first' PLACING '8' FROM 15)::uuid);
INSERT INTO by_number VALUES (uuidv7_fast_ns(:'first') - 1);
INSERT INTO by_number VALUES (:last + 1);
INSERT INTO by_number VALUES (-1);
INSERT INTO by_number VALUES (NULL);
SELECT :last + 20000000 AS between, uuidv7_feed_position_observe(:last + 40000000) \gset
INSERT INTO by_number VALUES (:between);
SET LOCAL session_replication_role = replica;
INSERT INTO by_number VALUES (:between) RETURNING 'on a replica' AS passes;
COMMIT;
INSERT INTO by_id VALUES (:'first');
\set VERBOSITY default

-- A stamp, of whatever was given, and a guard after it
CREATE TEMP TABLE stamped (id uuid, number bigint);
CREATE TRIGGER a_stamp BEFORE INSERT OR UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_stamp('id');
CREATE TRIGGER b_stamp BEFORE INSERT OR UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_stamp('number');
CREATE TRIGGER y_guard BEFORE INSERT OR UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
CREATE TRIGGER z_guard BEFORE INSERT OR UPDATE ON stamped FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('number');
INSERT INTO stamped VALUES (gen_random_uuid(), 42) RETURNING id AS first_id, number AS first_number \gset
SELECT :first_number > uuidv7_fast_ns(:'first_id') AS inserted;
UPDATE stamped SET number = number RETURNING uuidv7_fast_ns(id) > :first_number AND number > uuidv7_fast_ns(id) AS updated;

-- A row that had none before there was a guard can be changed.
CREATE TEMP TABLE old AS SELECT NULL::uuid AS id;
CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON old FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id');
UPDATE old SET id = NULL RETURNING id IS NULL AS unchanged;
UPDATE old SET id = uuidv7_feed_id() RETURNING id IS NULL AS unchanged;

-- Observed are UUIDs of version 7, and within the limit, which is a second where there is none.
CREATE FUNCTION pg_temp.observe(id uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  PERFORM uuidv7_feed_observe(id);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM,
                   nullif(regexp_replace(detail, 'by \d+ ms', 'by ... ms'), ''), nullif(hint, ''));
END $$;
SELECT id, pg_temp.observe(id::uuid)
  FROM unnest(ARRAY['00000000-0000-7000-8000-000000000000', '01890a5d-ac96-474b-bcce-b302099a8057',
                    '01890a5d-ac96-774b-ccce-b302099a8057', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
                    'ffffffff-ffff-7fff-bfff-ffffffffffff', '10c6f7a0-b327-7fff-bfff-ffffffffffff',
                    NULL]) AS id;
SELECT max_lead, ahead, pg_temp.observe(uuidv7_fast_at(clock_timestamp() + ahead::interval))
  FROM (VALUES ('0', '1 h'), ('0', '-1 h'), ('-1', '1 h'), ('2h', '3 h')) AS given (max_lead, ahead),
       set_config('fast_uuid.max_clock_lead', max_lead, false);
RESET fast_uuid.max_clock_lead;

-- What a session reserves before it has looked at the upper bound is given to nobody.
\c -
CREATE TEMP TABLE by_number (position bigint);
CREATE TRIGGER zz_guard BEFORE INSERT ON by_number FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('position');
BEGIN;
SELECT uuidv7_feed_position() AS first \gset
INSERT INTO by_number VALUES (:first) RETURNING position = :first AS first;
INSERT INTO by_number VALUES (:first - 1);
ROLLBACK;
