-- PostgreSQL 18's names for PostgreSQL 15 to 17, on fast_uuid: uuidv7(), uuidv7(interval),
-- uuidv4(), uuid_extract_timestamp(uuid), uuid_extract_version(uuid).
--
--   psql -d DATABASE -v schema=NAME -f fast_uuid_postgresql_18_names.sql
--
-- creates or replaces them in that schema, which must exist, or says why not and changes
-- nothing.  It needs no superuser, only CREATE on that schema and USAGE on fast_uuid's.

\set ON_ERROR_STOP on
\set ON_ERROR_ROLLBACK off
\if :{?schema} \else \set schema '' \endif

-- What is not qualified is PostgreSQL's own, whatever the schemas contain.
BEGIN;
SET LOCAL search_path = pg_catalog, pg_temp;
SET LOCAL postgresql_18_names.schema = :'schema';

DO $$
DECLARE
  named   text := current_setting('postgresql_18_names.schema');
  target  oid := (SELECT oid FROM pg_namespace WHERE nspname = named);
  another text := (SELECT min(oid::regprocedure::text) FROM pg_proc
                    WHERE pronamespace = target AND pg_get_userbyid(proowner) <> current_user
                      AND proname IN ('uuidv7', 'uuidv4', 'uuid_extract_timestamp', 'uuid_extract_version'));
BEGIN
  IF current_setting('server_version_num')::integer >= 180000 THEN
    RAISE EXCEPTION USING
      MESSAGE = 'PostgreSQL 18 and later have these functions themselves',
      HINT = 'Call them without a schema; nothing has to be created.';
  ELSIF named = '' THEN
    RAISE EXCEPTION USING
      MESSAGE = 'no schema is given',
      HINT = 'Name the schema for the functions: psql -v schema=NAME -f ...';
  ELSIF NOT EXISTS (SELECT FROM pg_extension WHERE extname = 'fast_uuid') THEN
    RAISE EXCEPTION USING
      MESSAGE = format('the database "%s" does not have the extension "fast_uuid"', current_database()),
      HINT = 'Run CREATE EXTENSION fast_uuid in this database first.';
  ELSIF target IS NULL THEN
    RAISE EXCEPTION USING
      MESSAGE = format('schema "%s" does not exist', named),
      DETAIL = 'The name is taken as it is written, without quotes around it.',
      HINT = format('Create it first: CREATE SCHEMA %I', named);
  ELSIF named LIKE 'pg\_%' OR named = 'information_schema' THEN
    RAISE EXCEPTION USING
      MESSAGE = format('schema "%s" is PostgreSQL''s own', named),
      HINT = 'Name a schema of yours.';
  ELSIF another IS NOT NULL THEN
    RAISE EXCEPTION USING
      MESSAGE = format('%s is there already and belongs to another role', another),
      DETAIL = 'Its owner could change it afterwards.',
      HINT = 'Run this as its owner, drop it, or name another schema.';
  END IF;
END $$;

SELECT nspname AS fast_uuid
  FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace
 WHERE extname = 'fast_uuid'
\gset

-- Calls of fast_uuid have all arguments, so that no function beside it fits better.
-- The planner inlines what is not STRICT; the CASE returns NULL for NULL, as in 18.

CREATE OR REPLACE FUNCTION :"schema".uuidv7()
RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL RESTRICTED
RETURN :"fast_uuid".uuidv7_fast();

CREATE OR REPLACE FUNCTION :"schema".uuidv7(shift interval)
RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL RESTRICTED
RETURN CASE WHEN shift IS NOT NULL THEN :"fast_uuid".uuidv7_fast(shift, NULL::text) END;

CREATE OR REPLACE FUNCTION :"schema".uuidv4()
RETURNS uuid
LANGUAGE sql VOLATILE PARALLEL SAFE
RETURN gen_random_uuid();

CREATE OR REPLACE FUNCTION :"schema".uuid_extract_version(uuid)
RETURNS smallint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE WHEN get_byte(uuid_send($1), 8) & 192 = 128 THEN (get_byte(uuid_send($1), 6) >> 4)::smallint END;

-- Version 1 has 60 bits, of which the first are in the middle of the text: units of 100 ns
-- since 1582-10-15, here as days and the microseconds of a day, which a double has exactly.
CREATE OR REPLACE FUNCTION :"schema".uuid_extract_timestamp(uuid)
RETURNS timestamptz
LANGUAGE sql IMMUTABLE PARALLEL SAFE
RETURN CASE :"schema".uuid_extract_version($1)
  WHEN 7 THEN :"fast_uuid".uuidv7_fast_timestamp($1, false)
  WHEN 1 THEN (timestamp '1582-10-15' + make_interval(
    days => (('x' || substr($1::text, 16, 3) || substr($1::text, 10, 4) || left($1::text, 8))::bit(60)::bigint
             / 864000000000)::integer,
    secs => (('x' || substr($1::text, 16, 3) || substr($1::text, 10, 4) || left($1::text, 8))::bit(60)::bigint
             % 864000000000 / 10)::double precision / 1000000)) AT TIME ZONE interval '0'
END;

COMMIT;
