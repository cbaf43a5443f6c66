-- What a million values cost, of each generator and in bulk, one after the other,
-- round after round, so that all see the same machine.  Takes the psql
-- variables "noop" (path of the library with the floor) and "rounds".
\pset footer off
SET client_min_messages = warning;
SET jit = off;
SET max_parallel_workers_per_gather = 0;
CREATE EXTENSION IF NOT EXISTS fast_uuid;
CREATE FUNCTION fast_uuid_noop() RETURNS uuid AS :'noop' LANGUAGE c VOLATILE PARALLEL SAFE;
CREATE SEQUENCE counter;

-- "call" is what is counted, "setting" what is set before; in bulk "statement"
-- makes the million at once.
CREATE TEMP TABLE generator (n serial, label text, call text, setting text, statement text);
INSERT INTO generator (label, call, setting) VALUES
  ('floor: a C function that returns a fixed uuid', 'fast_uuid_noop()', NULL),
  ('uuidv7_fast(), default settings', 'uuidv7_fast()', NULL),
  ('uuidv7_fast(), ordering = cluster', 'uuidv7_fast()', 'fast_uuid.ordering = cluster'),
  ('uuidv7_fast(), getrandom', 'uuidv7_fast()', 'fast_uuid.source = getrandom'),
  ('uuidv7_fast(), urandom', 'uuidv7_fast()', 'fast_uuid.source = urandom'),
  ('uuidv7_fast(), xorshift128+', 'uuidv7_fast()', 'fast_uuid.source = "xorshift128+"'),
  ('uuidv7_fast(''getrandom''), the source named in the call', 'uuidv7_fast(''getrandom'')', NULL),
  ('uuidv7_fast(), openssl, no buffer', 'uuidv7_fast()', 'fast_uuid.buffer_size = 0'),
  ('nextval() of a sequence', 'nextval(''counter'')', NULL),
  ('gen_random_uuid()', 'gen_random_uuid()', NULL);
INSERT INTO generator (label, call)
  SELECT 'uuidv7() of the server', 'uuidv7()' FROM pg_proc
   WHERE proname = 'uuidv7' AND pronamespace = 'pg_catalog'::regnamespace AND pronargs = 0;

INSERT INTO generator (label, statement, setting) VALUES
  ('uuidv7_fast_array(1000000), default settings', 'SELECT cardinality(uuidv7_fast_array(1000000))', NULL),
  ('uuidv7_fast_array(1000000), xorshift128+', 'SELECT cardinality(uuidv7_fast_array(1000000))', 'fast_uuid.source = "xorshift128+"'),
  ('uuidv7_fast_set(1000000), default settings', 'SELECT count(id) FROM (SELECT uuidv7_fast_set(1000000) AS id) AS made', NULL);

UPDATE generator SET statement = 'SELECT count(' || call || ') FROM generate_series(1, 1000000)' WHERE statement IS NULL;

CREATE TEMP TABLE run (round integer, n integer, ms numeric);

CREATE FUNCTION pg_temp.run(round integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  one generator;
  started timestamptz;
BEGIN
  FOR one IN SELECT * FROM generator ORDER BY n LOOP
    IF one.setting IS NOT NULL THEN
      EXECUTE 'SET LOCAL ' || one.setting;
    END IF;
    started := clock_timestamp();
    EXECUTE one.statement;
    INSERT INTO run VALUES (round, one.n, extract(epoch FROM clock_timestamp() - started) * 1000);
    SET LOCAL fast_uuid.source TO DEFAULT;
    SET LOCAL fast_uuid.buffer_size TO DEFAULT;
    SET LOCAL fast_uuid.ordering TO DEFAULT;
  END LOOP;
END $$;

-- round 0 warms up and does not count
SELECT format('SELECT pg_temp.run(%s)', round) FROM generate_series(0, :rounds) AS round
\o /dev/null
\gexec
\o

SELECT split_part(version(), ' on ', 1) AS server, :rounds AS rounds, (SELECT setting FROM pg_settings WHERE name = 'fast_uuid.source') AS default_source;

-- times another: pair by pair within a round, then the median
SELECT label AS "a million values",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY run.ms)::numeric, 1) AS "ms, median",
       round(min(run.ms), 1) AS min, round(max(run.ms), 1) AS max,
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY run.ms / floor.ms)::numeric, 2) AS "times the floor",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY run.ms / ours.ms)::numeric, 2) AS "times default settings",
       CASE WHEN call IS NOT NULL
            THEN round(percentile_cont(0.5) WITHIN GROUP (ORDER BY run.ms - floor.ms)::numeric) END AS "ns a call above it"
  FROM run
  JOIN run AS floor ON floor.round = run.round AND floor.n = 1
  JOIN run AS ours ON ours.round = run.round AND ours.n = 2
  JOIN generator ON generator.n = run.n
 WHERE run.round > 0
 GROUP BY generator.n, label, call
 ORDER BY generator.n;
