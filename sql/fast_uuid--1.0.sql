\echo Use "CREATE EXTENSION fast_uuid" to load this file. \quit

-- One key.  It belongs to the session's order, which a parallel worker does not have: what
-- generates is PARALLEL RESTRICTED, as random() is.

CREATE FUNCTION uuidv7_fast()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_fast() IS
'generate a version 7 UUID for the current time, greater than all earlier keys of this session';

CREATE FUNCTION uuidv7_fast(source text)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_from'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_fast(text) IS
'generate a version 7 UUID for the current time from a given entropy source, greater than all earlier keys of this session';

CREATE FUNCTION uuidv7_fast(shift interval, source text DEFAULT NULL)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_shift'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_fast(interval, text) IS
'generate a version 7 UUID for the current time shifted by an interval; not monotonic';

CREATE FUNCTION uuidv7_fast_at(ts timestamptz, source text DEFAULT NULL)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_at'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_fast_at(timestamptz, text) IS
'generate a version 7 UUID for a given time; not monotonic';

-- Many values

CREATE FUNCTION uuidv7_fast_array(count integer, source text DEFAULT NULL)
RETURNS uuid[]
AS 'MODULE_PATHNAME', 'uuidv7_fast_array'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_fast_array(integer, text) IS
'generate an array of version 7 UUIDs for the current time, ascending';

-- Times in and out

CREATE FUNCTION uuidv7_fast_min(ts timestamptz)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_min'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_min(timestamptz) IS
'smallest version 7 UUID of the millisecond of a given time, of any generator';

CREATE FUNCTION uuidv7_fast_max(ts timestamptz)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_fast_max'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_max(timestamptz) IS
'largest version 7 UUID of the millisecond of a given time, of any generator';

CREATE FUNCTION uuidv7_fast_timestamp(id uuid, sub_ms boolean DEFAULT false)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'uuidv7_fast_timestamp'
LANGUAGE C IMMUTABLE STRICT LEAKPROOF PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_timestamp(uuid, boolean) IS
'extract the time of a version 7 UUID, to the millisecond, or with sub_ms to the microsecond';

CREATE FUNCTION uuidv7_fast_ns(id uuid)
RETURNS bigint
AS 'MODULE_PATHNAME', 'uuidv7_fast_ns'
LANGUAGE C IMMUTABLE STRICT PARALLEL SAFE;

COMMENT ON FUNCTION uuidv7_fast_ns(uuid) IS
'extract the time of a version 7 UUID, in nanoseconds since 1970-01-01 UTC';

-- For the DBA.  These look at the session that calls them, and a parallel worker
-- is another one.

CREATE FUNCTION fast_uuid_sources(
  OUT name text, OUT cryptographic boolean, OUT available boolean, OUT allowed boolean,
  OUT current boolean, OUT implementation text, OUT reason text, OUT refills bigint, OUT bytes bigint)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_sources'
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 8;

COMMENT ON FUNCTION fast_uuid_sources() IS
'the entropy sources, and what this session has fetched from them';

CREATE FUNCTION fast_uuid_benchmark(
  milliseconds integer DEFAULT 20,
  OUT source text, OUT implementation text, OUT bytes integer,
  OUT ns_per_request double precision, OUT mb_per_second double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_benchmark'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 30;

COMMENT ON FUNCTION fast_uuid_benchmark(integer) IS
'measure the speed of each entropy source on this machine';
