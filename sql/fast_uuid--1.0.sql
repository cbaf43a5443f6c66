\echo Use "CREATE EXTENSION fast_uuid" to load this file. \quit

-- One value

CREATE FUNCTION uuidv7_fast()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast() IS
'version 7 UUID of now, greater than all earlier ones of this session';

CREATE FUNCTION uuidv7_fast(source text)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_from'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast(text) IS
'version 7 UUID of now from this entropy source, greater than all earlier ones of this session';

CREATE FUNCTION uuidv7_fast(shift interval, source text DEFAULT NULL)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_shift'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast(interval, text) IS
'version 7 UUID of now shifted by an interval, outside the order';

CREATE FUNCTION uuidv7_fast_at(ts timestamptz, source text DEFAULT NULL)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_at'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_at(timestamptz, text) IS
'version 7 UUID of a given time, outside the order';

-- Many values

CREATE FUNCTION uuidv7_fast_array(count integer, source text DEFAULT NULL)
RETURNS uuid[]
AS 'MODULE_PATHNAME', 'uuidv7_fast_array'
LANGUAGE C VOLATILE PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_array(integer, text) IS
'array of version 7 UUIDs of now, ascending';

CREATE FUNCTION uuidv7_fast_set_support(internal)
RETURNS internal
AS 'MODULE_PATHNAME', 'uuidv7_fast_set_support'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_set_support(internal) IS
'for the planner: number of rows of uuidv7_fast_set';

CREATE FUNCTION uuidv7_fast_set(count bigint, source text DEFAULT NULL)
RETURNS SETOF uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_set'
LANGUAGE C VOLATILE PARALLEL SAFE
SUPPORT uuidv7_fast_set_support;

COMMENT ON FUNCTION uuidv7_fast_set(bigint, text) IS
'version 7 UUIDs of now as rows, ascending';

-- Times in and out

CREATE FUNCTION uuidv7_fast_min(ts timestamptz)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_min'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_min(timestamptz) IS
'smallest version 7 UUID of the millisecond of this time, for ranges';

CREATE FUNCTION uuidv7_fast_max(ts timestamptz)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_max'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_max(timestamptz) IS
'largest version 7 UUID of the millisecond of this time, for ranges';

CREATE FUNCTION uuidv7_fast_timestamp(id uuid, sub_ms boolean DEFAULT false)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'uuidv7_fast_timestamp'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_timestamp(uuid, boolean) IS
'time of a version 7 UUID to the millisecond, or with sub_ms to the microsecond, NULL for other versions';

-- For the DBA.  These look at the session that calls them, so that a parallel
-- worker, which is another, must not run them.

CREATE FUNCTION fast_uuid_sources(
  OUT name text, OUT cryptographic boolean, OUT available boolean, OUT allowed boolean,
  OUT current boolean, OUT implementation text, OUT why_not text)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_sources'
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 4;

COMMENT ON FUNCTION fast_uuid_sources() IS
'entropy sources: whether each can be used here, how it is implemented, or why not';

CREATE FUNCTION fast_uuid_stats(
  OUT kind text, OUT name text, OUT refills bigint, OUT bytes bigint,
  OUT set_backs bigint, OUT lead interval, OUT largest_lead interval)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_stats'
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 6;

COMMENT ON FUNCTION fast_uuid_stats() IS
'random bytes this session fetched from each source, and how far values have been ahead of the clock';

CREATE FUNCTION fast_uuid_reset_ordering()
RETURNS void
AS 'MODULE_PATHNAME', 'fast_uuid_reset_ordering'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION fast_uuid_reset_ordering() FROM PUBLIC;

COMMENT ON FUNCTION fast_uuid_reset_ordering() IS
'go back to the clock: forget the latest value of the session, under cluster order also of the instance';

CREATE FUNCTION fast_uuid_benchmark(
  milliseconds integer DEFAULT 20,
  OUT source text, OUT implementation text, OUT bytes integer,
  OUT ns_per_request double precision, OUT mb_per_second double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_benchmark'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 20;

REVOKE ALL ON FUNCTION fast_uuid_benchmark(integer) FROM PUBLIC;

COMMENT ON FUNCTION fast_uuid_benchmark(integer) IS
'speed of each entropy source on this machine, by implementation and size of request';
