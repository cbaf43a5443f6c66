-- fast_uuid_observe(): what it takes, and from whom; what follows in other
-- sessions, and from the clock, is tested by test/t.
\c -
SELECT uuidv7_fast_at(clock_timestamp() + interval '500 ms') AS ahead \gset
SELECT fast_uuid_observe(:'ahead');
SELECT uuidv7_fast() > :'ahead' AS one, (uuidv7_fast_array(300))[1] > :'ahead' AS of_array;
SELECT count(*), bool_and(id > :'ahead') AS greater FROM uuidv7_fast_set(300) AS id;

-- nothing follows from these
SELECT fast_uuid_observe('00000000-0000-7000-8000-000000000000');
SELECT fast_uuid_observe(NULL) IS NULL AS nothing;

-- another version, another variant
SELECT fast_uuid_observe('01890a5d-ac96-474b-bcce-b302099a8057');
SELECT fast_uuid_observe('01890a5d-ac96-774b-ccce-b302099a8057');
SELECT fast_uuid_observe('ffffffff-ffff-ffff-ffff-ffffffffffff');

-- a time beyond the nanoseconds that are counted
SELECT fast_uuid_observe('ffffffff-ffff-7fff-bfff-ffffffffffff');

-- too far ahead of the clock: by more than a second, or than the limit
CREATE FUNCTION pg_temp.observe(ahead interval) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  PERFORM fast_uuid_observe(uuidv7_fast_at(clock_timestamp() + ahead));
  RETURN 'accepted';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n  ', SQLSTATE || ' ' || SQLERRM, regexp_replace(detail, 'by \d+ ms', 'by ... ms'), hint);
END $$;
\pset format unaligned
\pset tuples_only on
SELECT pg_temp.observe('1 h');
SET fast_uuid.max_clock_lead = '2 h';
SELECT pg_temp.observe('1 h');
SELECT pg_temp.observe('3 h');
SET fast_uuid.max_clock_lead = 0;
SELECT pg_temp.observe('1 h');
SELECT pg_temp.observe('-1 h');
RESET fast_uuid.max_clock_lead;
\pset format aligned
\pset tuples_only off
SELECT fast_uuid_reset_ordering();
SELECT uuidv7_fast() < uuidv7_fast_min(clock_timestamp() + interval '30 min') AS back_to_the_clock;

-- it is not for everybody
CREATE ROLE regress_fast_uuid_guest;
SET ROLE regress_fast_uuid_guest;
SELECT fast_uuid_observe(:'ahead');
RESET ROLE;
GRANT EXECUTE ON FUNCTION fast_uuid_observe(uuid) TO regress_fast_uuid_guest;
SET ROLE regress_fast_uuid_guest;
SELECT fast_uuid_observe('00000000-0000-7000-8000-000000000000');
RESET ROLE;
REVOKE EXECUTE ON FUNCTION fast_uuid_observe(uuid) FROM regress_fast_uuid_guest;
DROP ROLE regress_fast_uuid_guest;
