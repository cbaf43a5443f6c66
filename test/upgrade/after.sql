-- The tables are fit for use on the new server: what is inserted by default is
-- greater than all that came over, and goes to the partition of now.
DO $$
DECLARE
  largest uuid := (SELECT id FROM item ORDER BY id DESC LIMIT 1);
  partition text := 'event_' || extract(year FROM now() AT TIME ZONE 'UTC');
BEGIN
  ASSERT (SELECT count(*) FROM item) = 10000 AND (SELECT count(*) FROM event) = 6001, 'every row came over';
  INSERT INTO item (n) SELECT generate_series(1, 1000);
  ASSERT (SELECT count(*) FROM item WHERE id > largest) = 1000, 'new values are greater than all that came over';
  INSERT INTO event (n) VALUES (-1);
  ASSERT (SELECT tableoid::regclass::text FROM event WHERE n = -1) = partition, 'a new row is in the partition of now';
  SET LOCAL enable_seqscan = off;
  ASSERT (SELECT count(*) FROM item WHERE uuidv7_fast_timestamp(id, true) >= uuidv7_fast_timestamp(largest, true)) >= 1001,
    'the index by time finds old and new rows';
END $$;

-- Durable order goes on beyond what came over, ten days ahead of the clock: once the upper
-- bound is observed that pg_upgrade carries over, or the greatest id, where there was a
-- dump.  Where the old server had no such order it begins by the clock.
SET fast_uuid.ordering = 'durable';
SET fast_uuid.max_clock_lead = '20 d';
DO $$
DECLARE
  largest uuid := (SELECT id FROM durable ORDER BY id DESC LIMIT 1);
  carried timestamptz := (SELECT upper_bound FROM fast_uuid_stats() WHERE name = 'durable');
BEGIN
  ASSERT largest IS NULL OR largest > uuidv7_fast_max(now() + interval '9 days'), 'what came over is ahead of the clock';
  IF carried IS NOT NULL THEN
    BEGIN
      PERFORM uuidv7_fast();
      ASSERT false, 'an upper bound ten days ahead is refused';
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
      PERFORM fast_uuid_observe(uuidv7_fast_max(carried));
    END;
  ELSIF largest IS NOT NULL THEN
    ASSERT uuidv7_fast() < largest, 'a dump has no upper bound';
    PERFORM fast_uuid_observe(largest);
  END IF;
  ASSERT uuidv7_fast() > coalesce(largest, uuidv7_fast_min(now())), 'durable order goes on';
  ASSERT uuidv7_fast() < uuidv7_fast_max(coalesce(uuidv7_fast_timestamp(largest), now()) + interval '10 min'), 'and not further than it must';
END $$;
