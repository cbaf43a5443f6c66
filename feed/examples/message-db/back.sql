-- Puts message-db back as it installs itself, beside writers and readers.  psql, as a superuser.
-- If it fails, run it again.  The extension stays.
\set ON_ERROR_STOP on
\ir common.sql

-- First the lock, because readers will depend on it.
SELECT pg_temp.edit('message_store.acquire_lock', back => true) \g /dev/null
CALL pg_temp.wait();

-- A reader's snapshot can be from before all writers had the lock.
CALL pg_temp.wait();
SELECT pg_temp.edit('message_store.get_category_messages', back => true) \g /dev/null

-- Nobody asks for the watermark any more.
CALL pg_temp.wait();
SET lock_timeout = '2 s';
SELECT fast_feed.disable('message_store.messages') \g /dev/null
