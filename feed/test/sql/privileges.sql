-- Who may do what, by PostgreSQL's own privileges.
\set SHOW_CONTEXT never
SET client_min_messages = warning;
CREATE ROLE feed_owner;
CREATE ROLE feed_writer;
CREATE ROLE feed_reader;
CREATE ROLE feed_nobody;
CREATE SCHEMA app AUTHORIZATION feed_owner;
GRANT USAGE ON SCHEMA app TO PUBLIC;

SET ROLE feed_owner;
CREATE TABLE app.t (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text, secret text);
CREATE TABLE app.n (id bigserial PRIMARY KEY);
ALTER TABLE app.n ALTER id SET DEFAULT fast_feed.next('app.n_id_seq');
SELECT fast_feed.enable('app.t', 'id'), fast_feed.enable('app.n', 'id');
GRANT INSERT ON app.t, app.n TO feed_writer;
GRANT SELECT (id, body) ON app.t TO feed_reader;
GRANT SELECT (body) ON app.t TO feed_nobody;

-- A writer needs no privilege on the sequence of an identity column, as without a feed.
SET ROLE feed_writer;
INSERT INTO app.t (body) VALUES ('written');
SELECT fast_feed.watermark('app.t');
INSERT INTO app.n DEFAULT VALUES;
BEGIN;
SAVEPOINT a;
SELECT fast_feed.next('app.t_id_seq');
ROLLBACK TO a;
-- Nothing was published.
SELECT count(*) FROM fast_feed.in_flight();
ROLLBACK;
-- That the transaction has published it already, for others, gives no privilege.
BEGIN;
INSERT INTO app.t (body) VALUES ('published');
SELECT fast_feed.next('app.t_id_seq');
ROLLBACK;
RESET ROLE;
BEGIN;
GRANT USAGE ON SEQUENCE app.t_id_seq TO feed_writer;
SET LOCAL ROLE feed_writer;
SELECT fast_feed.next('app.t_id_seq') > 0, fast_feed.next('app.t_id_seq') > 0;
SET LOCAL ROLE feed_reader;
SAVEPOINT a;
SELECT fast_feed.next('app.t_id_seq');
ROLLBACK TO a;
SET LOCAL ROLE feed_writer;
INSERT INTO app.t (body) VALUES ('published');
SELECT fast_feed.next('app.t_id_seq') > 0;
RESET ROLE;
REVOKE USAGE ON SEQUENCE app.t_id_seq FROM feed_writer;
SET LOCAL ROLE feed_writer;
SELECT fast_feed.next('app.t_id_seq');
ROLLBACK;
SET ROLE feed_writer;
SELECT fast_feed.enable('app.t', 'id');
SELECT fast_feed.disable('app.t');
RESET ROLE;
GRANT USAGE ON SEQUENCE app.n_id_seq TO feed_writer;
SET ROLE feed_writer;
INSERT INTO app.n DEFAULT VALUES;

-- A writer needs none on the sequence of an identity, also where no unique index has the number alone.
SET ROLE feed_owner;
CREATE TABLE app.keyed (tenant int, id bigint GENERATED ALWAYS AS IDENTITY, PRIMARY KEY (tenant, id));
SELECT fast_feed.enable('app.keyed', 'id');
GRANT INSERT ON app.keyed TO feed_writer;
SET ROLE feed_writer;
INSERT INTO app.keyed VALUES (1);
SELECT currval('app.keyed_id_seq');

-- A reader needs SELECT on the table, or the column.
SET ROLE feed_reader;
SELECT id, body FROM app.t WHERE id < fast_feed.watermark('app.t');
SELECT fast_feed.watermark('app.t', 'id');
SELECT fast_feed.watermark('app.n');
SELECT fast_feed.wait(0) > 0;
SET ROLE feed_nobody;
SELECT fast_feed.watermark('app.t');
SELECT fast_feed.watermark('app.n');

