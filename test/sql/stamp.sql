-- What the trigger uuidv7_fast_stamp refuses.  test/t/feeds/ shows what it does.
CREATE DOMAIN id_of_item AS uuid;
CREATE TABLE item (id int, version uuid, name text, gone uuid, domain id_of_item,
                   copied uuid GENERATED ALWAYS AS (version) STORED);
ALTER TABLE item DROP COLUMN gone;
CREATE VIEW items AS SELECT * FROM item;

-- The error of the statement that fires a trigger with this definition.
CREATE FUNCTION pg_temp.try(trigger text, OUT state text, OUT message text)
  LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE format(trigger, 'CREATE TRIGGER stamp', 'EXECUTE FUNCTION uuidv7_fast_stamp');
  INSERT INTO items (id) VALUES (1);
  DELETE FROM item;
  TRUNCATE item;
  RAISE 'accepted: %', (SELECT version FROM item);
EXCEPTION WHEN OTHERS THEN
  state := SQLSTATE;
  message := SQLERRM;
END $$;

SELECT trigger, tried.*
  FROM unnest(ARRAY['%s AFTER INSERT ON item FOR EACH ROW %s(version)',
                    '%s BEFORE INSERT ON item %s(version)',
                    '%s INSTEAD OF INSERT ON items FOR EACH ROW %s(version)',
                    '%s BEFORE DELETE ON item FOR EACH ROW %s(version)',
                    '%s BEFORE TRUNCATE ON item %s(version)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s()',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(version, id)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(typo)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(gone)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(ctid)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(name)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(domain)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(copied)',
                    '%s BEFORE INSERT ON item FOR EACH ROW %s(version)']) AS trigger,
       pg_temp.try(trigger) AS tried;
SELECT uuidv7_fast_stamp();

-- the hint, and an UPDATE
INSERT INTO item (id) VALUES (1);
CREATE TRIGGER stamp BEFORE UPDATE ON item FOR EACH ROW EXECUTE FUNCTION uuidv7_fast_stamp('version');
UPDATE item SET id = 2;
SELECT id, version FROM item;
DROP TABLE item CASCADE;
DROP DOMAIN id_of_item;
