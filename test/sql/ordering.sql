-- What the order of a session's keys follows from: observed UUIDs and a reset, but not speed.
-- Feeds are feed.sql's; other sessions, and the clock, are tested by test/t/order.
\set ECHO none
\c -
-- Speed alone never leads the clock.
SET fast_uuid.max_clock_lead = 0;
SELECT (SELECT count(uuidv7_fast()) FROM generate_series(1, 100000)) AS rows,
       cardinality(uuidv7_fast_array(1000000)) AS of_array;
CREATE VIEW pg_temp.session AS SELECT clock_lead, largest_clock_lead FROM fast_uuid_stats()
 WHERE name = 'session';
SELECT clock_lead < '1 ms' AS no_lead, largest_clock_lead < '1 ms' AS never_a_lead FROM session;

-- Observed are UUIDs of version 7, and within the limit, which is a second where there is none.
CREATE FUNCTION pg_temp.observe(id uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  PERFORM fast_uuid_observe(id);
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n', SQLSTATE || ' ' || SQLERRM,
                   nullif(regexp_replace(detail, 'by \d+ ms', 'by ... ms'), ''), nullif(hint, ''));
END $$;
SELECT id, pg_temp.observe(id::uuid)
  FROM unnest(ARRAY['00000000-0000-7000-8000-000000000000', '01890a5d-ac96-474b-bcce-b302099a8057',
                    '01890a5d-ac96-774b-ccce-b302099a8057', 'ffffffff-ffff-ffff-ffff-ffffffffffff',
                    'ffffffff-ffff-7fff-bfff-ffffffffffff', NULL]) AS id;
SELECT max_lead, ahead, pg_temp.observe(uuidv7_fast_at(clock_timestamp() + ahead::interval))
  FROM (VALUES ('0', '1 h'), ('0', '-1 h'), ('-1', '1 h'), ('2h', '3 h'), ('2h', '1 h')
       ) AS given (max_lead, ahead), set_config('fast_uuid.max_clock_lead', max_lead, false);
SELECT fast_uuid_reset_ordering() \g /dev/null
SELECT uuidv7_fast_at(clock_timestamp() + '500 ms') AS ahead \gset
SELECT fast_uuid_observe(:'ahead') \g /dev/null
SELECT uuidv7_fast() > :'ahead' AS one, (uuidv7_fast_array(300))[1] > :'ahead' AS of_array,
       (SELECT bool_and(uuidv7_fast() > :'ahead') FROM generate_series(1, 300)) AS many;

-- After a reset nothing is left of a lead.
SELECT fast_uuid_observe(uuidv7_fast_at(clock_timestamp() + '30 min')) \g /dev/null
SELECT uuidv7_fast_timestamp(uuidv7_fast()) > clock_timestamp() + '20 min' AS ahead,
       clock_lead > '20 min' AS lead, largest_clock_lead > '20 min' AS noted FROM session;
SELECT fast_uuid_reset_ordering() \g /dev/null
SELECT * FROM session;
SELECT uuidv7_fast_timestamp(uuidv7_fast()) < clock_timestamp() + '1 s' AS back_to_the_clock;