-- A sequence that is named: who writes and reads needs no privilege on its schema.
RESET ROLE;
CREATE SCHEMA closed AUTHORIZATION feed_owner;
SET ROLE feed_owner;
CREATE SEQUENCE closed.numbers;
CREATE TABLE app.named (id bigint PRIMARY KEY, number bigint);
SELECT fast_feed.enable('app.named', 'number', true, 'closed.numbers');
GRANT SELECT, INSERT ON app.named TO feed_writer;
SET ROLE feed_writer;
INSERT INTO app.named VALUES (1);
SELECT number FROM app.named WHERE number < fast_feed.watermark('app.named');
SELECT fast_feed.next('closed.numbers');
-- Nor is he told its numbers, where it has gone back.
SET ROLE feed_owner;
SELECT fast_feed.skip('closed.numbers', 100);
INSERT INTO app.named VALUES (2);
SELECT fast_feed.watermark('app.named');
SELECT setval('closed.numbers', 50);
INSERT INTO app.named VALUES (3);
SET ROLE feed_writer;
INSERT INTO app.named VALUES (3);
RESET ROLE;
DROP TABLE app.named;
DROP SCHEMA closed CASCADE;
SET ROLE feed_writer;

-- Only the sequence's owner skips numbers.
SELECT fast_feed.skip('app.n_id_seq', 100);
SET ROLE feed_owner;
SELECT fast_feed.skip('app.n_id_seq', 100);
SELECT fast_feed.skip('app.n_id_seq', 50), fast_feed.skip('app.n_id_seq', NULL);
SELECT fast_feed.skip('app.n_id_seq', 0);
SELECT fast_feed.skip('app.n_id_seq', 9223372036854775807);
SELECT nextval('app.n_id_seq');
SELECT fast_feed.skip('app.n_id_seq', 9223372036854775806) > 0;
INSERT INTO app.n DEFAULT VALUES;
ALTER SEQUENCE app.n_id_seq RESTART WITH 102;

-- Nobody holds back what is not his, by a trigger on a table of his own.
RESET ROLE;
CREATE SCHEMA mine AUTHORIZATION feed_nobody;
SET ROLE feed_nobody;
CREATE TABLE mine.t (id bigint DEFAULT nextval('app.t_id_seq') NOT NULL);
SELECT fast_feed.enable('mine.t', 'id');
SELECT fast_feed.enable('mine.t', 'id', sequence => 'app.t_id_seq');
CREATE TRIGGER follow BEFORE INSERT ON mine.t EXECUTE FUNCTION fast_feed.follow('id', 'app.t_id_seq');
CREATE TRIGGER stamp BEFORE INSERT OR UPDATE ON mine.t FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp('id', 'app.t_id_seq');
INSERT INTO mine.t VALUES (1);
ALTER TRIGGER follow ON mine.t DEPENDS ON EXTENSION fast_feed;
ALTER TRIGGER stamp ON mine.t DEPENDS ON EXTENSION fast_feed;
INSERT INTO mine.t VALUES (1);
DROP TRIGGER follow ON mine.t;
INSERT INTO mine.t VALUES (1);
ALTER TABLE mine.t ENABLE ALWAYS TRIGGER stamp;
SELECT fast_feed.watermark('mine.t');
SELECT sequence, last FROM fast_feed.in_flight();
ALTER TABLE app.t DISABLE TRIGGER ALL;
CREATE TRIGGER follow BEFORE INSERT ON app.t EXECUTE FUNCTION fast_feed.follow('id');

