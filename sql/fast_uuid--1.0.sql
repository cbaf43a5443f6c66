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

-- Feeds: one order of all sessions, over restarts

-- The upper bound of feed ids.  pg_upgrade carries it over; a dump does not.  By this
-- increment nextval() moves none that was set.
CREATE SEQUENCE fast_uuid_upper_bound INCREMENT BY 9223372036854775807;

REVOKE ALL ON SEQUENCE fast_uuid_upper_bound FROM PUBLIC;

COMMENT ON SEQUENCE fast_uuid_upper_bound IS
'time up to which feed ids may have been generated, in microseconds since 1970-01-01 UTC; do not change';

CREATE FUNCTION uuidv7_feed_id()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_feed_id'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_id() IS
'generate a version 7 UUID greater than all feed ids and positions of all sessions before';

CREATE FUNCTION uuidv7_feed_id(source text)
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_feed_id_from'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_id(text) IS
'generate a version 7 UUID from a given entropy source, greater than all feed ids and positions of all sessions before';

CREATE FUNCTION uuidv7_feed_position()
RETURNS bigint
AS 'MODULE_PATHNAME', 'uuidv7_feed_position'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_position() IS
'generate a number greater than all feed ids and positions of all sessions before: nanoseconds since 1970-01-01 UTC';

CREATE FUNCTION uuidv7_feed_watermark()
RETURNS uuid
AS 'MODULE_PATHNAME', 'uuidv7_feed_watermark'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_watermark() IS
'bound for the calling statement, which misses no row with a smaller feed id';

CREATE FUNCTION uuidv7_feed_position_watermark()
RETURNS bigint
AS 'MODULE_PATHNAME', 'uuidv7_feed_position_watermark'
LANGUAGE C STABLE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_position_watermark() IS
'bound for the calling statement, which misses no row with a smaller position';

CREATE FUNCTION uuidv7_feed_wait(seen bigint, timeout interval DEFAULT '1 s')
RETURNS bigint
AS 'MODULE_PATHNAME', 'uuidv7_feed_wait'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_wait(bigint, interval) IS
'wait for the end of a transaction with feed ids or positions, and return how many have ended';

CREATE FUNCTION uuidv7_feed_stamp()
RETURNS trigger
AS 'MODULE_PATHNAME', 'uuidv7_feed_stamp'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_stamp() IS
'trigger that sets a column to a new feed id or position with each INSERT and UPDATE';

CREATE FUNCTION uuidv7_feed_guard()
RETURNS trigger
AS 'MODULE_PATHNAME', 'uuidv7_feed_guard'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

COMMENT ON FUNCTION uuidv7_feed_guard() IS
'trigger that refuses an id which readers below the watermark could miss';

CREATE FUNCTION uuidv7_feed_observe(id uuid)
RETURNS void
AS 'MODULE_PATHNAME', 'uuidv7_feed_observe'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION uuidv7_feed_observe(uuid) FROM PUBLIC;

COMMENT ON FUNCTION uuidv7_feed_observe(uuid) IS
'make further feed ids and positions of all sessions greater than a given version 7 UUID, which can be from any generator';

CREATE FUNCTION uuidv7_feed_position_observe("position" bigint)
RETURNS void
AS 'MODULE_PATHNAME', 'uuidv7_feed_position_observe'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION uuidv7_feed_position_observe(bigint) FROM PUBLIC;

COMMENT ON FUNCTION uuidv7_feed_position_observe(bigint) IS
'make further feed ids and positions of all sessions greater than a given position';

CREATE FUNCTION uuidv7_feed_reset()
RETURNS void
AS 'MODULE_PATHNAME', 'uuidv7_feed_reset'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

REVOKE ALL ON FUNCTION uuidv7_feed_reset() FROM PUBLIC;

COMMENT ON FUNCTION uuidv7_feed_reset() IS
'return to the clock: forget the latest feed id of the instance, and the upper bound of this database';

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

CREATE FUNCTION fast_uuid_stats(
  OUT name text, OUT clock_lead interval, OUT largest_clock_lead interval,
  OUT held_back_by integer, OUT upper_bound timestamptz)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_stats'
LANGUAGE C VOLATILE PARALLEL RESTRICTED ROWS 1;

COMMENT ON FUNCTION fast_uuid_stats() IS
'statistics of the feed: how far ids are ahead of the clock, what holds the watermark back, the upper bound';

CREATE FUNCTION fast_uuid_benchmark(
  milliseconds integer DEFAULT 20,
  OUT source text, OUT implementation text, OUT bytes integer,
  OUT ns_per_request double precision, OUT mb_per_second double precision)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'fast_uuid_benchmark'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 30;

COMMENT ON FUNCTION fast_uuid_benchmark(integer) IS
'measure the speed of each entropy source on this machine';

-- Default privileges may have granted what is not for PUBLIC to other roles.  This runs as
-- a superuser in a schema of the creator's choice, who could provide better matches for
-- the operators and functions, were they not qualified.
DO $$
DECLARE
  command text;
BEGIN
  FOR command IN
    SELECT pg_catalog.format('REVOKE ALL ON FUNCTION %s FROM %s', p.oid::regprocedure, a.grantee::regrole)
      FROM pg_catalog.pg_proc AS p, pg_catalog.aclexplode(p.proacl) AS a
     WHERE p.oid OPERATOR(pg_catalog.=) ANY (
             '{uuidv7_feed_observe(uuid),uuidv7_feed_position_observe(bigint),uuidv7_feed_reset()}'::regprocedure[])
       AND a.grantee OPERATOR(pg_catalog.<>) p.proowner
    UNION
    SELECT pg_catalog.format('REVOKE ALL ON SEQUENCE %s FROM %s', c.oid::regclass, a.grantee::regrole)
      FROM pg_catalog.pg_class AS c, pg_catalog.aclexplode(c.relacl) AS a
     WHERE c.oid OPERATOR(pg_catalog.=) 'fast_uuid_upper_bound'::regclass
       AND a.grantee OPERATOR(pg_catalog.<>) c.relowner
  LOOP
    EXECUTE command;
  END LOOP;
END $$;

GRANT SELECT ON SEQUENCE fast_uuid_upper_bound TO PUBLIC;
