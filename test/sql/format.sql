-- Each UUID has the form of RFC 9562, version 7, the time of its call and random bits of its
-- own, and is greater than all before: from every source, by every buffer, in every way.
\set ECHO none
CREATE TEMP TABLE source AS
  SELECT name FROM fast_uuid_sources() WHERE available UNION ALL SELECT NULL;
CREATE TEMP TABLE way (query text);
INSERT INTO way VALUES
  ('SELECT clock_timestamp(), uuidv7_fast(source => %L), clock_timestamp()
      FROM generate_series(1, 1000)'),
  ('SELECT clock_timestamp(), uuidv7_fast(interval ''0'', %L), clock_timestamp()
      FROM generate_series(1, 100)'),
  ('SELECT before, unnest(ids), after
      FROM (SELECT clock_timestamp() AS before, uuidv7_fast_array(1000, %L) AS ids,
                   clock_timestamp() AS after) AS made');

CREATE TEMP TABLE made (n serial, source text, before timestamptz, id uuid, after timestamptz);
DO $$
DECLARE
  this record;
BEGIN
  FOR this IN SELECT * FROM source, way, unnest(ARRAY['0', '100', '64kB']) AS buffer LOOP
    PERFORM set_config('fast_uuid.buffer_size', this.buffer, true);
    EXECUTE 'INSERT INTO made (source, before, id, after) SELECT $1, made.* FROM ('
            || format(this.query, this.name) || ') AS made' USING this.name;
  END LOOP;
END $$;
CREATE TEMP TABLE parts AS
  SELECT n, source, before, id, after, unix_ms, fraction, tail,
         lag(id, 1, uuidv7_fast_min('epoch')) OVER (ORDER BY n) AS previous,
         lag(tail, 1, ~tail) OVER (ORDER BY n) AS previous_tail
    FROM made,
         LATERAL (SELECT replace(id::text, '-', '')) AS text (hex),
         LATERAL (SELECT ('x' || left(hex, 12))::bit(48)::bigint,
                         ('x' || right(hex, 20))::bit(80)) AS bits (unix_ms, bits),
         LATERAL (SELECT bits::bit(26), substring(bits FROM 27)::bit(54)) AS more (fraction, tail);
SELECT count(*) = 6300 * (SELECT count(*) FROM source) AS all,
       count(DISTINCT id) = count(*) AS different, count(DISTINCT tail) = count(*) AS random_tails,
       bool_and(id > previous) AS ascending,
       bool_and(unix_ms BETWEEN floor(extract(epoch FROM before) * 1000)
                            AND floor(extract(epoch FROM after) * 1000)) AS in_time,
       bit_or(fraction) = B'01111111111111111011111111' AS no_more_zeros,
       bit_and(fraction) = B'01110000000000001000000000' AS no_more_ones
  FROM parts;

-- Of the random bits, each is one in half of a source's UUIDs (by more than a twentieth less, or
-- more, once in 10^17 runs), and none always equals or differs from another, or from that of the
-- UUID before.
SELECT source, bit, avg(get_bit(tail, bit)) AS ones
  FROM parts, generate_series(0, 53) AS bit
 GROUP BY source, bit
HAVING avg(get_bit(tail, bit)) NOT BETWEEN 0.45 AND 0.55;
SELECT source, shift, bit_or(tail # other) AS differ, bit_and(tail # other) AS always
  FROM parts, generate_series(0, 53) AS shift,
       LATERAL (SELECT CASE shift WHEN 0 THEN previous_tail
                                  ELSE tail << shift | tail >> 54 - shift END) AS compared (other)
 WHERE n % 31 = 0
 GROUP BY source, shift
HAVING bit_or(tail # other) <> ~B'0'::bit(54) OR bit_and(tail # other) <> B'0'::bit(54);

-- A million under the server's just-in-time compiler
SET jit_above_cost = 0;
SET jit_inline_above_cost = 0;
SET jit_optimize_above_cost = 0;
SELECT count(*), count(*) FILTER (WHERE id > previous) AS ascending
  FROM (SELECT id, lag(id) OVER () AS previous
          FROM (SELECT uuidv7_fast() AS id FROM generate_series(1, 1000000)) AS made) AS pairs;

-- Arrays of every size about a chunk's
SELECT count(*) AS arrays, bool_and(cardinality(ids) = size) AS sized,
       bool_and(size = 0 OR array_lower(ids, 1) = 1 AND array_ndims(ids) = 1) AS plain,
       bool_and(ids = ARRAY(SELECT DISTINCT id FROM unnest(ids) AS id ORDER BY id)) AS ascending,
       bool_and(size = (SELECT count(DISTINCT right(id::text, 14)) FROM unnest(ids) AS id)) AS random
  FROM unnest(ARRAY[0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 512, 513, 5000]) AS size,
       uuidv7_fast_array(size) AS ids;

-- Several in a row, from different sources: one order
SELECT count(*), bool_and(a < b AND b < c AND (previous IS NULL OR previous < a)) AS ascending
  FROM (SELECT a, b, c, lag(c) OVER (ORDER BY n) AS previous
          FROM (SELECT generate_series(1, 1000) AS n, uuidv7_fast() AS a,
                       uuidv7_fast('xorshift128+') AS b, uuidv7_fast() AS c) AS made
       ) AS pairs;
