-- What bad input gets, with its SQLSTATE; the session goes on.
CREATE FUNCTION pg_temp.try(source text, OUT state text, OUT message text, OUT hint text)
  LANGUAGE plpgsql AS $$
BEGIN
  PERFORM uuidv7_fast(source);
  message := 'made';
EXCEPTION WHEN OTHERS THEN
  state := SQLSTATE;
  message := left(SQLERRM, 60);
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
END $$;

SELECT left(source, 12) AS source, tried.*
  FROM (VALUES (1, 'urandom'), (2, NULL), (3, ''), (4, 'typo')) AS input (n, source),
       pg_temp.try(source) AS tried
 ORDER BY n;

-- an error in the middle of a statement loses no order
CREATE TEMP TABLE kept (n serial, id uuid);
INSERT INTO kept (id) VALUES (uuidv7_fast());
INSERT INTO kept (id) SELECT uuidv7_fast(CASE WHEN g < 500 THEN 'getrandom' ELSE 'typo' END) FROM generate_series(1, 1000) AS g;
INSERT INTO kept (id) VALUES (uuidv7_fast());
SELECT count(*), bool_and(id > previous) AS ascending
  FROM (SELECT id, lag(id) OVER (ORDER BY n) AS previous FROM kept) AS pairs;

-- of a long text the beginning is quoted, in whole characters
DO $$ BEGIN
  PERFORM uuidv7_fast(repeat('x', 1000000));
EXCEPTION WHEN invalid_parameter_value THEN
  RAISE NOTICE '%', SQLERRM;
END $$;
DO $$ BEGIN
  PERFORM uuidv7_fast('x' || repeat(chr(228), 1000));
EXCEPTION WHEN invalid_parameter_value THEN
  RAISE NOTICE 'whole: %', SQLERRM ~ ('^unrecognized entropy source "x' || chr(228) || '{49,99}[.]{3}"$');
END $$;
