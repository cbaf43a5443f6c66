-- For fast_feed.sql and back.sql.  Changes nothing of the store yet.
\set AUTOCOMMIT on
SET client_min_messages = warning;
SET statement_timeout = 0;
BEGIN;
-- Others do not see in pg_stat_activity when each transaction began.
DO $$ BEGIN ASSERT current_setting('is_superuser')::boolean, 'must be a superuser'; END $$;
CREATE EXTENSION IF NOT EXISTS fast_feed;
-- On PostgreSQL 15 and 16 this fails without preloading, as readers and writers would.
SELECT FROM fast_feed.holders() \g /dev/null

-- The functions that have to do with the lock, the MD5 of their source, and what is edited there.
-- The category's lock is shared, so that its writers wait only for one that still has it
-- exclusively, as message-db takes it.  No category has a "-" in its name, so a stream's key
-- differs from the keys of all categories.
CREATE TEMP TABLE edit (function, md5, theirs, ours) AS VALUES
  ('message_store.write_message'::regproc, '7beb82b443d965a6456823a9bebb979d', '', ''),
  ('message_store.acquire_lock', '94f59986417934a6e8f64c585ab397ef',
   'pg_advisory_xact_lock(_category_name_hash);',
   'pg_advisory_xact_lock_shared(_category_name_hash), '
   || 'pg_advisory_xact_lock(hash_64(acquire_lock.stream_name || ''-''));'),
  ('message_store.get_category_messages', '901c4c43c7121507f9b30f3d8e0422e7',
   'global_position >= $2''',
   'global_position >= $2 AND global_position < fast_feed.watermark(''''message_store.messages'''')''');

DO $$
DECLARE
  others text := string_agg(function::text, ', ') FROM edit JOIN pg_proc ON pg_proc.oid = function
                  WHERE md5(replace(prosrc, ours, theirs)) <> md5;
BEGIN
  IF others IS NOT NULL THEN
    RAISE 'not as message-db 1.2.3 to 1.3.1 installs it: %', others
      USING HINT = 'The store was not changed. Another version needs a script of its own.';
  END IF;
END $$;
COMMIT;

-- Also where it is edited already
CREATE FUNCTION pg_temp.edit(which regproc, back boolean DEFAULT false) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
  e edit;
  source text;
BEGIN
  SELECT * INTO STRICT e FROM edit WHERE function = which;
  source := replace(pg_get_functiondef(which), e.ours, e.theirs);
  EXECUTE CASE WHEN back THEN source ELSE replace(source, e.theirs, e.ours) END;
END $$;

-- Until everything has ended that can still be in the earlier version of a function, or has written by
-- it, also what is prepared.  Not by xact_start, which a session can hide (track_activities = off).
CREATE PROCEDURE pg_temp.wait() LANGUAGE plpgsql AS $$
DECLARE
  began xid := pg_snapshot_xmax(pg_current_snapshot())::xid;
  running text[] := array_agg(virtualxid) FROM pg_locks JOIN pg_stat_activity AS a USING (pid)
                  WHERE locktype = 'virtualxid' AND datname = current_database()
                    AND backend_type <> 'autovacuum worker' AND pid <> pg_backend_pid();
BEGIN
  WHILE EXISTS (SELECT FROM pg_locks WHERE locktype = 'virtualxid' AND virtualxid = ANY (running))
     OR EXISTS (SELECT FROM pg_prepared_xacts
                 WHERE database = current_database() AND age(transaction) > age(began))
  LOOP
    PERFORM pg_sleep(0.1), pg_stat_clear_snapshot();
  END LOOP;
END $$;
