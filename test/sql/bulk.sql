-- uuidv7_fast_array and uuidv7_fast_set: many values, in the order of all others.
-- A build without OpenSSL has another source in its place.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset

-- arrays of every size about a chunk's, from each source
SELECT source, count(*) AS arrays,
       bool_and(cardinality(ids) = size) AS sized,
       bool_and(size = 0 OR array_lower(ids, 1) = 1 AND array_ndims(ids) = 1) AS plain,
       bool_and((SELECT count(DISTINCT id) = size FROM unnest(ids) AS id)) AS different,
       bool_and((SELECT count(*) FILTER (WHERE id <= previous) = 0
                   FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous
                           FROM unnest(ids) WITH ORDINALITY AS made (id, n)) AS pairs)) AS ascending
  FROM unnest(ARRAY[NULL, 'openssl', 'getrandom', 'urandom', 'xorshift128+']) AS source,
       unnest(ARRAY[0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 512, 513, 5000]) AS size,
       uuidv7_fast_array(size, replace(source, 'openssl', :'openssl')) AS ids
 GROUP BY source ORDER BY source COLLATE "C" NULLS FIRST;

-- version, variant, time of the statement, random tails
WITH made AS MATERIALIZED (
  SELECT clock_timestamp() AS before, uuidv7_fast_array(100000) AS ids),
     checked AS MATERIALIZED (
  SELECT before, id FROM made, unnest(ids) AS id)
SELECT count(*), count(DISTINCT id) AS different,
       bool_and(id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$') AS version_7,
       bool_and(uuidv7_fast_timestamp(id) BETWEEN date_trunc('milliseconds', before) AND clock_timestamp()) AS in_time,
       count(DISTINCT right(id::text, 14)) >= 100000 - 1 AS random_tails
  FROM checked;

-- sets: in a target list, in FROM, cut short, several at once
SELECT count(id), count(DISTINCT id) FROM (SELECT uuidv7_fast_set(1000) AS id) AS made;
SELECT count(id), count(DISTINCT id) FROM uuidv7_fast_set(1000, 'urandom') AS id;
SELECT count(*) FROM uuidv7_fast_set(0);
SELECT count(*) FROM (SELECT uuidv7_fast_set(1000000000000) LIMIT 300) AS made;
SELECT count(*), bool_and(a < b AND b < c AND (previous IS NULL OR previous < a)) AS ascending
  FROM (SELECT a, b, c, lag(c) OVER (ORDER BY n) AS previous
          FROM (SELECT generate_series(1, 1000) AS n, uuidv7_fast_set(1000) AS a,
                       uuidv7_fast_set(1000, 'xorshift128+') AS b, uuidv7_fast() AS c) AS made) AS pairs;

-- single values, arrays and sets in one order
CREATE TEMP TABLE kept (n serial, id uuid);
DO $$
DECLARE id uuid;
BEGIN
  FOR i IN 1..100 LOOP
    INSERT INTO kept (id) VALUES (uuidv7_fast());
    INSERT INTO kept (id) SELECT unnest(uuidv7_fast_array(i * 7));
    INSERT INTO kept (id) VALUES (uuidv7_fast('getrandom'));
    FOR id IN SELECT uuidv7_fast_set(i * 3) LOOP
      INSERT INTO kept (id) VALUES (id);
      IF i % 10 = 0 THEN
        INSERT INTO kept (id) VALUES (uuidv7_fast('urandom'));
      END IF;
    END LOOP;
  END LOOP;
END $$;
SELECT count(*), bool_and(id > previous) AS ascending
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM kept) AS pairs;

-- a cursor that rests makes no value in advance
BEGIN;
DECLARE resting CURSOR FOR SELECT uuidv7_fast_set(1000);
FETCH 1 FROM resting \gset one_
INSERT INTO kept (id) VALUES (uuidv7_fast()) RETURNING id \gset two_
FETCH 1 FROM resting \gset three_
SELECT :'one_uuidv7_fast_set' < :'two_id'::uuid AND :'two_id' < :'three_uuidv7_fast_set'::uuid AS ascending;
COMMIT;

-- the planner knows the number of rows where the statement tells it
CREATE FUNCTION pg_temp.planned_rows(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE plan json;
BEGIN
  EXECUTE 'EXPLAIN (FORMAT json) ' || command INTO plan;
  RETURN plan->0->'Plan'->>'Plan Rows';
END $$;
SELECT command, pg_temp.planned_rows(command) AS rows
  FROM unnest(ARRAY['SELECT * FROM uuidv7_fast_set(12345)', 'SELECT uuidv7_fast_set(6 * 7)',
                    'SELECT * FROM uuidv7_fast_set(0)', 'SELECT * FROM uuidv7_fast_set(NULL)',
                    'SELECT * FROM uuidv7_fast_set(-5)',
                    'SELECT * FROM uuidv7_fast_set((random() * 10)::bigint)']) AS command;
