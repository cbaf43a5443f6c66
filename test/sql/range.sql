-- Ranges of time are ranges of ids: bounds are constants to the planner, or known when a plan
-- starts, so that only the partitions and the part of an index are read that they need.
\set ECHO none
SET timezone = 'UTC';
CREATE TEMP TABLE event (id uuid PRIMARY KEY DEFAULT uuidv7_fast()) PARTITION BY RANGE (id);
SELECT format('CREATE TEMP TABLE event_%s PARTITION OF event FOR VALUES FROM (uuidv7_fast_min(%L))
               TO (uuidv7_fast_min(%L))', to_char(month, 'YYYY_MM'), month, month + '1 month')
  FROM generate_series(timestamptz '2026-01-01', '2026-03-01', '1 month') AS month \gexec
INSERT INTO event SELECT uuidv7_fast_at(ts)
  FROM generate_series(timestamptz '2026-01-01', '2026-03-31 23:00', '1 hour') AS ts;
-- an index on the time itself; the function is immutable
CREATE INDEX ON event (uuidv7_fast_timestamp(id));
VACUUM ANALYZE event;
PREPARE by_time (timestamptz, timestamptz) AS
  SELECT count(*) FROM event WHERE id >= uuidv7_fast_min($1) AND id < uuidv7_fast_min($2);
SET plan_cache_mode = force_custom_plan;
SET enable_seqscan = off;
SET enable_bitmapscan = off;
SET enable_indexonlyscan = off;
EXPLAIN (COSTS OFF) EXECUTE by_time ('2026-02-10', '2026-02-20');
EXECUTE by_time ('2026-02-10', '2026-02-20');
SET plan_cache_mode = force_generic_plan;
EXPLAIN (COSTS OFF) EXECUTE by_time ('2026-03-05', '2026-03-06');
EXECUTE by_time ('2026-03-05', '2026-03-06');
