-- Speed alone never leads the clock: no key of a session has a time that is still to come.
-- Steps of the clock, and other sessions, are tested by test/t/order.
\set ECHO none
\c -
SELECT count(*) AS rows, bool_and(uuidv7_fast_timestamp(id, true) <= clock) AS never_ahead
  FROM (SELECT uuidv7_fast() AS id, clock_timestamp() AS clock
          FROM generate_series(1, 100000) OFFSET 0) AS made;
SELECT sum(cardinality(ids)) AS of_arrays,
       bool_and(uuidv7_fast_timestamp(ids[cardinality(ids)], true) <= clock) AS never_ahead
  FROM (SELECT uuidv7_fast_array(1 + n % 1000) AS ids, clock_timestamp() AS clock
          FROM generate_series(1, 4000) AS n OFFSET 0) AS made;
SELECT cardinality(uuidv7_fast_array(1000000)) AS of_array,
       uuidv7_fast_timestamp(uuidv7_fast(), true) <= clock_timestamp() AS never_ahead;
