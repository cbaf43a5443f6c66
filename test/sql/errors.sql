-- What an error says besides the message, which test/pgtap/functions.sql has: detail and hint.
\set ECHO none
CREATE FUNCTION pg_temp.said(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE detail text; hint text;
BEGIN
  EXECUTE command;
  RETURN 'nothing';
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(E'\n', SQLERRM, nullif(detail, ''), nullif(hint, ''));
END $$;
SELECT command, pg_temp.said(command)
  FROM unnest(ARRAY['SELECT uuidv7_fast(''-1 hour'')', 'SELECT uuidv7_fast_min(''1969-12-31'')',
                    'SELECT uuidv7_fast_ns(''ffffffff-ffff-7fff-bfff-ffffffffffff'')',
                    'SET fast_uuid.source = ''typo''', 'SET fast_uuid.seed = ''abc''',
                    'SET fast_uuid.allowed_sources = ''openssl, typo, urandom''',
                    'SET fast_uuid.nothing = ''1''']) AS command;
