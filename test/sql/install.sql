-- What is installed, that a role which is no superuser may install it, and that it can be moved.
\set ECHO none
-- Each member; of functions volatility, parallel safety, whether they are strict, leakproof,
-- security definers, and for PUBLIC; where the library is (dynamic_library_path says it); the comments.
SELECT member,
       concat_ws(' ', provolatile, proparallel, CASE WHEN proisstrict THEN 'strict' END,
                 CASE WHEN proleakproof THEN 'leakproof' END,
                 CASE WHEN prosecdef THEN 'definer' END,
                 CASE WHEN has_function_privilege('public', p.oid, 'EXECUTE') THEN 'public' END,
                 nullif(probin, 'fast_uuid')) AS properties,
       obj_description(objid, classid::regclass::name) AS comment
  FROM pg_depend JOIN pg_extension AS e ON e.oid = refobjid AND extname = 'fast_uuid'
  LEFT JOIN pg_proc AS p ON p.oid = objid AND classid = 'pg_proc'::regclass,
       pg_describe_object(classid, objid, 0) AS member
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e' ORDER BY member COLLATE "C";
SELECT extname, extrelocatable, obj_description(oid) AS comment
  FROM pg_extension WHERE extname = 'fast_uuid';

-- A role that is no superuser may install it into its database; more is in test/t/install.
DROP EXTENSION fast_uuid;
CREATE ROLE regress_fast_uuid_owner;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_fast_uuid_owner', current_database()) \gexec
SET ROLE regress_fast_uuid_owner;
CREATE SCHEMA regress_fast_uuid_one;
CREATE EXTENSION fast_uuid SCHEMA regress_fast_uuid_one;
SELECT extowner::regrole, extnamespace::regnamespace FROM pg_extension WHERE extname = 'fast_uuid';
CREATE TABLE regress_fast_uuid_one.item (
  id uuid PRIMARY KEY DEFAULT regress_fast_uuid_one.uuidv7_fast(), name text);
INSERT INTO regress_fast_uuid_one.item (name) VALUES ('owner''s');
RESET ROLE;

-- It can be moved to another schema, and a default moves with it.
CREATE SCHEMA regress_fast_uuid_other;
ALTER EXTENSION fast_uuid SET SCHEMA regress_fast_uuid_other;
INSERT INTO regress_fast_uuid_one.item (name) VALUES ('moved');
SELECT name, id IS NOT NULL AS made FROM regress_fast_uuid_one.item ORDER BY id;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef
 WHERE adrelid = 'regress_fast_uuid_one.item'::regclass;

SET client_min_messages = warning;
DROP SCHEMA regress_fast_uuid_one, regress_fast_uuid_other CASCADE;
SELECT format('REVOKE CREATE ON DATABASE %I FROM regress_fast_uuid_owner', current_database())
\gexec
DROP ROLE regress_fast_uuid_owner;
CREATE EXTENSION fast_uuid;
