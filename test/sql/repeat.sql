-- A seed with a start time: whole UUIDs that are the same in every run, by functions and
-- defaults that know nothing of it.
\set ECHO none
\pset format unaligned
\pset expanded on
SET fast_uuid.source = 'xorshift128+';
CREATE TEMP TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), n integer);

-- the time in milliseconds, then the lower 54 bits of xorshift128+ from 42, as Python's integers
-- have them
SET fast_uuid.seed = '42 2026-01-01 00:00:00+00';
INSERT INTO item (n) SELECT generate_series(1, 3) RETURNING n, id;
SELECT array_to_string(uuidv7_fast_array(2), ' ') AS array, uuidv7_fast(interval '-1 hour') AS shifted,
       uuidv7_fast('xorshift128+') AS of_argument, uuidv7_fast_timestamp(uuidv7_fast(), true) AT TIME ZONE 'UTC' AS time;

-- the same whatever the buffer, the session's time zone and style, and what else is set meanwhile
CREATE FUNCTION pg_temp.stream(size text, zone text, seed text, calls text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE stream text; other text;
BEGIN
  PERFORM set_config('fast_uuid.buffer_size', size, true), set_config('TimeZone', zone, true),
          set_config('DateStyle', CASE zone WHEN 'UTC' THEN 'ISO, MDY' ELSE 'German, DMY' END, true),
          set_config('fast_uuid.seed', seed, true);
  EXECUTE format('SELECT string_agg(id::text, NULL) FROM (SELECT %s) AS made (id)', calls) INTO stream;
  PERFORM set_config('fast_uuid.vdso', 'off', true), set_config('fast_uuid.buffer_size', '64', true);
  EXECUTE format('SELECT string_agg(id::text, NULL) FROM (SELECT %s) AS made (id)', calls) INTO other;
  RETURN md5(stream || other);
END $$;
SELECT count(DISTINCT pg_temp.stream(size, zone, seed, calls)) AS streams
  FROM unnest('{0,8,72,4096,65536}'::text[]) AS size, unnest('{UTC,Asia/Tokyo}'::text[]) AS zone,
       unnest(ARRAY['42 2026-01-01', '0x2A   2026-01-01 00:00Z', '42 2026-01-01T09:00:00+09',
                    '42 2025-12-31 14:30:00.000-09:30']) AS seed,
       unnest(ARRAY['uuidv7_fast() FROM generate_series(1, 9000)', 'unnest(uuidv7_fast_array(9000))',
                    'uuidv7_fast(interval $$0$$) FROM generate_series(1, 9000)']) AS calls;

-- they ascend, one a millisecond; another seed or time gives others
SET fast_uuid.seed = '42 2026-01-01';
SELECT count(*) AS ids, bool_and(id > before) AS ascend,
       count(*) FILTER (WHERE uuidv7_fast_timestamp(id) - uuidv7_fast_timestamp(before) <> '1 ms') AS other_steps
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS before
          FROM (SELECT n, uuidv7_fast() AS id FROM generate_series(1, 1000) AS n) AS made) AS pairs;
SELECT count(DISTINCT pg_temp.stream('0', 'UTC', seed, 'uuidv7_fast()')) AS streams
  FROM unnest('{42 2026-01-01,43 2026-01-01,42 2026-01-01 00:00:00.001,42 1970-01-01,42 2554-01-01,42}'::text[]) AS seed
 WHERE seed <> '42';
SET fast_uuid.seed = '42 1970-01-01';
SELECT uuidv7_fast() AS first_of_all;

-- another source is refused, whether its bits had been buffered or not, and moves nothing on
SET fast_uuid.seed = '42 2026-01-01';
SELECT pg_typeof(uuidv7_fast_array(3, 'xorshift128+')) AS three;
\set VERBOSITY default
SELECT uuidv7_fast('openssl');
\echo :SQLSTATE
\set VERBOSITY terse
SELECT uuidv7_fast('getrandom');
SELECT uuidv7_fast_array(3, 'urandom');
SELECT uuidv7_fast(interval '1 hour', 'getrandom');
SELECT uuidv7_fast_at('2026-01-01Z', 'getrandom');
SET fast_uuid.source = 'getrandom';
SELECT uuidv7_fast();
INSERT INTO item (n) VALUES (4);
SET fast_uuid.source = 'xorshift128+';
SELECT uuidv7_fast() AS fourth;
SELECT implementation FROM fast_uuid_sources() WHERE name = 'xorshift128+';

-- it ends with the seed, and the session's own order goes on from where it was
RESET fast_uuid.seed;
SELECT uuidv7_fast() AS by_the_clock \gset
BEGIN;
SET LOCAL fast_uuid.seed = '42 2500-01-01';
SELECT uuidv7_fast() AS first_of_2500;
SAVEPOINT a;
SET LOCAL fast_uuid.seed = '42 2400-01-01';
SELECT uuidv7_fast() AS first_of_2400;
ROLLBACK TO a;
SELECT uuidv7_fast() AS second_of_2500;
COMMIT;
SELECT id > :'by_the_clock' AS later,
       abs(extract(epoch FROM uuidv7_fast_timestamp(id) - clock_timestamp())) < 60 AS by_the_clock
  FROM (SELECT uuidv7_fast('urandom') AS id) AS made;

-- the end of time is an error, each time
SET fast_uuid.seed = '42 2554-07-21 23:34:32.999';
SELECT uuidv7_fast() AS last_of_all;
SELECT uuidv7_fast();
SELECT uuidv7_fast_array(2);

-- what is no time
\set VERBOSITY default
SET fast_uuid.seed = '42 2026-13-01';
\set VERBOSITY terse
DO $$
DECLARE seed text;
BEGIN
  FOREACH seed IN ARRAY ARRAY['42 ', '42x', '42 now', '42 today', '42 infinity', '42 epoch', '42 2026', '42 2026-01',
    '42 2026-02-30', '42 2026-01-01 now', '42 2026-01-01 today', '42 2026-01-01 24:00:01', '42 2026-01-01 BC',
    '42 01/02/2026', '42 1969-12-31 23:59:59.999999', '42 2554-07-21 23:34:33', '42 2026-01-01 nowhere', '42 2026-01-01 00:00 no/where',
    '42 2026-01-01 00:00 IST', '42 2026-01-01 00:00 UTC', '42 2026-01-01 Europe/Berlin', '42 2026-01-01 00:00 Z+1',
    '42 2026-01-01 00:00+99', '42 2026-01-01T', '42 2026-01-01 00:00ZZ', '42 2026-01-01 ' || repeat('0', 200), '2026-01-01',
    ' 42 2026-01-01', '42 42 2026-01-01', 'x 2026-01-01'] LOOP
    BEGIN
      PERFORM set_config('fast_uuid.seed', seed, false);
      RAISE NOTICE 'taken: %', seed;
    EXCEPTION WHEN invalid_parameter_value THEN
    END;
  END LOOP;
END $$;
