-- The tables are fit for use on the new server: what is inserted by default is
-- greater than all that came over, and goes to the partition of now.
DO $$
DECLARE
  largest uuid := (SELECT id FROM item ORDER BY id DESC LIMIT 1);
  partition text := 'event_' || extract(year FROM now() AT TIME ZONE 'UTC');
BEGIN
  ASSERT (SELECT count(*) FROM item) = 10000, 'every row came over';
  ASSERT (SELECT count(*) FROM event) = 6001, 'every row of a partitioned table came over';
  INSERT INTO item (n) SELECT generate_series(1, 1000);
  ASSERT (SELECT count(*) FROM item WHERE id > largest) = 1000, 'new keys are greater than all';
  INSERT INTO event (n) VALUES (-1);
  ASSERT (SELECT tableoid::regclass::text FROM event WHERE n = -1) = partition, 'partition';
  SET LOCAL enable_seqscan = off;
  ASSERT (SELECT count(*) FROM item WHERE uuidv7_fast_timestamp(id, true)
            >= uuidv7_fast_timestamp(largest, true)) >= 1001, 'the index by time';
END $$;

-- Feed ids go on beyond what came over, ten days ahead of the clock: once the upper bound
-- is observed that pg_upgrade carries over, or the greatest id, where there was a dump.
SET fast_uuid.max_clock_lead = '20 d';
DO $$
DECLARE
  latest feed := (SELECT feed FROM feed ORDER BY id DESC LIMIT 1);
  carried timestamptz := (SELECT upper_bound FROM fast_uuid_stats() WHERE name = 'feed');
BEGIN
  ASSERT latest.id > uuidv7_fast_max(now() + interval '9 days'), 'it is ahead of the clock';
  IF carried IS NOT NULL THEN
    BEGIN
      PERFORM uuidv7_feed_id();
      ASSERT false, 'an upper bound ten days ahead is refused';
    EXCEPTION WHEN object_not_in_prerequisite_state THEN
      PERFORM uuidv7_feed_observe(uuidv7_fast_max(carried));
    END;
  ELSE
    ASSERT uuidv7_feed_id() < latest.id, 'a dump has no upper bound';
    PERFORM uuidv7_feed_observe(latest.id);
  END IF;
  INSERT INTO feed DEFAULT VALUES;
  ASSERT (SELECT id > latest.id AND position > latest.position
            FROM feed ORDER BY id DESC LIMIT 1), 'the feed goes on';
  ASSERT uuidv7_fast_timestamp(uuidv7_feed_id())
    < uuidv7_fast_timestamp(latest.id) + interval '10 min', 'and not further than it must';
  BEGIN
    INSERT INTO feed (id) VALUES (uuidv7_fast_min(now()));
    ASSERT false, 'the guard came over';
  EXCEPTION WHEN check_violation THEN
  END;
END $$;

-- A feed by a sequence goes on from a position that came over, with its guard.
DO $$
BEGIN
  INSERT INTO outbox (body) VALUES ('new');
  ASSERT (SELECT max(id) FROM outbox) >= 1002, 'no number is given again';
  BEGIN
    INSERT INTO outbox OVERRIDING SYSTEM VALUE VALUES (1001, 'drawn before');
    ASSERT false, 'the guard came over';
  EXCEPTION WHEN check_violation THEN
  END;
END $$;
DO $$
BEGIN
  ASSERT (SELECT count(*) FROM outbox, consumer WHERE id > position AND id < fast_feed.watermark('outbox')) = 501,
    'what the consumer has not read, and the new row';
END $$;
