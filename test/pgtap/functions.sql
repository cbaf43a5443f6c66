-- What every function raises, as a table, and the rows that the planner expects of some; at
-- which arguments is in test/sql/arguments.sql.
BEGIN;
CREATE EXTENSION IF NOT EXISTS pgtap;
CREATE EXTENSION IF NOT EXISTS fast_uuid;
SET timezone = 'UTC';
SELECT no_plan();

-- What each call gives or raises; the session goes on after each.
SELECT throws_ok(call, state, message, call)
  FROM (VALUES
    ($$SELECT uuidv7_fast(interval '-100 years')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast('typo')$$, '22023', 'unrecognized entropy source "typo"'),
    ($$SELECT uuidv7_fast(interval '1 day', 'typo')$$, '22023', 'unrecognized entropy source "typo"'),
    ($$SELECT uuidv7_fast_at('1969-12-31 23:59:59.999999')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_at('infinity')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_at(now(), 'typo')$$, '22023', 'unrecognized entropy source "typo"'),
    ($$SELECT uuidv7_fast_min('1969-12-31')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_array(-1)$$, '22023', 'argument "count" must be between 0 and 67108862'),
    ($$SELECT uuidv7_fast_array(67108863)$$, '22023', 'argument "count" must be between 0 and 67108862'),
    ($$SELECT uuidv7_fast_array(0, 'typo')$$, '22023', 'unrecognized entropy source "typo"'),
    ($$SELECT uuidv7_fast_max('10889-08-02 05:31:50.656')$$, '22008', 'timestamp out of range for UUID version 7'),
    ($$SELECT uuidv7_fast_ns('08637bd0-5af6-7c69-ad40-000000000000')$$, '22008', 'time of the UUID is out of range for type bigint'),
    ($$SELECT uuidv7_fast_ns('ffffffff-ffff-7fff-bfff-ffffffffffff')$$, '22008', 'time of the UUID is out of range for type bigint'),
    ($$SELECT fast_uuid_benchmark(0)$$, '22023', 'argument "milliseconds" must be between 1 and 10000'),
    ($$SELECT fast_uuid_benchmark(10001)$$, '22023', 'argument "milliseconds" must be between 1 and 10000'),
    ($$SET fast_uuid.allowed_sources = 'typo'$$, '22023', 'invalid value for parameter "fast_uuid.allowed_sources": "typo"')
  ) AS cases (call, state, message);

SELECT ok(prorows BETWEEN 1 AND 8, proname || ': the planner expects a few rows')
  FROM pg_proc WHERE proname = 'fast_uuid_sources';

SELECT * FROM finish();
ROLLBACK;
