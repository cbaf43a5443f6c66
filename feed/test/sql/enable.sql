-- What enable() does and refuses; disable() and DROP EXTENSION leave the table as it was.
\set SHOW_CONTEXT never
SET client_min_messages = warning;

CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
INSERT INTO outbox (body) VALUES ('before');
SELECT fast_feed.watermark('outbox');
SELECT fast_feed.enable('outbox', 'id');
INSERT INTO outbox (body) VALUES ('after');
SELECT * FROM outbox WHERE id > 0 AND id < fast_feed.watermark('outbox') ORDER BY id LIMIT 100;
SELECT pg_get_triggerdef(oid), tgenabled FROM pg_trigger WHERE tgrelid = 'outbox'::regclass ORDER BY tgname;
-- Again is the same.
SELECT fast_feed.enable('outbox', 'id');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'outbox'::regclass;
SELECT fast_feed.disable('outbox');
SELECT count(*) FROM pg_trigger WHERE tgrelid = 'outbox'::regclass;
SELECT fast_feed.watermark('outbox');

-- A schema, and names that need quotes
CREATE SCHEMA "my schema";
CREATE TABLE "my schema"."my table" ("my id" serial, PRIMARY KEY ("my id"));
SELECT fast_feed.enable('"my schema"."my table"', 'my id');
INSERT INTO "my schema"."my table" DEFAULT VALUES;
SELECT fast_feed.watermark('"my schema"."my table"'), fast_feed.watermark('"my schema"."my table"', 'my id');
DROP SCHEMA "my schema" CASCADE;

-- What has no numbers, or not such ones
CREATE TABLE plain (body text);
SELECT fast_feed.enable('plain', 'id');
SELECT fast_feed.enable('plain', 'body');
CREATE VIEW outbox_view AS TABLE outbox;
SELECT fast_feed.enable('outbox_view', 'id');
CREATE TABLE numbered (id bigint PRIMARY KEY, small smallserial, maybe bigint);
SELECT fast_feed.enable('numbered', 'id');
SELECT fast_feed.enable('numbered', 'small');
SELECT fast_feed.enable('numbered', 'maybe');
CREATE SEQUENCE numbers OWNED BY numbered.maybe;
SELECT fast_feed.enable('numbered', 'maybe');
CREATE SEQUENCE ahead;
ALTER SEQUENCE ahead OWNED BY numbered.id;
INSERT INTO numbered VALUES (7), (0);
SELECT fast_feed.enable('numbered', 'id');
DELETE FROM numbered WHERE id = 0;
SELECT fast_feed.enable('numbered', 'id');
SELECT setval('ahead', 7);
SELECT fast_feed.enable('numbered', 'id');
ALTER SEQUENCE ahead RESTART WITH 8;
SELECT fast_feed.enable('numbered', 'id');
CREATE SEQUENCE second OWNED BY numbered.id;
SELECT fast_feed.watermark('numbered');
SELECT fast_feed.enable('numbered', 'id');
DROP SEQUENCE second;
SELECT fast_feed.watermark('numbered');
-- Who draws first draws by next().
INSERT INTO numbered VALUES (nextval('ahead'));
INSERT INTO numbered VALUES (fast_feed.next('ahead'));
SELECT id FROM numbered WHERE id < fast_feed.watermark('numbered') ORDER BY id;

-- Rows of before: with the same number, or without one
CREATE TABLE twice (id bigserial, day int);
INSERT INTO twice VALUES (1, 1), (2, 1), (2, 2);
SELECT setval('twice_id_seq', 2);
SELECT fast_feed.enable('twice', 'id');
CREATE UNIQUE INDEX ON twice (id, day);
SELECT fast_feed.enable('twice', 'id');
CREATE UNIQUE INDEX ON twice (id) WHERE day = 1;
SELECT fast_feed.enable('twice', 'id');
DELETE FROM twice WHERE day = 2;
SELECT fast_feed.enable('twice', 'id');
ALTER TABLE twice ADD COLUMN change bigint;
SELECT fast_feed.enable('twice', 'change', true, 'twice_id_seq');
UPDATE twice SET day = 3 WHERE id = 2;
SELECT * FROM twice WHERE change < fast_feed.watermark('twice');
-- A number that changes cannot lead to the partition.
CREATE TABLE by_number (id bigserial, day int) PARTITION BY RANGE (id);
SELECT fast_feed.enable('by_number', 'id', true);
CREATE TABLE by_list (id bigserial, day int) PARTITION BY LIST (day);
CREATE TABLE by_expression PARTITION OF by_list DEFAULT PARTITION BY LIST ((id % 10));
CREATE TABLE by_expression_default PARTITION OF by_expression DEFAULT;
SELECT fast_feed.enable('by_list', 'id', true);
ALTER TABLE by_list DETACH PARTITION by_expression;
SELECT fast_feed.enable('by_list', 'id', true);
DROP TABLE by_number, by_list, by_expression;
SELECT fast_feed.enable(NULL, 'id');
SELECT fast_feed.enable('twice', NULL);
-- A default that is another sequence's, or none
CREATE TABLE other_default (id bigserial PRIMARY KEY);
ALTER TABLE other_default ALTER id SET DEFAULT nextval('twice_id_seq');
SELECT fast_feed.enable('other_default', 'id');
SELECT fast_feed.enable('other_default', 'id', sequence => 'twice_id_seq');
ALTER TABLE other_default ALTER id SET DEFAULT 7;
SELECT fast_feed.enable('other_default', 'id');
INSERT INTO other_default DEFAULT VALUES;
ALTER TABLE other_default ALTER id SET DEFAULT fast_feed.next('other_default_id_seq');
SELECT fast_feed.enable('other_default', 'id');
INSERT INTO other_default DEFAULT VALUES;
DROP TABLE other_default;
SELECT fast_feed.watermark('outbox_view');

