-- Small properties of every function, as tables of cases.
BEGIN;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS fast_uuid;
SET timezone = 'UTC';
SELECT no_plan();

-- What each call gives or raises; the session goes on after each.
SELECT throws_ok(call, state, message, call)
  FROM (VALUES
    ($$SELECT uuidv7_fast(NULL::interval)$$, '22004', 'argument "shift" must not be null'),
    ($$SELECT uuidv7_fast(interval '-100 years')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast(interval '9000 years')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast(interval '1 day', 'typo')$$, '22023', 'unrecognized entropy source "typo"'),
    ($$SELECT uuidv7_fast_at(NULL)$$, '22004', 'argument "ts" must not be null'),
    ($$SELECT uuidv7_fast_at('1969-12-31 23:59:59.999999')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_at('10889-08-02 05:31:50.656')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_at('infinity')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_at('-infinity')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_at(now(), 'typo')$$, '22023', 'unrecognized entropy source "typo"'),
    ($$SELECT uuidv7_fast_min('1969-12-31')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_max('10890-01-01')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_min('infinity')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_max('-infinity')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_array(-1)$$, '22023', 'argument "count" must be between 0 and 67108862'),
    ($$SELECT uuidv7_fast_array(67108863)$$, '22023', 'argument "count" must be between 0 and 67108862'),
    ($$SELECT uuidv7_fast_array(NULL)$$, '22004', 'argument "count" must not be null'),
    ($$SELECT uuidv7_fast_set(-1)$$, '22023', 'argument "count" must not be negative'),
    ($$SELECT uuidv7_fast_set(NULL)$$, '22004', 'argument "count" must not be null'),
    ($$SELECT fast_uuid_benchmark(0)$$, '22023', 'argument "milliseconds" must be between 1 and 10000'),
    ($$SET fast_uuid.allowed_sources = 'typo'$$, '22023', 'invalid value for parameter "fast_uuid.allowed_sources": "typo"')
  ) AS cases (call, state, message);

SELECT is(uuidv7_fast_timestamp(id), time, coalesce(what, id::text))
  FROM (VALUES
    ('017F22E2-79B0-7CC3-98C4-DC0C0C07398F'::uuid, timestamptz '2022-02-22 19:22:22+00', 'RFC 9562, appendix A.6'),
    ('00000000-0000-7000-8000-000000000000', '1970-01-01', 'the first'),
    ('ffffffff-ffff-7fff-bfff-ffffffffffff', '10889-08-02 05:31:50.655', 'the last'),
    ('C232AB00-9414-11EC-B3C8-9F6BDECED846', NULL, 'version 1'),
    ('919108f7-52d1-4320-9bac-f847db4148a8', NULL, 'version 4'),
    ('1EC9414C-232A-6B00-B3C8-9F6BDECED846', NULL, 'version 6'),
    ('2489E9AD-2EE2-8E00-8EC9-32D5F69181C0', NULL, 'version 8'),
    ('017F22E2-79B0-7CC3-18C4-DC0C0C07398F', NULL, 'variant 0'),
    ('017F22E2-79B0-7CC3-58C4-DC0C0C07398F', NULL, 'variant 1'),
    ('017F22E2-79B0-7CC3-D8C4-DC0C0C07398F', NULL, 'variant 3'),
    (NULL, NULL, 'null')
  ) AS cases (id, time, what);

SELECT is(ARRAY[uuidv7_fast_min(ts), uuidv7_fast_max(ts)], bounds, ts::text)
  FROM (VALUES
    (timestamptz '1970-01-01', ARRAY['00000000-0000-7000-8000-000000000000', '00000000-0000-7fff-bfff-ffffffffffff']::uuid[]),
    ('2022-02-22 19:22:22.000999', ARRAY['017f22e2-79b0-7000-8000-000000000000', '017f22e2-79b0-7fff-bfff-ffffffffffff']::uuid[]),
    ('10888-12-31', ARRAY['fffbb0bf-4800-7000-8000-000000000000', 'fffbb0bf-4800-7fff-bfff-ffffffffffff']::uuid[]),
    ('10889-08-02 05:31:50.655999', ARRAY['ffffffff-ffff-7000-8000-000000000000', 'ffffffff-ffff-7fff-bfff-ffffffffffff']::uuid[])
  ) AS cases (ts, bounds);

SELECT is(uuidv7_fast_timestamp(uuidv7_fast_at(ts), true), ts, 'given and read back: ' || ts)
  FROM unnest(ARRAY['1970-01-01', '1970-01-01 00:00:00.000001', '1999-12-31 23:59:59.999999', '2026-11-20 01:02:03.456789',
                    '2554-07-21 23:34:33.709551', '10889-08-02 05:31:50.655999']::timestamptz[]) AS ts;

SELECT ok(uuidv7_fast_timestamp(id) BETWEEN date_trunc('milliseconds', statement_timestamp() + shift)
                                        AND clock_timestamp() + shift, 'shifted by ' || shift)
  FROM unnest(ARRAY['0', '1 s', '-1 s', '1 month', '-50 years', '8000 years']::interval[]) AS shift,
       LATERAL (SELECT uuidv7_fast(shift) AS id) AS made;

SELECT is(cardinality(uuidv7_fast_array(size)), size, 'array of ' || size)
  FROM unnest(ARRAY[0, 1, 255, 256, 257, 100000]) AS size;
SELECT is((SELECT count(DISTINCT id) FROM uuidv7_fast_set(size) AS id), size, 'set of ' || size)
  FROM unnest(ARRAY[0, 1, 255, 256, 257, 100000]::bigint[]) AS size;

SELECT volatility_is(name, 'volatile') FROM unnest(ARRAY['uuidv7_fast_at', 'uuidv7_fast_array', 'uuidv7_fast_set']) AS name;
SELECT volatility_is(name, 'immutable') FROM unnest(ARRAY['uuidv7_fast_min', 'uuidv7_fast_max', 'uuidv7_fast_timestamp']) AS name;
SELECT is_strict(name) FROM unnest(ARRAY['uuidv7_fast_min', 'uuidv7_fast_max', 'uuidv7_fast_timestamp']) AS name;
SELECT function_privs_are('fast_uuid_benchmark', ARRAY['integer'], 'public', ARRAY[]::text[]);
SELECT function_privs_are('fast_uuid_sources', ARRAY[]::text[], 'public', ARRAY['EXECUTE']);
SELECT is((SELECT prorows::bigint FROM pg_proc WHERE proname = 'fast_uuid_sources'), (SELECT count(*) FROM fast_uuid_sources()),
          'the planner knows the rows of fast_uuid_sources');
SELECT is((SELECT prorows::bigint FROM pg_proc WHERE proname = 'fast_uuid_stats'), (SELECT count(*) FROM fast_uuid_stats()),
          'the planner knows the rows of fast_uuid_stats');

-- the allowlist, for every source
SELECT set_config('fast_uuid.allowed_sources', 'openssl', true);
SELECT throws_ok(format('SELECT uuidv7_fast(%L)', source), '42501',
                 format('entropy source "%s" is not allowed', source), source || ' as argument')
  FROM unnest(ARRAY['getrandom', 'urandom', 'xorshift128+']) AS source;
SELECT lives_ok('SELECT uuidv7_fast()', 'the allowed source still works');

SELECT * FROM finish();
ROLLBACK;
