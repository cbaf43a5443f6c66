-- The promises of uuidv7_fast(), as a table over the sources.
BEGIN;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS fast_uuid;

-- "in turn" takes a different source for each row; NULL is the session's.
CREATE TEMP TABLE source (name text, pattern text[]);
INSERT INTO source
  SELECT coalesce(name, 'default'), ARRAY[name]
    FROM unnest(ARRAY[NULL, 'openssl', 'getrandom', 'urandom', 'xorshift128+']) AS name;
INSERT INTO source VALUES ('in turn', '{NULL,openssl,getrandom,urandom,xorshift128+}');

CREATE TEMP TABLE buffer (size text);
INSERT INTO buffer VALUES ('0'), ('100'), ('64kB');

SELECT plan((SELECT count(*) * (SELECT count(*) FROM buffer) * 6 FROM source)::integer);

CREATE FUNCTION pg_temp.unix_ms(id uuid) RETURNS bigint
  LANGUAGE sql IMMUTABLE
  RETURN ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint;

CREATE FUNCTION pg_temp.properties(label text, pattern text[]) RETURNS SETOF text
  LANGUAGE plpgsql AS $$
DECLARE
  before bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
  seen record;
BEGIN
  WITH made AS MATERIALIZED (
    SELECT n, uuidv7_fast(pattern[1 + n % cardinality(pattern)]) AS id FROM generate_series(1, 20000) AS n)
  SELECT count(id) AS made, count(DISTINCT id) AS different, bool_and(id > previous) AS ascending,
         bool_and(substr(id::text, 15, 1) = '7') AS version_7,
         bool_and(substr(id::text, 20, 1) IN ('8', '9', 'a', 'b')) AS rfc_variant,
         min(pg_temp.unix_ms(id)) AS first_ms, max(pg_temp.unix_ms(id)) AS last_ms
    INTO seen
    FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM made) AS pairs;
  RETURN NEXT is(seen.made, 20000::bigint, label || ': a value for every call');
  RETURN NEXT is(seen.different, 20000::bigint, label || ': no value twice');
  RETURN NEXT ok(seen.ascending, label || ': strictly ascending');
  RETURN NEXT ok(seen.version_7, label || ': version 7');
  RETURN NEXT ok(seen.rfc_variant, label || ': the RFC''s variant');
  RETURN NEXT ok(seen.first_ms >= before AND
                 seen.last_ms <= floor(extract(epoch FROM clock_timestamp()) * 1000),
                 label || ': the time of the statement');
END $$;

SELECT pg_temp.properties(name || ', buffer ' || set_config('fast_uuid.buffer_size', size, true), pattern)
  FROM source, buffer;
RESET fast_uuid.buffer_size;

SELECT * FROM finish();
ROLLBACK;
