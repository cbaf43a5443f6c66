-- A million values of each source, and a million from a source that changes
-- from row to row: each greater than the one before, hence none twice.
CREATE TEMP TABLE source (name text, pattern text[]);
INSERT INTO source VALUES
  ('default', '{NULL}'),
  ('openssl', '{openssl}'),
  ('getrandom', '{getrandom}'),
  ('urandom', '{urandom}'),
  ('xorshift128+', '{xorshift128+}'),
  ('in turn', '{NULL,openssl,getrandom,urandom,xorshift128+}');
-- A build without OpenSSL has another source in its place.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset
UPDATE source SET pattern = array_replace(pattern, 'openssl', :'openssl');

-- The random bits alone may meet by chance: once among a million draws of
-- their 52 lower ones with a probability of 1 in 9000, three times with one
-- in 10^12.
CREATE FUNCTION pg_temp.check_order(pattern text[])
  RETURNS TABLE (made bigint, ascending bigint, random_tails boolean)
  LANGUAGE sql AS $$
  WITH made AS MATERIALIZED (
    SELECT n, uuidv7_fast(pattern[1 + n % cardinality(pattern)]) AS id
      FROM generate_series(1, 1000000) AS n)
  SELECT count(*), count(*) FILTER (WHERE id > previous),
         count(DISTINCT ('x' || right(replace(id::text, '-', ''), 13))::bit(52)::bigint) >= 1000000 - 2
    FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM made) AS pairs
$$;

SELECT name, checked.* FROM source, pg_temp.check_order(pattern) AS checked ORDER BY name;

-- Order holds across statements, transactions, rollbacks, subtransactions,
-- cursors and functions of one session.
CREATE TEMP TABLE kept (n serial, id uuid);
INSERT INTO kept (id) SELECT uuidv7_fast();
BEGIN;
SELECT uuidv7_fast() AS rolled_back \gset
ROLLBACK;
INSERT INTO kept (id) VALUES (:'rolled_back');
BEGIN;
SAVEPOINT one;
SELECT uuidv7_fast('urandom') AS rolled_back \gset
ROLLBACK TO one;
INSERT INTO kept (id) VALUES (:'rolled_back');
INSERT INTO kept (id) SELECT uuidv7_fast('xorshift128+');
COMMIT;
BEGIN;
DECLARE open_cursor CURSOR WITH HOLD FOR SELECT uuidv7_fast('getrandom') FROM generate_series(1, 3);
COMMIT;
INSERT INTO kept (id) SELECT uuidv7_fast();
DO $$ BEGIN FOR i IN 1..3 LOOP INSERT INTO kept (id) VALUES (uuidv7_fast()); END LOOP; END $$;
SELECT count(*) AS made, bool_and(id > previous) AS ascending
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM kept) AS pairs;

-- A default, a generated batch and COPY keep the order of the rows.
CREATE TEMP TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), n serial);
INSERT INTO item DEFAULT VALUES;
INSERT INTO item (n) SELECT nextval('item_n_seq') FROM generate_series(1, 1000);
COPY item (n) FROM stdin;
2001
2002
\.
SELECT count(*) AS made, bool_and(id > previous) AS ascending
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM item) AS pairs;

-- The server's just-in-time compiler may inline the function.
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SELECT count(DISTINCT uuidv7_fast()) FROM generate_series(1, 1000);
RESET jit_above_cost;
RESET jit_inline_above_cost;
RESET jit_optimize_above_cost;

-- Each row has a value of its own: a call is not folded into a constant.
SELECT count(DISTINCT uuidv7_fast()) = 100 AS by_row,
       count(DISTINCT uuidv7_fast('getrandom')) = 100 AS by_row_and_source
  FROM generate_series(1, 100);