-- Nor by a trigger on a superuser's table.
RESET ROLE;
CREATE TABLE public_table (n bigint);
GRANT INSERT, SELECT, TRIGGER ON public_table TO feed_nobody;
SET ROLE feed_nobody;
CREATE TRIGGER stamp BEFORE INSERT ON public_table FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp('n', 'app.t_id_seq');
INSERT INTO public_table VALUES (0);
RESET ROLE;
DROP TABLE public_table;
-- Nor by one on a table of an owner who has granted him the privilege TRIGGER.
SET ROLE feed_owner;
CREATE TABLE app.open (n bigint);
GRANT ALL ON app.open TO feed_nobody;
SET ROLE feed_nobody;
CREATE TRIGGER stamp BEFORE INSERT ON app.open FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp('n', 'app.t_id_seq');
ALTER TRIGGER stamp ON app.open DEPENDS ON EXTENSION fast_feed;
INSERT INTO app.open VALUES (0) RETURNING n;
RESET ROLE;
DROP TABLE app.open;
-- Nor by a trigger on a partition that is his, or that has partitions.
CREATE TABLE app.root (id bigserial, day int, hour int) PARTITION BY LIST (day);
CREATE TABLE mine.mid PARTITION OF app.root FOR VALUES IN (1) PARTITION BY LIST (hour);
CREATE TABLE mine.leaf PARTITION OF mine.mid FOR VALUES IN (1);
SELECT fast_feed.enable('app.root', 'id');
ALTER TABLE app.root OWNER TO feed_owner;
ALTER TABLE mine.mid OWNER TO feed_nobody;
ALTER TABLE mine.leaf OWNER TO feed_nobody;
SET ROLE feed_nobody;
ALTER TABLE mine.mid DISABLE TRIGGER USER;
ALTER TABLE mine.leaf DISABLE TRIGGER zzz_fast_feed_guard;
SELECT fast_feed.disable('app.root');
CREATE TRIGGER aaa BEFORE INSERT ON mine.mid FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp('id', 'app.t_id_seq');
INSERT INTO mine.leaf VALUES (1, 1, 1) RETURNING id;
ALTER TRIGGER aaa ON mine.mid DEPENDS ON EXTENSION fast_feed;
INSERT INTO mine.leaf VALUES (1, 1, 1) RETURNING id;
CREATE OR REPLACE TRIGGER aaa BEFORE INSERT ON mine.mid FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp('id');
ALTER TRIGGER aaa ON mine.mid DEPENDS ON EXTENSION fast_feed;
INSERT INTO mine.leaf VALUES (1, 1, 1) RETURNING id;
-- Nor does he learn numbers by a guard.
CREATE TABLE mine.guarded (id bigint NOT NULL);
CREATE TRIGGER guard BEFORE INSERT ON mine.guarded FOR EACH ROW EXECUTE FUNCTION fast_feed.guard('id', 'app.t_id_seq');
ALTER TRIGGER guard ON mine.guarded DEPENDS ON EXTENSION fast_feed;
INSERT INTO mine.guarded VALUES (1);
RESET ROLE;
DROP TABLE app.root;

