-- Times in and out: of a time, of now and a shift, bounds, and what is read from a UUID.  What is
-- out of range is in arguments.sql.
\set ECHO none
SET timezone = 'UTC';
SET datestyle = 'ISO';
-- the vector of RFC 9562, appendix A.6
SELECT uuidv7_fast_timestamp('017F22E2-79B0-7CC3-98C4-DC0C0C07398F') AS time_in_the_rfc,
       uuidv7_fast_timestamp('017F22E2-79B0-7CC3-98C4-DC0C0C07398F', sub_ms => true) AS sub_ms;

-- the first and the last there are
SELECT ts, uuidv7_fast_min(ts) AS min, uuidv7_fast_max(ts) AS max,
       uuidv7_fast_timestamp(uuidv7_fast_min(ts)) AS of_min,
       uuidv7_fast_timestamp(uuidv7_fast_max(ts), true) AS of_max
  FROM unnest(ARRAY['1970-01-01', '1970-01-01 00:00:00.000999', '2022-02-22 19:22:22',
                    '2026-11-20 12:34:56.789123', '2262-04-12', '2554-07-22',
                    '9999-12-31 23:59:59.999999', '10888-12-31',
                    '10889-08-02 05:31:50.655999']::timestamptz[]) AS ts;
SELECT uuidv7_fast_ns(uuidv7_fast_min('1970-01-01')) AS first_ns,
       uuidv7_fast_ns('08637bd0-5af6-7c69-ad3f-ffffffffffff') AS last_ns;

-- the digits below a given microsecond are random, and not ten of the random bits
WITH made (ns, tail) AS MATERIALIZED (
  SELECT uuidv7_fast_ns(id) % 1000, ('x' || right(replace(id::text, '-', ''), 14))::bit(56)::bigint
    FROM (SELECT uuidv7_fast_at('2001-09-09 01:46:40Z') FROM generate_series(1, 2000)) AS given (id)),
alike AS (
  SELECT count(*) FILTER (WHERE (tail >> shift & 1023) * 1000 >> 10 = ns) AS count
    FROM made, generate_series(0, 44) AS shift GROUP BY shift)
SELECT (SELECT count(DISTINCT ns) > 800 FROM made) AS random, max(count) <= 30 AS apart FROM alike;

-- of generated ones the time is that of the call, shifted or not, for every year there is,
-- and by the calendar of the session's time zone, which has summer time
SET timezone = 'Europe/Berlin';
SELECT count(*) > 8900 AS shifts,
       bool_and(sub_ms BETWEEN before + shift AND after + shift) AS in_time,
       bool_and(id BETWEEN uuidv7_fast_min(sub_ms) AND uuidv7_fast_max(sub_ms)) AS within_bounds,
       bool_and(time = date_trunc('milliseconds', sub_ms)) AS same_millisecond
  FROM (SELECT shift, clock_timestamp() AS before, uuidv7_fast(shift) AS id,
               clock_timestamp() AS after
          FROM (SELECT make_interval(years => y - extract(year FROM now())::int)
                  FROM generate_series(1971, 10888) AS y
                 UNION ALL
                SELECT make_interval(months => m, days => -m) FROM generate_series(-12, 12) AS m
                 UNION ALL
                SELECT unnest(ARRAY['1 day', '-1 day', '1 month', '90 minutes', '-0.5 s', '-1 us'
                                   ]::interval[])) AS given (shift)) AS made,
       LATERAL (SELECT uuidv7_fast_timestamp(id), uuidv7_fast_timestamp(id, true)
               ) AS read (time, sub_ms);
SET timezone = 'UTC';
SELECT count(*) AS made, bool_and(sub_ms BETWEEN before AND after) AS in_time,
       bool_and(id BETWEEN uuidv7_fast_min(sub_ms) AND uuidv7_fast_max(sub_ms)) AS within_bounds,
       bool_and(ns / 1000 * interval '1 us' = sub_ms - 'epoch') AS same_ns,
       bool_and(ns > previous) AS ascending
  FROM (SELECT *, lag(ns, 1, 0::bigint) OVER (ORDER BY id) AS previous
          FROM (SELECT clock_timestamp() AS before, uuidv7_fast() AS id, clock_timestamp() AS after
                  FROM generate_series(1, 20000)) AS made,
               LATERAL (SELECT uuidv7_fast_timestamp(id, true), uuidv7_fast_ns(id)
                       ) AS read (sub_ms, ns)) AS pairs;

