-- A seed makes the random bits of xorshift128+ repeatable; time keeps the UUIDs apart.
\set ECHO none
CREATE FUNCTION pg_temp.tails(made integer) RETURNS text[] LANGUAGE sql AS $$
  SELECT array_agg(right(uuidv7_fast('xorshift128+')::text, 14)) FROM generate_series(1, made) $$;

-- The lower 52 bits of xorshift128+ from 42, calculated with Python's integers
SET fast_uuid.seed = '42';
SELECT pg_temp.tails(8);

\pset format unaligned
\pset expanded on
SET fast_uuid.seed = '0x2A';
SELECT pg_temp.tails(1000) AS first \gset
SET fast_uuid.seed = '42';
SELECT pg_temp.tails(1000) = :'first' AS same_seed_again, pg_temp.tails(1000) <> :'first' AS going_on;
SET fast_uuid.seed = '43';
SELECT pg_temp.tails(1000) <> :'first' AS other_seed;

-- whatever the size of the buffer, and the function that draws
CREATE FUNCTION pg_temp.stream(size integer, calls text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE stream text;
BEGIN
  PERFORM set_config('fast_uuid.buffer_size', size::text, true),
          set_config('fast_uuid.seed', '42', true);
  EXECUTE format('SELECT md5(string_agg(right(id::text, 14), NULL)) FROM (SELECT %s) AS made (id)',
                 calls) INTO stream;
  RETURN stream;
END $$;
SET fast_uuid.source = 'xorshift128+';
SELECT count(DISTINCT pg_temp.stream(size, calls)) AS streams
  FROM unnest('{0,7,8,72,4096,65528,65536}'::integer[]) AS size,
       unnest(ARRAY['uuidv7_fast() FROM generate_series(1, 9000)',
                    'uuidv7_fast(interval $$0$$) FROM generate_series(1, 9000)',
                    'unnest(uuidv7_fast_array(9000))']) AS calls;
RESET fast_uuid.source;

-- nor do settings that discard what is buffered change it
SET fast_uuid.seed = '42';
SELECT pg_temp.tails(3) AS start \gset
SET fast_uuid.vdso = off;
SET fast_uuid.buffer_size = '64';
SELECT :'start'::text[] || pg_temp.tails(5) = (:'first'::text[])[:8] AS goes_on_after_a_discard;
RESET fast_uuid.vdso;
RESET fast_uuid.buffer_size;

-- an inner SET that ends hands back the outer stream, which does not start again; a list of the
-- sources does not draw from it, nor does a benchmark, also if it is cancelled
SET fast_uuid.seed = '42';
SELECT pg_temp.tails(8) AS before \gset
BEGIN;
SET LOCAL fast_uuid.seed = '42';
SELECT pg_temp.tails(8) = :'before' AS inner_stream_starts;
COMMIT;
SELECT NOT pg_temp.tails(8) && :'before' AS outer_stream_goes_on;
BEGIN;
SET LOCAL fast_uuid.seed = '44';
SELECT cardinality(pg_temp.tails(8)) AS inner_made;
ROLLBACK;
SELECT NOT pg_temp.tails(8) && :'before' AS outer_stream_goes_on;
SET fast_uuid.seed = '42';
SELECT pg_temp.tails(8) AS before \gset
SELECT available FROM fast_uuid_sources() WHERE name = 'xorshift128+';
SELECT count(*) > 0 AS measured FROM fast_uuid_benchmark(1);
SELECT pg_temp.tails(8) AS more \gset
SET statement_timeout = '100 ms';
SELECT count(*) FROM fast_uuid_benchmark(10000);
RESET statement_timeout;
SELECT :'before'::text[] || :'more' || pg_temp.tails(984) = :'first' AS as_without_these;

-- without a seed no two starts are alike, and it concerns no other source
SET fast_uuid.seed = '';
SELECT pg_temp.tails(8) AS unseeded \gset
BEGIN;
SET LOCAL fast_uuid.seed = '42';
SELECT pg_temp.tails(10) = (:'first'::text[])[:10] AS seeded_again;
COMMIT;
SELECT NOT :'unseeded'::text[] && :'first' AND NOT again && :'first' AND NOT again && :'unseeded' AS unseeded_differ
  FROM pg_temp.tails(8) AS again;
SET fast_uuid.seed = '42';
SELECT right(uuidv7_fast('getrandom')::text, 14) AS one \gset
SET fast_uuid.seed = '42';
SELECT right(uuidv7_fast('getrandom')::text, 14) <> :'one' AS other_source_differs;
