-- Arguments at every limit, and random ones, which are the same in each run: a call gives what
-- it must, or the SQLSTATE that it must.  The messages are in test/pgtap/functions.sql.
\set ECHO none
SET timezone = 'UTC';
SELECT setseed(0.5) \g /dev/null
CREATE FUNCTION pg_temp.outcome(query text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  value text;
BEGIN
  EXECUTE query INTO value;
  RETURN value;
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;

-- Times, which the 48 bits of the milliseconds limit
CREATE TEMP TABLE time AS
  SELECT unnest(ARRAY['-infinity', '4714-11-24 00:00:00 BC', '1969-12-31 23:59:59.999999', 'epoch',
                      '10889-08-02 05:31:50.655999', '10889-08-02 05:31:50.656',
                      '294276-12-31 23:59:59.999999', 'infinity', NULL]::timestamptz[]) AS ts
   UNION ALL
  SELECT timestamptz 'epoch' + (random() * 2.2 - 0.2) * 2 ^ 48 * interval '1 ms' FROM generate_series(1, 3000)
   UNION ALL
  SELECT timestamptz 'epoch' + (random() * 2 - 1) * interval '3 ms' FROM generate_series(1, 300);
CREATE TEMP VIEW times AS
  SELECT ts, isfinite(ts) AND ts >= 'epoch' AND ts < '10889-08-02 05:31:50.656' AS valid FROM time;
SELECT count(*) AS times, count(*) FILTER (WHERE valid) > 1000 AS valid,
       string_agg(DISTINCT coalesce(ts::text, 'NULL'), ', ') FILTER (WHERE
         pg_temp.outcome(format('SELECT uuidv7_fast_timestamp(uuidv7_fast_at(%L), true)', ts))
           IS DISTINCT FROM CASE WHEN valid THEN ts::text
                                 WHEN ts IS NOT NULL THEN '22008' END OR
         pg_temp.outcome(format('SELECT uuidv7_fast_timestamp(uuidv7_fast_min(%L), true)', ts))
           IS DISTINCT FROM CASE WHEN valid THEN date_trunc('ms', ts)::text
                                 WHEN ts IS NOT NULL THEN '22008' END OR
         pg_temp.outcome(format('SELECT uuidv7_fast_timestamp(uuidv7_fast_max(%L), true)', ts))
           IS DISTINCT FROM CASE WHEN valid THEN (date_trunc('ms', ts) + interval '999 us')::text
                                 WHEN ts IS NOT NULL THEN '22008' END) AS wrong
  FROM times;

-- Shifts: as far as the server's own arithmetic takes them, within the same limits
CREATE FUNCTION pg_temp.shifted(shift text) RETURNS text LANGUAGE sql AS $$
  SELECT CASE WHEN ts ~ '^[0-9A-Z]{5}$' THEN ts
              WHEN isfinite(ts::timestamptz) AND ts::timestamptz >= 'epoch'
                   AND ts::timestamptz < '10889-08-02 05:31:50.656' THEN 'made' ELSE '22008' END
    FROM pg_temp.outcome(format('SELECT clock_timestamp() + %L::interval', shift)) AS ts $$;
WITH given AS (
  SELECT unnest(ARRAY['0', '-1 us', '@ 1 day ago', 'P-99999Y', '178000000 years', '-178000000 years',
                      '2147483647 days 2147483647 months', '-2147483648 days', '9223372036854775807 us',
                      '-9223372036854775808 us', '-300 years', '-57 years', '-56 years', '8862 years',
                      '8864 years', 'infinity', '-infinity', 'typo', '']) AS shift
   UNION ALL
  SELECT format('%s years %s months %s days %s s',
                ((random() * 2 - 1) * 10 ^ (random() * 4))::int, ((random() * 2 - 1) * 10 ^ (random() * 5))::int,
                ((random() * 2 - 1) * 10 ^ (random() * 6))::int, ((random() * 2 - 1) * 10 ^ (random() * 9))::int)
    FROM generate_series(1, 2000))
SELECT count(*) AS shifts, count(*) FILTER (WHERE pg_temp.shifted(shift) = 'made') > 500 AS valid,
       string_agg(concat(shift, ': ', outcome), ', ')
         FILTER (WHERE outcome IS DISTINCT FROM pg_temp.shifted(shift)) AS wrong
  FROM given, pg_temp.outcome(format('SELECT ''made'' WHERE uuidv7_fast(%L::interval) IS NOT NULL', shift)) AS outcome;

-- NULL gives NULL, as from uuidv7() of PostgreSQL 18
SELECT num_nulls(uuidv7_fast(NULL::interval), uuidv7_fast(NULL::interval, 'getrandom'), uuidv7_fast_at(NULL),
                 uuidv7_fast_at(NULL, 'getrandom'), uuidv7_fast_array(NULL)) AS nulls;

-- Counts of arrays
SELECT count, pg_temp.outcome(format('SELECT cardinality(uuidv7_fast_array(%L))', count)) AS of_array
  FROM unnest(ARRAY['0', '1', '7', '-1', '67108863', '2147483647', '-2147483648', '2147483648',
                    '9223372036854775807', '-9223372036854775808', NULL]) AS count;

-- Names of sources, as an argument and in settings: right ones in any case, and nothing near
CREATE TEMP TABLE source AS SELECT name FROM fast_uuid_sources() WHERE available;
CREATE TEMP TABLE word AS
  SELECT word FROM source, unnest(ARRAY[name, upper(name), initcap(name), ' ' || name, name || ' ', name || E'\n',
                                        name || name, name || ',' || name, '"' || name || '"']) AS word
   UNION ALL
  SELECT unnest(ARRAY['', ' ', '0', '1', 'default', 'all', 'none', '*', '/dev/urandom', 'u random',
                      'open ssl', 'xorshift128', 'xorshift', E'\xef\xbd\x95random', 'urandom;getrandom',
                      '''urandom''', '-1 hour', 'P1D'])
   UNION ALL
  SELECT CASE n % 3 WHEN 0 THEN left(name, place)
                    WHEN 1 THEN overlay(name PLACING chr(1 + (random() * 126)::int) FROM place + 1 FOR 1)
                    ELSE overlay(name PLACING upper(substr(name, place, 2)) FROM place FOR 2) END
    FROM source, generate_series(1, 600) AS n, LATERAL (SELECT 1 + floor(random() * (length(name) - 1) + n * 0)::int) AS at (place)
   UNION ALL
  SELECT string_agg(chr(1 + (random() * 126)::int + n * 0), '')
    FROM generate_series(1, 300) AS n, generate_series(1, 20) GROUP BY n
   UNION ALL
  SELECT repeat('urandom', 20000);
SELECT count(*) > 2000 AS words, count(*) FILTER (WHERE known) > 200 AS known,
       string_agg(word, ' | ') FILTER (WHERE
         pg_temp.outcome(format('SELECT ''t'' FROM uuidv7_fast(%L)', word))
           IS DISTINCT FROM CASE WHEN known THEN 't' ELSE '22023' END OR
         pg_temp.outcome(format('SELECT set_config(''fast_uuid.source'', %L, false)', word))
           IS DISTINCT FROM CASE WHEN known THEN lower(word COLLATE "C") ELSE '22023' END) AS wrong
  FROM (SELECT word, lower(word COLLATE "C") IN (SELECT name FROM source) AS known FROM word) AS words;

-- Lists of them: what the separators leave
WITH list AS (
  SELECT string_agg(quote || word || quote, separator) AS list
    FROM (SELECT n, word, (ARRAY['', '', '"'])[1 + floor(random() * 3)] AS quote,
                 (ARRAY[',', ', ', ' ', ',,', E'\t'])[1 + n % 5] AS separator
            FROM (SELECT word, row_number() OVER (ORDER BY random()) % 500 AS n FROM word
                   WHERE lower(word COLLATE "C") IN (SELECT name FROM source) OR random() < 0.1) AS words
         ) AS parts
   GROUP BY n, separator),
judged AS (
  SELECT list, (SELECT array_agg(DISTINCT name COLLATE "C" ORDER BY name COLLATE "C") FILTER (WHERE name <> '')
                  FROM regexp_split_to_table(lower(list COLLATE "C"), E'[, "\t\n\v\f\r]') AS name) AS names
    FROM list)
SELECT count(*) FILTER (WHERE right_ones) > 50 AS right_ones, count(*) FILTER (WHERE NOT right_ones) > 50 AS wrong_ones,
       string_agg(list, ' | ')
         FILTER (WHERE allowed IS DISTINCT FROM CASE WHEN right_ones THEN names::text ELSE '22023' END) AS taken
  FROM judged, LATERAL (SELECT names <@ (SELECT array_agg(name) FROM source)) AS known (right_ones),
       pg_temp.outcome(format('SELECT array_agg(name COLLATE "C" ORDER BY name COLLATE "C")
         FROM fast_uuid_sources(), set_config(''fast_uuid.allowed_sources'', %L, false) AS list WHERE allowed', list)) AS allowed;
RESET ALL;

-- UUIDs of any bits: the time in those of version 7, in nanoseconds while they fit
SET timezone = 'UTC';
SELECT count(*) AS uuids, count(*) FILTER (WHERE version_7) > 500 AS version_7,
       string_agg(id::text, ', ') FILTER (WHERE
         uuidv7_fast_timestamp(id) IS DISTINCT FROM CASE WHEN version_7 THEN ms END OR
         date_trunc('ms', uuidv7_fast_timestamp(id, true)) IS DISTINCT FROM CASE WHEN version_7 THEN ms END OR
         pg_temp.outcome(format('SELECT uuidv7_fast_ns(%L) / 1000000', id)) IS DISTINCT FROM
           CASE WHEN version_7 THEN CASE WHEN unix_ms < 9223372036854 THEN unix_ms::text ELSE '22008' END END) AS wrong
  FROM (SELECT n, md5(n::text) AS hex FROM generate_series(1, 4000) AS n) AS given,
       LATERAL (SELECT overlay(CASE WHEN n % 2 = 0 THEN overlay(hex PLACING '0' || substr(hex, 2, 1) FROM 1)
                                    ELSE hex END PLACING CASE WHEN n % 3 > 0 THEN '7' ELSE substr(hex, 13, 1) END FROM 13)::uuid) AS made (id),
       LATERAL (SELECT replace(id::text, '-', '')) AS text (bits),
       LATERAL (SELECT ('x' || left(bits, 12))::bit(48)::bigint, substr(bits, 13, 1) = '7' AND substr(bits, 17, 1) ~ '[89ab]') AS read (unix_ms, version_7),
       LATERAL (SELECT timestamptz 'epoch' + unix_ms / 1000 * interval '1 s' + unix_ms % 1000 * interval '1 ms') AS time (ms);

-- What an error says besides the message: detail and hint
SELECT string_agg(name, ', ') AS names FROM fast_uuid_sources() \gset
CREATE FUNCTION pg_temp.said(command text, names text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  EXECUTE command;
  RETURN 'nothing';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN replace(concat_ws(E'\n', SQLERRM, nullif(detail, ''), nullif(hint, '')), names, 'ALL NAMES');
END $$;
SELECT command, pg_temp.said(command, :'names')
  FROM unnest(ARRAY['SELECT uuidv7_fast(''-1 hour'')', 'SELECT uuidv7_fast_min(''1969-12-31'')',
                    'SELECT uuidv7_fast_ns(''ffffffff-ffff-7fff-bfff-ffffffffffff'')',
                    'SET fast_uuid.source = ''typo''', 'SET fast_uuid.seed = ''abc''',
                    'SET fast_uuid.allowed_sources = ''openssl, typo, urandom''',
                    'SET fast_uuid.nothing = ''1''']) AS command;
