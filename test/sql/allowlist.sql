-- fast_uuid.allowed_sources: a DBA's allowlist, and what an attacker gets past it.
CREATE FUNCTION pg_temp.try(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  EXECUTE command;
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' / ', SQLSTATE || ' ' || SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT uuidv7_fast() IS NOT NULL AS library_loaded;
-- A build without OpenSSL has another source in its place.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset
SHOW fast_uuid.allowed_sources;

-- several values, as for any list
SET fast_uuid.allowed_sources = openssl, 'getrandom';
SHOW fast_uuid.allowed_sources;

-- inside and outside, by setting and by argument, for every generator
SELECT source, pg_temp.try(format('SET fast_uuid.source = %L', replace(source, 'openssl', :'openssl'))) AS setting,
       pg_temp.try(format('SELECT uuidv7_fast(%L)', replace(source, 'openssl', :'openssl'))) AS argument
  FROM unnest(ARRAY['openssl', 'getrandom', 'urandom', 'xorshift128+']) AS source;
SELECT call, pg_temp.try(format('SELECT %s', format(call, 'urandom'))) AS outside,
       pg_temp.try(format('SELECT %s', format(call, :'openssl'))) AS inside
  FROM unnest(ARRAY['uuidv7_fast(interval ''1 h'', %L)', 'uuidv7_fast_at(now(), %L)', 'uuidv7_fast_array(3, %L)',
                    'uuidv7_fast_set(3, %L)']) AS call;
-- what was chosen, and buffered, before the list was made shorter is refused as well
RESET fast_uuid.allowed_sources;
SET fast_uuid.source = 'urandom';
SELECT uuidv7_fast() IS NOT NULL AS made;
SET fast_uuid.allowed_sources = 'openssl, getrandom';
SELECT pg_temp.try('SELECT uuidv7_fast()');
SELECT uuidv7_fast(:'openssl') IS NOT NULL AS made;
SET fast_uuid.allowed_sources = '';
SELECT pg_temp.try('SELECT uuidv7_fast()');
RESET fast_uuid.allowed_sources;
SELECT uuidv7_fast() IS NOT NULL AS made;
RESET fast_uuid.source;
SELECT name, allowed, reason FROM fast_uuid_sources() WHERE name <> 'openssl' ORDER BY name;
BEGIN;
SET LOCAL fast_uuid.allowed_sources = 'getrandom, openssl';
SELECT name, allowed, reason FROM fast_uuid_sources() WHERE name <> 'openssl' ORDER BY name;
SELECT allowed, current, reason FROM fast_uuid_sources() WHERE name = :'openssl';
ROLLBACK;

-- A function that hands out secrets with the rights of its owner, and an
-- attacker who calls it.  (What he sets before the library is loaded: unloaded.sql.)
CREATE ROLE regress_fast_uuid_attacker;
CREATE FUNCTION hand_out() RETURNS uuid LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS 'SELECT uuidv7_fast()';
CREATE FUNCTION hand_out_hardened() RETURNS uuid LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp SET fast_uuid.source = :'openssl' AS 'SELECT uuidv7_fast()';
CREATE VIEW used AS SELECT replace(string_agg(name, ',' ORDER BY name), :'openssl', 'openssl') AS sources
  FROM fast_uuid_sources() WHERE refills > 0;
GRANT SELECT ON used TO regress_fast_uuid_attacker;

-- Without an allowlist: the attacker chooses the generator, but never its seed; a
-- function that sets the source itself is not concerned.
\c -
LOAD 'fast_uuid';
SET ROLE regress_fast_uuid_attacker;
SET fast_uuid.source = 'xorshift128+';
SET fast_uuid.seed = '1';
SELECT hand_out_hardened() IS NOT NULL AS made;
SELECT * FROM used;
SELECT hand_out() IS NOT NULL AS made;
SELECT * FROM used;
RESET ROLE;
SELECT current_setting('fast_uuid.seed') = '' AS unseeded;

-- With an allowlist: neither by the settings, nor by argument.
\c -
LOAD 'fast_uuid';
SET fast_uuid.allowed_sources = 'openssl, getrandom';
SET ROLE regress_fast_uuid_attacker;
SHOW fast_uuid.allowed_sources;
SET fast_uuid.source = 'xorshift128+';
SET fast_uuid.allowed_sources = 'xorshift128+';
SET fast_uuid.seed = '1';
RESET fast_uuid.allowed_sources;
SELECT uuidv7_fast('xorshift128+');
RESET fast_uuid.source;
SELECT hand_out() IS NOT NULL AS made;
SELECT * FROM used;
RESET ROLE;

DROP VIEW used;
DROP FUNCTION hand_out(), hand_out_hardened();
DROP ROLE regress_fast_uuid_attacker;
