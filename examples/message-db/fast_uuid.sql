-- Puts message-db on positions of fast_uuid, beside writers and readers.  psql, as a superuser.
-- If it fails, run it again.
\set ON_ERROR_STOP on
\ir common.sql

-- First the readers, for which this makes no difference yet: all numbers are below the watermark.
GRANT USAGE ON SCHEMA :schema TO message_store;
SELECT pg_temp.edit('message_store.get_category_messages') \g /dev/null
CALL pg_temp.wait();

-- Then the writers
BEGIN;
SET LOCAL lock_timeout = '2 s';
LOCK TABLE message_store.messages;
ALTER TABLE message_store.messages ALTER global_position SET DEFAULT uuidv7_feed_position();
CREATE OR REPLACE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON message_store.messages
  FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('global_position');
SELECT pg_temp.edit('message_store.acquire_lock') \g /dev/null
COMMIT;
