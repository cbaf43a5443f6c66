-- uuidv7_fast_array and uuidv7_fast_set: as many as asked for, ascending.
\set ECHO none
-- arrays of every size about a chunk's
SELECT count(*) AS arrays, bool_and(cardinality(ids) = size) AS sized,
       bool_and(size = 0 OR array_lower(ids, 1) = 1 AND array_ndims(ids) = 1) AS plain,
       bool_and(ids = ARRAY(SELECT DISTINCT id FROM unnest(ids) AS id ORDER BY id)) AS ascending
  FROM unnest(ARRAY[0, 1, 2, 7, 8, 9, 255, 256, 257, 511, 512, 513, 5000]) AS size,
       uuidv7_fast_array(size) AS ids;

-- sets: none, cut short, several at once
SELECT (SELECT count(*) FROM uuidv7_fast_set(0)) AS none,
       (SELECT count(*) FROM (SELECT uuidv7_fast_set(1000000000000) LIMIT 300) AS made) AS some,
       count(*), bool_and(a < b AND b < c AND (previous IS NULL OR previous < a)) AS ascending
  FROM (SELECT a, b, c, lag(c) OVER (ORDER BY n) AS previous
          FROM (SELECT generate_series(1, 1000) AS n, uuidv7_fast_set(1000) AS a,
                       uuidv7_fast_set(1000, 'xorshift128+') AS b, uuidv7_fast() AS c) AS made
       ) AS pairs;