-- A superuser who enables a table runs what its owner has defined, but as the owner.
SET ROLE feed_nobody;
CREATE TABLE mine.seen AS SELECT ''::text AS role, false AS is_superuser;
CREATE FUNCTION mine.see() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE FUNCTION mine.f(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN mine.see(); END';
CREATE TABLE mine.trap (id bigserial PRIMARY KEY);
CREATE INDEX ON mine.trap (mine.f(1));
CREATE OR REPLACE FUNCTION mine.see() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
  UPDATE mine.seen SET role = current_user, is_superuser = (SELECT usesuper FROM pg_user WHERE usename = current_user);
  SET search_path = mine;
  RETURN 1;
END $$;
RESET ROLE;
SELECT fast_feed.enable('mine.trap', 'id');
TABLE mine.seen;
SHOW search_path;
SELECT current_user = session_user;
SET ROLE feed_nobody;
CREATE OR REPLACE FUNCTION mine.see() RETURNS int LANGUAGE plpgsql AS 'BEGIN SET ROLE NONE; RETURN 1; END';
-- In a session that has not evaluated it
\c -
SET client_min_messages = warning;
SELECT fast_feed.enable('mine.trap', 'id');
SELECT current_user = session_user;
DROP TABLE mine.trap, mine.guarded;

-- Nor by a trigger on a partition that is his.
CREATE TABLE app.p (id bigserial, day int) PARTITION BY LIST (day);
CREATE TABLE mine.p PARTITION OF app.p FOR VALUES IN (1);
SELECT fast_feed.enable('app.p', 'id');
ALTER TABLE app.p OWNER TO feed_owner;
ALTER TABLE mine.p OWNER TO feed_nobody;
SET ROLE feed_nobody;
CREATE TRIGGER follow BEFORE INSERT ON mine.p EXECUTE FUNCTION fast_feed.follow('id');
ALTER TRIGGER follow ON mine.p DEPENDS ON EXTENSION fast_feed;
INSERT INTO mine.p VALUES (1, 1);
RESET ROLE;
DROP TRIGGER follow ON mine.p;
GRANT INSERT ON app.p TO feed_writer;
SET ROLE feed_owner;
INSERT INTO app.p (day) VALUES (1);

-- With the privilege to draw from it, its owner may.
RESET ROLE;
GRANT USAGE ON SEQUENCE app.t_id_seq TO feed_nobody;
SET ROLE feed_nobody;
BEGIN;
INSERT INTO mine.t VALUES (1) RETURNING id;
SELECT sequence, last FROM fast_feed.in_flight();
SELECT sequence, last, role = session_user AS role, state FROM fast_feed.holders();
-- A number is shown to who may see the sequence.
SET ROLE feed_reader;
SELECT sequence, last FROM fast_feed.in_flight();
SELECT sequence, last, role = session_user AS role, state FROM fast_feed.holders();
ROLLBACK;
RESET ROLE;
-- Rows are above a sequence that has given none, and that he may not read.
CREATE SEQUENCE app.uncalled;
GRANT USAGE ON SEQUENCE app.uncalled TO feed_nobody;
SET ROLE feed_nobody;
CREATE TABLE mine.above (id bigint PRIMARY KEY);
INSERT INTO mine.above VALUES (1);
SELECT fast_feed.enable('mine.above', 'id', sequence => 'app.uncalled');
RESET ROLE;
-- One of a table that is not committed yet
BEGIN;
CREATE TABLE fresh (id bigserial PRIMARY KEY);
SELECT fast_feed.enable('fresh', 'id');
INSERT INTO fresh DEFAULT VALUES;
SELECT pg_backend_pid() AS pid \gset
\setenv PID :pid
\! psql -XAtqc "SELECT sequence::text ~ '^[0-9]+$', last FROM fast_feed.in_flight() WHERE pid = $PID" contrib_regression
ROLLBACK;

-- Nothing stands in the users' schemas.
SELECT count(*) FROM pg_class WHERE relnamespace = 'fast_feed'::regnamespace;
SELECT deptype, pg_describe_object(classid, objid, objsubid) AS object FROM pg_depend
 WHERE refobjid = (SELECT oid FROM pg_extension WHERE extname = 'fast_feed')
   AND pg_describe_object(classid, objid, objsubid) NOT LIKE '%fast_feed%' ORDER BY 2;
SELECT nspname FROM pg_extension JOIN pg_namespace AS n ON n.oid = extnamespace WHERE extname = 'fast_feed';
-- A partition of another owner, whose triggers the table's owner could not change
CREATE TABLE app.parted (id bigint GENERATED BY DEFAULT AS IDENTITY, n int) PARTITION BY LIST (n);
CREATE TABLE app.parted_1 PARTITION OF app.parted FOR VALUES IN (1);
ALTER TABLE app.parted OWNER TO feed_owner;
SELECT fast_feed.enable('app.parted', 'id');
ALTER TABLE app.parted_1 OWNER TO feed_owner;
SELECT fast_feed.enable('app.parted', 'id');

-- A session that has found out about a partition notices another owner of the table.
SET ROLE feed_owner;
CREATE SEQUENCE app.of_owner;
CREATE TABLE app.moves (n bigint, k int) PARTITION BY LIST (k);
CREATE TABLE app.moves_1 PARTITION OF app.moves FOR VALUES IN (1);
SELECT fast_feed.enable('app.moves', 'n', updates => true, sequence => 'app.of_owner');
RESET ROLE;
INSERT INTO app.moves (k) VALUES (1);
GRANT CREATE ON SCHEMA app TO feed_writer;
ALTER TABLE app.moves OWNER TO feed_writer;
INSERT INTO app.moves (k) VALUES (1);

-- Rows that are hidden from the owner are looked at, or it is an error; and a member without the owner's
-- privileges is no owner.
SET ROLE feed_owner;
CREATE TABLE app.hidden (id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY);
INSERT INTO app.hidden VALUES (-5);
ALTER TABLE app.hidden ENABLE ROW LEVEL SECURITY;
ALTER TABLE app.hidden FORCE ROW LEVEL SECURITY;
SELECT fast_feed.enable('app.hidden', 'id');
RESET ROLE;
CREATE ROLE feed_member NOINHERIT;
GRANT feed_owner TO feed_member;
SET ROLE feed_member;
SELECT fast_feed.enable('app.t', 'id');
RESET ROLE;
DROP ROLE feed_member;

GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA fast_feed, public TO feed_reader;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA fast_feed, public TO feed_reader;
DROP SCHEMA app, mine CASCADE;
DROP OWNED BY feed_owner, feed_writer, feed_reader, feed_nobody;
DROP ROLE feed_owner, feed_writer, feed_reader, feed_nobody;