-- nanoseconds of a millisecond are read back from the 20 bits that they have
SELECT count(*), bool_and(uuidv7_fast_ns(id) = 1234567890987000000 + n) AS exact
  FROM generate_series(0, 999999, 7) AS n,
       LATERAL (SELECT (n::bigint << 20) / 1000000 AS fraction) AS bits,
       CAST(lpad(to_hex(1234567890987), 12, '0') || '7' || lpad(to_hex(fraction >> 8), 3, '0')
            || to_hex(32768 | ((fraction & 255) << 6) | n % 64) || lpad(to_hex(n), 12, 'f') AS uuid
           ) AS id;
-- those of other generators do not descend
SELECT bool_and(uuidv7_fast_ns(id) >= previous) AS not_descending,
       max(uuidv7_fast_ns(id)) % 1000000 AS last
  FROM (SELECT id, lag(uuidv7_fast_ns(id)) OVER (ORDER BY id) AS previous
          FROM generate_series(0, 4095) AS a, unnest('{0,1,254,255}'::int[]) AS b,
               CAST('017F22E2-79B0-7' || lpad(to_hex(a), 3, '0') || '-' || to_hex(32768 | (b << 6))
                    || '-000000000000' AS uuid) AS id) AS pairs;

-- Beside the server's own uuidv7(), where it has one: its times can be read, UUIDs of both in
-- turn interleave, and each shift has the same time or the same SQLSTATE.
CREATE FUNCTION pg_temp.state(call text, shift text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format('SELECT %s(%L::interval)', call, shift);
  RETURN 'made';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;
\set bounds t
\set interleave t
\set shifts ''
SELECT to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL AS has_core \gset
\if :has_core
SELECT bool_and(id BETWEEN uuidv7_fast_min(time) AND uuidv7_fast_max(time)
                AND time = uuid_extract_timestamp(id)
                AND uuidv7_fast_timestamp(id, true)
                      BETWEEN before - interval '1 us' AND after + interval '1 ms') AS bounds
  FROM (SELECT clock_timestamp() AS before, uuidv7() AS id, clock_timestamp() AS after
          FROM generate_series(1, 20000)) AS made,
       LATERAL (SELECT uuidv7_fast_timestamp(id) AS time) AS read \gset
SELECT bool_and(left(a::text, 18) <= left(b::text, 18) AND left(b::text, 18) <= left(c::text, 18)
               ) AS interleave
  FROM (SELECT uuidv7_fast() AS a, pg_sleep(0.000001), uuidv7() AS b, pg_sleep(0.000001),
               uuidv7_fast() AS c
          FROM generate_series(1, 100)) AS made \gset
SELECT coalesce(string_agg(format('%s: %s, not %s', shift, ours, cores), ', '), '') AS shifts
  FROM unnest(ARRAY['0', '1 day', '-1 day', '1 month', '29 days 23:59:59.999999', '-55 years',
                    '-56 years', '-57 years', '-100 years', '8862 years', '8863 years',
                    '8864 years', '9000 years', '-178000000 years', '178000000 years', 'infinity',
                    '-infinity']) AS shift,
       pg_temp.state('uuidv7_fast', shift) AS ours, pg_temp.state('uuidv7', shift) AS cores
 WHERE ours <> cores
    OR CASE ours WHEN 'made' THEN uuid_extract_timestamp(uuidv7(shift::interval))
          - uuidv7_fast_timestamp(uuidv7_fast(shift::interval)) NOT BETWEEN '-60 s' AND '60 s' END
\gset
\endif
\echo bounds :bounds interleave :interleave shifts :'shifts'
