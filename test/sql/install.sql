-- How the extension is installed, labelled and moved.
SELECT extname, extrelocatable FROM pg_extension WHERE extname = 'fast_uuid';

-- generators are volatile, parallel restricted, callable by everybody, not strict
SELECT oid::regprocedure AS function, provolatile, proparallel, proisstrict, prosecdef,
       proacl IS NULL AS for_public
  FROM pg_proc WHERE proname ~ '^(uuidv7_fast|fast_uuid)' ORDER BY 1;

-- what \df+ and \dx say
SELECT oid::regprocedure || ': ' || coalesce(obj_description(oid), '(nothing)') AS comment
  FROM pg_proc WHERE proname ~ '^(uuidv7_fast|fast_uuid)' ORDER BY oid;
SELECT obj_description(oid) AS comment FROM pg_extension WHERE extname = 'fast_uuid';
SELECT obj_description('fast_uuid_upper_bound'::regclass) AS comment;

-- the library has no directory in the catalog: dynamic_library_path says where it is
SELECT DISTINCT probin FROM pg_proc WHERE proname ~ '^(uuidv7_fast|fast_uuid)';

-- every object belongs to the extension
SELECT pg_describe_object(classid, objid, 0) AS member
  FROM pg_depend
 WHERE refclassid = 'pg_extension'::regclass AND deptype = 'e'
   AND refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fast_uuid')
 ORDER BY 1;

-- a role that is no superuser may install it into its database and use it
DROP EXTENSION fast_uuid;
CREATE ROLE regress_fast_uuid_owner;
CREATE ROLE regress_fast_uuid_guest;
SELECT format('GRANT CREATE ON DATABASE %I TO regress_fast_uuid_owner', current_database()) \gexec
SET ROLE regress_fast_uuid_guest;
CREATE EXTENSION fast_uuid;
SET ROLE regress_fast_uuid_owner;
CREATE SCHEMA regress_fast_uuid_schema;
CREATE EXTENSION fast_uuid SCHEMA regress_fast_uuid_schema;
SELECT extowner::regrole, extnamespace::regnamespace FROM pg_extension WHERE extname = 'fast_uuid';
CREATE TABLE regress_fast_uuid_schema.item (
  id uuid PRIMARY KEY DEFAULT regress_fast_uuid_schema.uuidv7_fast(), name text);
INSERT INTO regress_fast_uuid_schema.item (name) VALUES ('one'), ('two') RETURNING name, id IS NOT NULL AS made;

-- a guest may generate where the schema lets him in
GRANT USAGE ON SCHEMA regress_fast_uuid_schema TO regress_fast_uuid_guest;
SET ROLE regress_fast_uuid_guest;
SELECT regress_fast_uuid_schema.uuidv7_fast() IS NOT NULL AS made;
RESET ROLE;

-- it can be moved to another schema, and a default moves with it
CREATE SCHEMA regress_fast_uuid_other;
ALTER EXTENSION fast_uuid SET SCHEMA regress_fast_uuid_other;
INSERT INTO regress_fast_uuid_schema.item (name) VALUES ('three') RETURNING name, id IS NOT NULL AS made;
SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef WHERE adrelid = 'regress_fast_uuid_schema.item'::regclass;

DROP SCHEMA regress_fast_uuid_schema, regress_fast_uuid_other CASCADE;
SELECT format('REVOKE CREATE ON DATABASE %I FROM regress_fast_uuid_owner', current_database()) \gexec
DROP ROLE regress_fast_uuid_owner, regress_fast_uuid_guest;
CREATE EXTENSION fast_uuid;

