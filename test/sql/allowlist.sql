-- fast_uuid.allowed_sources: what a call gets from each source, and an attacker after SET ROLE,
-- by a function that hands out secrets with the rights of its owner.
\set ECHO none
CREATE FUNCTION hand_out() RETURNS uuid LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp AS 'SELECT uuidv7_fast()';
CREATE FUNCTION hand_out_hardened() RETURNS uuid LANGUAGE sql SECURITY DEFINER
  SET search_path = public, pg_temp SET fast_uuid.source = 'getrandom' AS 'SELECT uuidv7_fast()';
CREATE ROLE regress_fast_uuid_attacker;

-- What comes of a command: the sources that were drawn from, or the error.
CREATE FUNCTION pg_temp.outcome(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := (SELECT jsonb_object_agg(name, refills) FROM fast_uuid_sources());
  hint text;
BEGIN
  EXECUTE command;
  RETURN (SELECT coalesce('from ' || string_agg(name, ', '), 'done') FROM fast_uuid_sources()
           WHERE refills > (before ->> name)::int);
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' / ', SQLSTATE || ' ' || SQLERRM, nullif(hint, ''));
END $$;

-- Every generator, with the source by setting and by argument.
CREATE TEMP VIEW of_each_source AS
  SELECT source, count(*) AS calls, string_agg(DISTINCT outcome, ' | ') AS outcome
    FROM unnest(ARRAY['getrandom', 'urandom', 'xorshift128+']) AS source,
         unnest(ARRAY['uuidv7_fast(%s)', 'uuidv7_fast(interval ''1 h'', %s)',
                      'uuidv7_fast_at(now(), %s)', 'uuidv7_fast_array(3, %s)',
                      'uuidv7_fast_set(3, %s)']) AS call,
         unnest(ARRAY['NULL', quote_literal(source)]) AS argument,
         pg_temp.outcome(format('SET fast_uuid.source = %L; SELECT ', source)
                         || format(call, argument)) AS outcome
   GROUP BY source ORDER BY source;
SET fast_uuid.buffer_size = 0;
SELECT * FROM of_each_source;
-- what was buffered before the list was made shorter is not used, also where the session's own
-- source stays; several values, as for any list
SET fast_uuid.buffer_size = '4kB';
SET fast_uuid.source = 'getrandom';
SELECT pg_temp.outcome('SELECT uuidv7_fast(''urandom'')') AS buffered;
SET fast_uuid.allowed_sources = openssl, 'getrandom';
SELECT pg_temp.outcome('SELECT uuidv7_fast(''urandom'')') AS refused;
SET fast_uuid.buffer_size = 0;
SELECT * FROM of_each_source;
SELECT name, allowed, reason FROM fast_uuid_sources() WHERE name <> 'openssl' ORDER BY name;
SET fast_uuid.allowed_sources = '';
SELECT pg_temp.outcome('SELECT uuidv7_fast(''getrandom'')') AS from_none;

-- Without an allowlist the attacker chooses the source, but never its seed; a function that
-- sets the source itself is not concerned.  With one, neither by the settings nor by argument.
CREATE TEMP VIEW attacks AS
  SELECT n, command, pg_temp.outcome(command)
    FROM unnest(ARRAY['SET fast_uuid.allowed_sources = ''xorshift128+''',
                      'RESET fast_uuid.allowed_sources', 'SET fast_uuid.seed = ''1''',
                      'SELECT uuidv7_fast(''xorshift128+'')',
                      'SET fast_uuid.source = ''xorshift128+''', 'SELECT hand_out()',
                      'SELECT hand_out_hardened()']) WITH ORDINALITY AS command (command, n);
GRANT SELECT ON attacks TO regress_fast_uuid_attacker;
RESET fast_uuid.allowed_sources;
SET ROLE regress_fast_uuid_attacker;
TABLE attacks;
RESET ROLE;
SET fast_uuid.allowed_sources = 'openssl, getrandom';
SET ROLE regress_fast_uuid_attacker;
TABLE attacks;
RESET ROLE;
SELECT current_setting('fast_uuid.seed') = '' AS unseeded;

DROP VIEW attacks;
DROP FUNCTION hand_out(), hand_out_hardened();
DROP ROLE regress_fast_uuid_attacker;
