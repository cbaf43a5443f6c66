-- What the trigger uuidv7_fast_stamp refuses.  test/t/feeds/ shows what it does.
\set ECHO none
CREATE DOMAIN pg_temp.id_of_item AS uuid;
SELECT CASE WHEN current_setting('server_version_num')::int >= 180000 THEN 'VIRTUAL' ELSE 'STORED' END AS kind \gset
CREATE TEMP TABLE item (id int, version uuid, name text, gone uuid, domain pg_temp.id_of_item,
                        copied uuid GENERATED ALWAYS AS (version) STORED, computed uuid GENERATED ALWAYS AS (version) :kind);
ALTER TABLE item DROP COLUMN gone;
CREATE TEMP VIEW items AS SELECT * FROM item;

-- The error of the statement that fires a trigger with this definition.
CREATE FUNCTION pg_temp.try(definition text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE 'CREATE TRIGGER stamp ' || format(definition, 'EXECUTE FUNCTION uuidv7_fast_stamp');
  INSERT INTO items (id) VALUES (1);
  DELETE FROM item;
  TRUNCATE item;
  RAISE 'accepted: %', (SELECT version FROM item);
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

SELECT definition, pg_temp.try(definition) AS outcome
  FROM unnest(ARRAY['AFTER INSERT ON item FOR EACH ROW %s(version)',
                    'BEFORE INSERT ON item %s(version)',
                    'INSTEAD OF INSERT ON items FOR EACH ROW %s(version)',
                    'BEFORE DELETE ON item FOR EACH ROW %s(version)',
                    'BEFORE TRUNCATE ON item %s(version)',
                    'BEFORE INSERT ON item FOR EACH ROW %s()',
                    'BEFORE INSERT ON item FOR EACH ROW %s(version, id)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(typo)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(gone)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(ctid)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(name)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(domain)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(copied)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(computed)',
                    'BEFORE INSERT ON item FOR EACH ROW %s(version)']) AS definition;
-- the hint, and an UPDATE
INSERT INTO item (id) VALUES (1);
CREATE TRIGGER stamp BEFORE UPDATE ON item FOR EACH ROW
  EXECUTE FUNCTION uuidv7_fast_stamp('version');
UPDATE item SET id = 2;
