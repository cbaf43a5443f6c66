-- The settings of the order; what they do across sessions and clocks is tested
-- by test/t.
\c -
SELECT uuidv7_fast() IS NOT NULL AS library_loaded;
SET fast_uuid.ordering = 'instance';
SET fast_uuid.ordering = 'Instance';
SHOW fast_uuid.ordering;
RESET fast_uuid.ordering;
\set VERBOSITY sqlstate
SET fast_uuid.max_clock_lead = -2;
\set VERBOSITY default
SET fast_uuid.max_clock_lead = '1s';
SHOW fast_uuid.max_clock_lead;
SET fast_uuid.max_clock_lead = 0;
-- speed alone never leads the clock
SELECT count(uuidv7_fast()), count(DISTINCT uuidv7_fast()) FROM generate_series(1, 100000);
SELECT cardinality(uuidv7_fast_array(1000000));
SELECT name, clock_lead < interval '1 ms' AS no_lead, largest_clock_lead < interval '1 ms' AS never_a_lead
  FROM fast_uuid_stats() WHERE name = 'session';
RESET fast_uuid.max_clock_lead;

-- a reset sets back what a session has seen of a lead
SET fast_uuid.max_clock_lead = '1h';
SELECT fast_uuid_observe(uuidv7_fast_at(clock_timestamp() + interval '30 min'));
SELECT uuidv7_fast() IS NOT NULL AS made;
SELECT clock_lead > '20 min' AS lead, largest_clock_lead > '20 min' AS was_noted FROM fast_uuid_stats() WHERE name = 'session';
SELECT fast_uuid_reset_ordering();
SELECT clock_lead, largest_clock_lead FROM fast_uuid_stats() WHERE name = 'session';
RESET fast_uuid.max_clock_lead;

-- forgetting the latest value is not for everybody
SELECT fast_uuid_reset_ordering();
SELECT uuidv7_fast() IS NOT NULL AS made;
CREATE ROLE regress_fast_uuid_guest;
SET ROLE regress_fast_uuid_guest;
SELECT fast_uuid_reset_ordering();
RESET ROLE;

-- the least order is a superuser's, and leaves what the user has set as it is
SHOW fast_uuid.required_ordering;
SET fast_uuid.required_ordering = 'Instance';
SHOW fast_uuid.required_ordering;
SHOW fast_uuid.ordering;
SET fast_uuid.required_ordering = 'typo';
SHOW fast_uuid.required_ordering;
SET ROLE regress_fast_uuid_guest;
SET fast_uuid.ordering = 'session';
SET fast_uuid.required_ordering = 'session';
RESET fast_uuid.required_ordering;
SHOW fast_uuid.required_ordering;
RESET ROLE;
GRANT SET ON PARAMETER fast_uuid.required_ordering TO regress_fast_uuid_guest;
SET ROLE regress_fast_uuid_guest;
SET fast_uuid.required_ordering = 'session';
SHOW fast_uuid.required_ordering;
RESET ROLE;
REVOKE SET ON PARAMETER fast_uuid.required_ordering FROM regress_fast_uuid_guest;
DROP ROLE regress_fast_uuid_guest;