-- Sequences whose numbers do not ascend, or not for ever; also if they are altered later
CREATE OR REPLACE FUNCTION try(VARIADIC commands text[]) RETURNS SETOF text LANGUAGE plpgsql AS $$
DECLARE command text; detail text;
BEGIN
  FOREACH command IN ARRAY commands LOOP
    BEGIN
      EXECUTE command;
      RETURN NEXT 'passes: ' || command;
    EXCEPTION WHEN OTHERS THEN
      GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL;
      RETURN NEXT concat_ws(' ', SQLSTATE, SQLERRM, detail, command);
    END;
  END LOOP;
END $$;
SELECT fast_feed.enable('outbox', 'id');
-- In a statement each, as what a statement was told does not change.
\pset tuples_only on
SELECT format('SELECT try(%L)', command) FROM (VALUES (1, 'CACHE 20'), (2, 'CACHE 1'), (3, 'CYCLE'), (4, 'NO CYCLE'), (5, 'INCREMENT 5'),
    (6, 'INCREMENT 1'), (7, 'INCREMENT -1'), (8, 'INCREMENT 1'), (9, 'MINVALUE 0'), (10, 'MINVALUE 1')) AS a (a, alter),
  LATERAL (VALUES (1, 'ALTER SEQUENCE outbox_id_seq ' || alter), (2, $$INSERT INTO outbox (body) VALUES ('x')$$),
    (3, $$SELECT fast_feed.next('outbox_id_seq') > 0$$), (4, $$SELECT fast_feed.watermark('outbox') > 0$$),
    (5, $$SELECT fast_feed.enable('outbox', 'id')$$)) AS b (b, command) ORDER BY a, b
\gexec
\pset tuples_only off
CREATE TEMPORARY TABLE temporary (id serial PRIMARY KEY);
SELECT fast_feed.enable('temporary', 'id');
CREATE UNLOGGED TABLE unlogged (id serial PRIMARY KEY);
SELECT * FROM try($$SELECT fast_feed.enable('unlogged', 'id')$$);

-- A number of a row's latest change; two columns that are followed
CREATE TABLE customer (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text, change bigint);
CREATE SEQUENCE changes;
SELECT fast_feed.enable('customer', 'change', updates => true, sequence => 'changes');
CREATE TRIGGER fast_feed_guard BEFORE INSERT OR UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION fast_feed.guard('id');
INSERT INTO customer (name) VALUES ('a');
ALTER TRIGGER fast_feed_guard ON customer DEPENDS ON EXTENSION fast_feed;
INSERT INTO customer (name) VALUES ('a'), ('b');
UPDATE customer SET name = 'c' WHERE id = 1 RETURNING *;
DROP TRIGGER fast_feed_guard ON customer;
CREATE TRIGGER fast_feed_follow BEFORE INSERT ON customer EXECUTE FUNCTION fast_feed.follow('id');
CREATE TRIGGER fast_feed_guard BEFORE INSERT OR UPDATE ON customer FOR EACH ROW EXECUTE FUNCTION fast_feed.guard('id');
ALTER TRIGGER fast_feed_follow ON customer DEPENDS ON EXTENSION fast_feed;
ALTER TRIGGER fast_feed_guard ON customer DEPENDS ON EXTENSION fast_feed;
ALTER TABLE customer ENABLE ALWAYS TRIGGER fast_feed_guard;
INSERT INTO customer (name) VALUES ('a'), ('b') RETURNING *;
UPDATE customer SET name = 'c' WHERE name = 'a' RETURNING *;
SELECT fast_feed.watermark('customer');
SELECT fast_feed.watermark('customer', 'id'), fast_feed.watermark('customer', 'change');
SELECT fast_feed.watermark('customer', 'name');

-- Several tables by one sequence
CREATE TABLE supplier (id int PRIMARY KEY, change bigint);
SELECT fast_feed.enable('supplier', 'change', true, 'changes');
INSERT INTO supplier VALUES (1);
UPDATE customer SET name = 'd' WHERE name = 'b' RETURNING change;
SELECT fast_feed.watermark('supplier') = fast_feed.watermark('customer', 'change');
SELECT change FROM supplier;

