-- The settings: defaults, bounds, scopes, and what a typo does.
SELECT uuidv7_fast() IS NOT NULL AS library_loaded;
-- A build without OpenSSL has another default.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset

SELECT name, CASE setting WHEN :'openssl' THEN 'openssl' ELSE setting END AS setting, unit, context, vartype,
       min_val, max_val, enumvals, CASE boot_val WHEN :'openssl' THEN 'openssl' ELSE boot_val END AS boot_val,
       short_desc, extra_desc
  FROM pg_settings WHERE name LIKE 'fast\_uuid.%' ORDER BY name \gx

SHOW fast_uuid.buffer_size;
SET fast_uuid.source = 'XorShift128+';
SHOW fast_uuid.source;
RESET fast_uuid.source;
SELECT current_setting('fast_uuid.source') = :'openssl' AS default_again;
SET fast_uuid.ordering = 'Session';
SHOW fast_uuid.ordering;
RESET fast_uuid.ordering;

-- SET LOCAL ends with the transaction
BEGIN;
SET LOCAL fast_uuid.source = 'urandom';
SET LOCAL fast_uuid.buffer_size = '64kB';
SET LOCAL fast_uuid.vdso = off;
SET LOCAL fast_uuid.seed = '42';
SHOW fast_uuid.source;
SELECT uuidv7_fast() IS NOT NULL AS made;
COMMIT;
SELECT current_setting('fast_uuid.source') = :'openssl' AS default_source, current_setting('fast_uuid.buffer_size') AS buffer_size,
       current_setting('fast_uuid.vdso') AS vdso, current_setting('fast_uuid.seed') AS seed;

-- a function's own setting ends with the call
CREATE FUNCTION pg_temp.hardened() RETURNS text LANGUAGE plpgsql
  SET fast_uuid.source = 'urandom'
  AS $$ BEGIN PERFORM uuidv7_fast(); RETURN current_setting('fast_uuid.source'); END $$;
SELECT pg_temp.hardened() AS inside, current_setting('fast_uuid.source') = :'openssl' AS default_outside;

-- bad values are refused, and the setting stays
\pset format unaligned
\pset tuples_only on
-- (servers write the bounds in parentheses differently)
CREATE FUNCTION pg_temp.try(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  EXECUTE command;
  RETURN 'accepted: ' || command;
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n  ', SQLSTATE || ' ' || regexp_replace(SQLERRM, ' \(.*\)$', ''), nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT pg_temp.try(format('SET fast_uuid.%s = %L', name, value))
  FROM (VALUES (1, 'source', 'typo'), (2, 'source', ''), (3, 'source', 'openssl '),
               (4, 'buffer_size', '-1'), (5, 'buffer_size', '65537'), (6, 'buffer_size', '65kB'),
               (7, 'buffer_size', 'many'), (8, 'buffer_size', '0'), (9, 'buffer_size', '64kB'),
               (10, 'vdso', 'maybe'), (11, 'vdso', 'no'),
               (20, 'seed', 'abc'), (21, 'seed', '-1'), (22, 'seed', ' 1'), (23, 'seed', '1 '),
               (24, 'seed', '18446744073709551616'), (25, 'seed', '0x'), (26, 'seed', '0x1ffffffffffffffff'),
               (27, 'seed', '0xgg'), (28, 'seed', '1.5'), (29, 'seed', '18446744073709551615'),
               (30, 'seed', '0xFFFFFFFFFFFFFFFF'), (31, 'seed', '0'), (32, 'seed', ''),
               (33, 'nothing', '1')) AS tried (n, name, value) ORDER BY n;
RESET ALL;
\pset format aligned
\pset tuples_only off

-- who may set what
CREATE ROLE regress_fast_uuid_user;
SET ROLE regress_fast_uuid_user;
SET fast_uuid.source = 'getrandom';
SET fast_uuid.buffer_size = 0;
SET fast_uuid.vdso = off;
\set VERBOSITY sqlstate
SET fast_uuid.seed = '1';
SHOW fast_uuid.seed;
\set VERBOSITY default
SELECT count(*) FROM pg_settings WHERE name = 'fast_uuid.seed' AND setting IS NOT NULL;
RESET ROLE;
RESET ALL;

-- nor a seed for all sessions
ALTER SYSTEM SET fast_uuid.seed = '1';

-- per database and per role, in a new session, before and after the library is loaded
SELECT current_database() AS database, current_user AS superuser \gset
ALTER DATABASE :"database" SET fast_uuid.source = 'getrandom';
ALTER ROLE regress_fast_uuid_user SET fast_uuid.source = 'xorshift128+';
ALTER ROLE regress_fast_uuid_user SET fast_uuid.buffer_size = '1kB';
ALTER ROLE :"superuser" IN DATABASE :"database" SET fast_uuid.buffer_size = '2kB';
ALTER ROLE regress_fast_uuid_user SET fast_uuid.source = 'typo';
\c -
SHOW fast_uuid.source;
SELECT uuidv7_fast() IS NOT NULL AS made;
SHOW fast_uuid.source;
SHOW fast_uuid.buffer_size;
SELECT setconfig FROM pg_db_role_setting WHERE setrole = 'regress_fast_uuid_user'::regrole;
ALTER DATABASE :"database" RESET fast_uuid.source;
ALTER ROLE :"superuser" IN DATABASE :"database" RESET ALL;
DROP ROLE regress_fast_uuid_user;
