-- Times in and out: uuidv7_fast_at, _min, _max and _timestamp.
SET timezone = 'UTC';
SET datestyle = 'ISO';
-- the vector of RFC 9562, appendix A.6
SELECT uuidv7_fast_timestamp('017F22E2-79B0-7CC3-98C4-DC0C0C07398F') AS time,
       uuidv7_fast_timestamp('017F22E2-79B0-7CC3-98C4-DC0C0C07398F')
         = 'Tuesday, February 22, 2022 2:22:22.00 PM GMT+05:00' AS as_in_the_rfc,
       uuidv7_fast_timestamp('017F22E2-79B0-7CC3-98C4-DC0C0C07398F', sub_ms => true) AS sub_ms;

-- other versions and variants have no such time
SELECT count(*) AS tried, count(uuidv7_fast_timestamp(id)) AS with_time,
       string_agg(to_hex(version) || to_hex(variant), ' ' ORDER BY version, variant)
         FILTER (WHERE uuidv7_fast_timestamp(id) IS NOT NULL) AS which
  FROM generate_series(0, 15) AS version, generate_series(0, 15) AS variant,
       CAST('017F22E2-79B0-' || to_hex(version) || 'CC3-' || to_hex(variant) || '8C4-DC0C0C07398F' AS uuid) AS id;
SELECT uuidv7_fast_timestamp('ffffffff-ffff-ffff-ffff-ffffffffffff') IS NULL AS max,
       uuidv7_fast_timestamp(NULL) IS NULL AS null_id, uuidv7_fast_timestamp(uuidv7_fast(), NULL) IS NULL AS null_flag;

-- the first and the last values there are
SELECT ts, uuidv7_fast_min(ts) AS min, uuidv7_fast_max(ts) AS max,
       uuidv7_fast_timestamp(uuidv7_fast_min(ts)) AS of_min, uuidv7_fast_timestamp(uuidv7_fast_max(ts), true) AS of_max
  FROM unnest(ARRAY['1970-01-01', '1970-01-01 00:00:00.000999', '2022-02-22 19:22:22', '2026-11-20 12:34:56.789123',
                    '2262-04-12', '2554-07-22', '9999-12-31 23:59:59.999999', '10888-12-31',
                    '10889-08-02 05:31:50.655999']::timestamptz[]) AS ts;

-- outside the range of a version 7 UUID
SELECT uuidv7_fast_min('1969-12-31');
SELECT uuidv7_fast_min(NULL) IS NULL AS min_null, uuidv7_fast_max(NULL) IS NULL AS max_null;

-- A build without OpenSSL has another source in its place.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset
-- a given time comes back to the microsecond, from every source
SELECT source, count(*), count(DISTINCT id) AS different,
       bool_and(uuidv7_fast_timestamp(id, true) = ts) AS same_microsecond,
       bool_and(uuidv7_fast_timestamp(id) = date_trunc('milliseconds', ts)) AS same_millisecond,
       bool_and(id BETWEEN uuidv7_fast_min(ts) AND uuidv7_fast_max(ts)) AS within_bounds
  FROM unnest(ARRAY[NULL, 'openssl', 'getrandom', 'urandom', 'xorshift128+']) AS source,
       generate_series(1, 2000) AS n,
       LATERAL (SELECT timestamptz '1970-01-01' + n * interval '4 years 3 hours 0.001234 s' AS ts) AS given,
       LATERAL (SELECT uuidv7_fast_at(ts, replace(source, 'openssl', :'openssl')) AS id) AS made
 GROUP BY source ORDER BY source COLLATE "C" NULLS FIRST;
-- values of one time differ, in the digits below the microsecond too
SELECT count(DISTINCT uuidv7_fast_at('2024-01-01')) AS different,
       count(DISTINCT substr(uuidv7_fast_at('2024-01-01')::text, 16, 7)) > 100 AS below_the_microsecond
  FROM generate_series(1, 1000);
-- and do not disturb the order
SELECT uuidv7_fast() < uuidv7_fast() AND uuidv7_fast_at('9999-01-01') > uuidv7_fast() AS ascending,
       uuidv7_fast_timestamp(uuidv7_fast()) < clock_timestamp() + interval '1 s' AS not_ahead;

