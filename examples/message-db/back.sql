-- Puts message-db back as it installs itself, beside writers and readers.  psql, as a superuser.
-- If it fails, run it again.  The extension stays, and message_store may use its schema.
\set ON_ERROR_STOP on
\ir common.sql

-- First the lock, because readers will depend on it; then the default.
SELECT pg_temp.edit('message_store.acquire_lock', back => true) \g /dev/null
CALL pg_temp.wait();

BEGIN;
SET LOCAL lock_timeout = '2 s';
LOCK TABLE message_store.messages;
-- The sequence goes on above all positions, also those of messages that have been deleted; where
-- the default is the sequence, it stays.
SELECT setval('message_store.messages_global_position_seq', uuidv7_feed_position())
  FROM pg_attrdef WHERE adrelid = 'message_store.messages'::regclass
   AND pg_get_expr(adbin, adrelid) LIKE '%uuidv7_feed_position()' \g /dev/null
ALTER TABLE message_store.messages ALTER global_position
  SET DEFAULT nextval('message_store.messages_global_position_seq');
DROP TRIGGER IF EXISTS zz_guard ON message_store.messages;
COMMIT;

-- A reader's snapshot can be from before all writers had the lock.
CALL pg_temp.wait();
SELECT pg_temp.edit('message_store.get_category_messages', back => true) \g /dev/null
