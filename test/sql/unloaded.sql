-- What is set before the library is loaded: the server keeps it unchecked until then.  Where the
-- library is preloaded there is no such time, and unloaded_1.out is expected.
\set ECHO none
\c -
SELECT count(*) > 0 AS loaded FROM pg_settings WHERE name = 'fast_uuid.source' \gset
\if :loaded
  \quit
\endif

\set SHOW_CONTEXT never
-- of a setting that everybody may set, a wrong value is dropped with a warning
SET fast_uuid.source = 'typo';
SET fast_uuid.sauce = 'openssl';
SET fast_uuid.buffer_size = 'typo';
SET fast_uuid.seed = 'abc';
SELECT uuidv7_fast() IS NOT NULL AS made;
SELECT count(*) AS kept FROM pg_settings WHERE name LIKE 'fast\_uuid.%' AND source <> 'default';
SHOW fast_uuid.sauce;
-- of one that protects others, any value is an error of each call
\c -
SET fast_uuid.allowed_sources = '';
SELECT uuidv7_fast() IS NOT NULL AS made;
SELECT uuidv7_fast_at(now()) IS NOT NULL AS made;
RESET fast_uuid.allowed_sources;
SELECT uuidv7_fast('getrandom') IS NOT NULL AS made_in_the_end;

-- What is right is taken over, but not what only a superuser may set: by an attacker who calls
-- a function that hands out secrets with the rights of its owner.
CREATE FUNCTION hand_out() RETURNS uuid LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS 'SELECT uuidv7_fast()';
CREATE ROLE regress_fast_uuid_user;
\c -
SET ROLE regress_fast_uuid_user;
SET fast_uuid.source = 'xorshift128+';
SET fast_uuid.seed = '1';
SELECT hand_out() IS NOT NULL AS made;
RESET ROLE;
SELECT name, current, implementation FROM fast_uuid_sources() WHERE refills > 0;
DROP FUNCTION hand_out();
DROP ROLE regress_fast_uuid_user;
