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

-- A feed goes on from a position that came over, with its guard.
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
