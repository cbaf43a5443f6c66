-- Tables that lean on the extension in every way that a dump or an upgrade has
-- to carry over: defaults, an index and a check that call it, partition bounds.
CREATE EXTENSION fast_uuid;

CREATE TABLE item (
  id   uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  n    integer NOT NULL,
  made timestamptz GENERATED ALWAYS AS (uuidv7_fast_timestamp(id)) STORED,
  CHECK (uuidv7_fast_timestamp(id) IS NOT NULL)
);
CREATE INDEX item_time ON item (uuidv7_fast_timestamp(id, true));
INSERT INTO item (n) SELECT generate_series(1, 10000);

CREATE TABLE event (
  id uuid PRIMARY KEY DEFAULT uuidv7_fast('getrandom'),
  n  integer NOT NULL
) PARTITION BY RANGE (id);
SELECT format('CREATE TABLE event_%s PARTITION OF event'
              ' FOR VALUES FROM (uuidv7_fast_min(%L)) TO (uuidv7_fast_min(%L))',
              year, year || '-01-01 00:00Z', year + 1 || '-01-01 00:00Z')
  FROM generate_series(2015, 2060) AS year \gexec
INSERT INTO event (id, n)
  SELECT uuidv7_fast_at(timestamptz '2015-01-01 00:00Z' + n * interval '1 day'), n
    FROM generate_series(0, 5000) AS n;
INSERT INTO event (n) SELECT generate_series(5001, 6000);

-- A feed, with a position of which the last row is 500, and a gap after it.
CREATE EXTENSION fast_feed;
CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
SELECT fast_feed.enable('outbox', 'id') \g /dev/null
INSERT INTO outbox (body) SELECT n FROM generate_series(1, 1000) AS n;
CREATE TABLE consumer (position bigint);
INSERT INTO consumer VALUES (500);
SELECT fast_feed.next('outbox_id_seq') \g /dev/null
