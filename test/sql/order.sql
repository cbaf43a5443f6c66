-- A million UUIDs of each source, and a million from a source that changes from row to row,
-- under the server's just-in-time compiler: each greater than the one before.
\set ECHO none
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
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

CREATE FUNCTION pg_temp.check_order(pattern text[], OUT made bigint, OUT ascending bigint)
  LANGUAGE sql AS $$
  SELECT count(*), count(*) FILTER (WHERE id > previous)
    FROM (SELECT id, lag(id) OVER () AS previous
            FROM (SELECT uuidv7_fast(pattern[1 + n % cardinality(pattern)]) AS id
                    FROM generate_series(1, 1000000) AS n) AS made) AS pairs $$;
SELECT name, checked.* FROM source, pg_temp.check_order(pattern) AS checked ORDER BY name;
