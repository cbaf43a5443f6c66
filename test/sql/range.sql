-- Ranges of time as ranges of ids: partitions, btree and BRIN, constants folded.
SET timezone = 'UTC';
CREATE TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), payload text) PARTITION BY RANGE (id);
CREATE TABLE event_2026_01 PARTITION OF event
  FOR VALUES FROM (uuidv7_fast_min('2026-01-01')) TO (uuidv7_fast_min('2026-02-01'));
CREATE TABLE event_2026_02 PARTITION OF event
  FOR VALUES FROM (uuidv7_fast_min('2026-02-01')) TO (uuidv7_fast_min('2026-03-01'));
CREATE TABLE event_2026_03 PARTITION OF event
  FOR VALUES FROM (uuidv7_fast_min('2026-03-01')) TO (uuidv7_fast_min('2026-04-01'));
CREATE TABLE event_other PARTITION OF event DEFAULT;

INSERT INTO event (id, payload)
  SELECT uuidv7_fast_at(ts), to_char(ts, 'YYYY-MM')
    FROM generate_series(timestamptz '2026-01-01', '2026-03-31 23:00', '1 hour') AS ts;
INSERT INTO event (payload) VALUES ('now') RETURNING tableoid::regclass;
SELECT tableoid::regclass AS partition, payload, count(*) FROM event GROUP BY 1, 2 ORDER BY 2;
-- the first and the last value of a month are in its partition
INSERT INTO event (id) VALUES (uuidv7_fast_max('2026-01-31 23:59:59.999999')), (uuidv7_fast_min('2026-02-01')),
  (uuidv7_fast_max('2026-02-28 23:59:59.999999')), (uuidv7_fast_min('2026-03-01'));
SELECT tableoid::regclass AS partition, uuidv7_fast_timestamp(id) FROM event WHERE payload IS NULL ORDER BY id;

-- partitions outside the range are not read
SET enable_bitmapscan = off;
SET enable_indexscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF)
SELECT * FROM event WHERE id >= uuidv7_fast_min('2026-02-10') AND id < uuidv7_fast_min('2026-02-20');
SELECT count(*) FROM event WHERE id >= uuidv7_fast_min('2026-02-10') AND id < uuidv7_fast_min('2026-02-20');
-- nor where the time is known only at execution
PREPARE by_time (timestamptz, timestamptz) AS
  SELECT count(*) FROM event WHERE id >= uuidv7_fast_min($1) AND id < uuidv7_fast_min($2);
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_time ('2026-03-05', '2026-03-06');
EXECUTE by_time ('2026-03-05', '2026-03-06');
RESET enable_bitmapscan;
RESET enable_indexscan;
RESET enable_indexonlyscan;

-- a btree range scan by time; the bounds are constants
SET enable_seqscan = off;
SET enable_bitmapscan = off;
CREATE TABLE plain (id uuid PRIMARY KEY, payload text);
INSERT INTO plain SELECT id, payload FROM event WHERE payload IS NOT NULL;
VACUUM ANALYZE plain;
EXPLAIN (COSTS OFF)
SELECT * FROM plain WHERE id >= uuidv7_fast_min('2026-02-10') AND id < uuidv7_fast_min('2026-02-11');
SELECT count(*) FROM plain WHERE id >= uuidv7_fast_min('2026-02-10') AND id < uuidv7_fast_min('2026-02-11');
SELECT count(*) FROM plain WHERE id BETWEEN uuidv7_fast_min('2026-02-10') AND uuidv7_fast_max('2026-02-10 23:59:59.999');

-- a BRIN scan
DROP TABLE plain;
CREATE TABLE plain (id uuid, payload text);
INSERT INTO plain SELECT id, payload FROM event WHERE payload IS NOT NULL ORDER BY id;
CREATE INDEX plain_brin ON plain USING brin (id) WITH (pages_per_range = 1);
VACUUM ANALYZE plain;
RESET enable_bitmapscan;
EXPLAIN (COSTS OFF)
SELECT count(*) FROM plain WHERE id >= uuidv7_fast_min('2026-02-10') AND id < uuidv7_fast_min('2026-02-11');
SELECT count(*) FROM plain WHERE id >= uuidv7_fast_min('2026-02-10') AND id < uuidv7_fast_min('2026-02-11');

-- an index on the time itself; the function is immutable
CREATE INDEX plain_time ON plain (uuidv7_fast_timestamp(id));
RESET enable_seqscan;
RESET plan_cache_mode;
DROP TABLE plain, event;