-- The ends of types
CREATE TABLE small (id serial PRIMARY KEY);
SELECT fast_feed.enable('small', 'id', true);
SELECT setval('small_id_seq', 2147483646);
INSERT INTO small DEFAULT VALUES RETURNING id;
INSERT INTO small DEFAULT VALUES;
SELECT fast_feed.watermark('small');
ALTER SEQUENCE small_id_seq AS bigint MAXVALUE 9223372036854775807;
INSERT INTO small DEFAULT VALUES;
CREATE TABLE big (id bigserial PRIMARY KEY);
SELECT fast_feed.enable('big', 'id');
SELECT fast_feed.watermark('big');
SELECT setval('big_id_seq', 9223372036854775806);
INSERT INTO big DEFAULT VALUES RETURNING id;
SELECT fast_feed.watermark('big');
INSERT INTO big DEFAULT VALUES;

-- Triggers that somebody creates otherwise
CREATE TABLE by_hand (id bigserial PRIMARY KEY, name text);
SELECT t.* FROM (VALUES ('BEFORE INSERT ON by_hand EXECUTE FUNCTION fast_feed.guard(''id'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.follow(''id'')'),
    ('AFTER INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''id'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp()'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''nothing'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''name'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''id'', ''changes'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''id'', ''public.nothing'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''id'', ''public.by_hand'')'),
    ('BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.stamp(''id'', ''public.changes'')')
  ) AS v (definition), try('CREATE OR REPLACE TRIGGER t ' || definition, 'ALTER TRIGGER t ON by_hand DEPENDS ON EXTENSION fast_feed',
    'INSERT INTO by_hand DEFAULT VALUES', 'DROP TRIGGER t ON by_hand') AS t WHERE t NOT LIKE 'passes: % TRIGGER%';
SELECT fast_feed.follow();
SELECT fast_feed.next('pg_class');
CREATE TRIGGER t BEFORE INSERT OR UPDATE ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.guard();
ALTER TRIGGER t ON by_hand DEPENDS ON EXTENSION fast_feed;
ALTER TABLE by_hand ENABLE ALWAYS TRIGGER t;
SELECT fast_feed.watermark('by_hand', 'id');
SELECT fast_feed.watermark('by_hand');
DROP TRIGGER t ON by_hand;

-- One that does not see every change
CREATE TRIGGER t BEFORE INSERT ON by_hand FOR EACH ROW EXECUTE FUNCTION fast_feed.guard('id');
ALTER TRIGGER t ON by_hand DEPENDS ON EXTENSION fast_feed;
ALTER TABLE by_hand ENABLE ALWAYS TRIGGER t;
SELECT fast_feed.watermark('by_hand');
DROP TRIGGER t ON by_hand;

-- Disabled, or enabled without ALWAYS: there is no watermark until enable() is called again.
SELECT fast_feed.enable('by_hand', 'id');
ALTER TABLE by_hand DISABLE TRIGGER ALL;
SELECT fast_feed.watermark('by_hand');
ALTER TABLE by_hand ENABLE TRIGGER ALL;
SELECT fast_feed.watermark('by_hand');
SELECT fast_feed.enable('by_hand', 'id');
SELECT fast_feed.watermark('by_hand') > 0;

-- With a snapshot that does not know for whom it has waited, or does not yet see the trigger
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT fast_feed.enable('by_hand', 'id');
ROLLBACK;
SELECT fast_feed.disable('by_hand');
SELECT fast_feed.enable('by_hand', 'id') IS NULL, fast_feed.watermark('by_hand');
SELECT fast_feed.enable('by_hand', 'id') IS NULL;
SELECT fast_feed.wait(NULL);
SELECT fast_feed.wait(0, NULL);
BEGIN;
SELECT fast_feed.disable('by_hand');
DECLARE c CURSOR FOR SELECT fast_feed.watermark('by_hand') > 0;
SELECT fast_feed.enable('by_hand', 'id') IS NULL;
SELECT fast_feed.watermark('by_hand') > 0;
FETCH c;
ROLLBACK;
-- A transaction that has altered the sequence gets no other watermark of it, unless that is rolled back.
BEGIN;
SELECT fast_feed.watermark('by_hand') AS before \gset
SAVEPOINT a;
SELECT fast_feed.skip('by_hand_id_seq', 99999);
SELECT fast_feed.watermark('by_hand');
ROLLBACK TO a;
SELECT fast_feed.watermark('by_hand') = :before;
TRUNCATE by_hand RESTART IDENTITY;
SELECT fast_feed.watermark('by_hand');
ROLLBACK;

-- DROP EXTENSION takes triggers along, but no default, and none that was made by hand.
SELECT fast_feed.disable('customer');
ALTER TABLE by_hand ALTER id SET DEFAULT fast_feed.next('by_hand_id_seq');
DROP EXTENSION fast_feed;
ALTER TABLE by_hand ALTER id SET DEFAULT nextval('by_hand_id_seq');
DROP EXTENSION fast_feed;
SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal;
INSERT INTO outbox (body) VALUES ('without');
-- A schema of that name is somebody's.
CREATE SCHEMA fast_feed;
CREATE EXTENSION fast_feed;
DROP SCHEMA fast_feed;
CREATE EXTENSION fast_feed;