-- a hundred thousand values of now lie within the bounds of their millisecond,
-- and have the microsecond of their making
SELECT count(*) AS made,
       bool_and(uuidv7_fast_min(before) <= id AND id <= uuidv7_fast_max(after)) AS within_bounds,
       bool_and(uuidv7_fast_min(time) <= id AND id <= uuidv7_fast_max(time)) AS of_own_millisecond,
       bool_and(sub_ms BETWEEN before AND after) AS in_time
  FROM (SELECT id, before, after, uuidv7_fast_timestamp(id) AS time, uuidv7_fast_timestamp(id, true) AS sub_ms
          FROM (SELECT clock_timestamp() AS before, uuidv7_fast() AS id, clock_timestamp() AS after
                  FROM generate_series(1, 100000)) AS made) AS read;
-- the same for the server's own uuidv7(), where it has one
DO $$
DECLARE good boolean := true;
BEGIN
  IF to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL THEN
    EXECUTE $query$
      SELECT bool_and(uuidv7_fast_min(time) <= id AND id <= uuidv7_fast_max(time)
                      AND time = uuid_extract_timestamp(id)
                      AND sub_ms - before BETWEEN '-1 us' AND '1 s')
        FROM (SELECT id, before, uuidv7_fast_timestamp(id) AS time, uuidv7_fast_timestamp(id, true) AS sub_ms
                FROM (SELECT clock_timestamp() AS before, uuidv7() AS id
                        FROM generate_series(1, 100000)) AS made) AS read $query$ INTO good;
  END IF;
  RAISE NOTICE 'bounds hold: %', good;
END $$;
-- values of both in turn interleave in the order of their time
DO $$
DECLARE good boolean := true;
BEGIN
  IF to_regprocedure('pg_catalog.uuidv7()') IS NOT NULL THEN
    EXECUTE $query$
      SELECT bool_and(substr(a::text, 1, 18) <= substr(b::text, 1, 18) AND substr(b::text, 1, 18) <= substr(c::text, 1, 18))
        FROM (SELECT uuidv7_fast() AS a, clock_timestamp(), pg_sleep(0.000001), uuidv7() AS b, pg_sleep(0.000001), uuidv7_fast() AS c
                FROM generate_series(1, 100)) AS made $query$ INTO good;
  END IF;
  RAISE NOTICE 'values of both interleave: %', good;
END $$;

-- every nanosecond of a millisecond is read back from the 20 bits that it has
SELECT count(*), bool_and(uuidv7_fast_ns(id) = 1234567890987000000 + n) AS exact
  FROM generate_series(0, 999999) AS n,
       LATERAL (SELECT (n::bigint << 20) / 1000000 AS fraction) AS bits,
       CAST(lpad(to_hex(1234567890987), 12, '0') || '7' || lpad(to_hex(fraction >> 8), 3, '0')
            || to_hex(32768 | ((fraction & 255) << 6) | n % 64) || lpad(to_hex(n), 12, 'f') AS uuid) AS id;
-- of generated ids it ascends, and has their microsecond
SELECT bool_and(ns > previous) AS ascending,
       bool_and(ns / 1000 * interval '1 us' = uuidv7_fast_timestamp(id, true) - 'epoch') AS same_time
  FROM (SELECT id, uuidv7_fast_ns(id) AS ns, lag(uuidv7_fast_ns(id)) OVER () AS previous
          FROM unnest(uuidv7_fast_array(1000)) AS id) AS pairs;
-- those of other generators do not descend
SELECT bool_and(uuidv7_fast_ns(id) >= previous) AS ascending, max(uuidv7_fast_ns(id)) % 1000000 AS last
  FROM (SELECT id, lag(uuidv7_fast_ns(id)) OVER (ORDER BY id) AS previous
          FROM generate_series(0, 4095) AS a, unnest('{0,1,254,255}'::int[]) AS b,
               CAST('017F22E2-79B0-7' || lpad(to_hex(a), 3, '0') || '-' || to_hex(32768 | (b << 6))
                    || '-000000000000' AS uuid) AS id) AS pairs;
-- the first, the last, other versions
SELECT uuidv7_fast_ns(uuidv7_fast_min('1970-01-01')) AS first,
       uuidv7_fast_ns('08637bd0-5af6-7c69-ad3f-ffffffffffff') = 9223372036854775807 AS last,
       uuidv7_fast_ns('08637bd0-5af6-4c69-ad3f-ffffffffffff') IS NULL AS version_4,
       uuidv7_fast_ns('08637bd0-5af6-7c69-edbf-ffffffffffff') IS NULL AS variant;
