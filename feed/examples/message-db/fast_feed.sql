-- Puts message-db on fast_feed, beside writers and readers.  psql, as a superuser.
-- If it fails, run it again.
\set ON_ERROR_STOP on
\ir common.sql

-- First the readers, for which this makes no difference while writers of a category take turns
BEGIN;
SET LOCAL lock_timeout = '2 s';
SELECT fast_feed.enable('message_store.messages', 'global_position') \g /dev/null
SELECT pg_temp.edit('message_store.get_category_messages') \g /dev/null
COMMIT;
CALL pg_temp.wait();

-- Then the writers
SELECT pg_temp.edit('message_store.acquire_lock') \g /dev/null
