-- The settings: defaults and bounds, what a text is taken for, which source is drawn from, and
-- who may set what.  Names and lists of sources are in arguments.sql.
\set ECHO none
LOAD 'fast_uuid';
SELECT string_agg(name, ', ') AS names, array_agg(name) AS array, max(name) FILTER (WHERE current) AS first
  FROM fast_uuid_sources() \gset
SELECT substr(name, 11) AS name,
       CASE setting WHEN :'first' THEN 'the first' WHEN :'names' THEN 'all' ELSE setting END AS setting,
       unit, context, vartype, min_val, max_val, enumvals = :'array' AS all_values
  FROM pg_settings WHERE name LIKE 'fast\_uuid.%' AND setting = boot_val ORDER BY name;

-- What a text is taken for: how the setting is seen then.  Of one that is refused what was
-- there before stays.
CREATE FUNCTION pg_temp.taken(setting text, before text, value text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  PERFORM set_config('fast_uuid.' || setting, before, false);
  BEGIN
    PERFORM set_config('fast_uuid.' || setting, value, false);
  EXCEPTION WHEN invalid_parameter_value THEN
    RETURN CASE current_setting('fast_uuid.' || setting) WHEN before THEN 'refused' ELSE 'changed' END;
  END;
  RETURN CASE setting
    WHEN 'seed' THEN (SELECT string_agg(right(uuidv7_fast('xorshift128+')::text, 14), ' ') FROM generate_series(1, 8))
    ELSE current_setting('fast_uuid.' || setting) END;
END $$;
WITH meant (setting, before, plain, texts) AS (VALUES
  ('seed', '42', '0', ARRAY['00', '0x0', '0X0', '000000000000000000000000']),
  ('seed', '42', '7', ARRAY['07', '0x7']),
  ('seed', '42', '10', ARRAY['010', '0xA', '0x0a']),
  ('seed', '42', '2989', ARRAY['0xBaD', '0X0bAd']),
  ('seed', '42', '10000000', ARRAY['0x989680']),
  ('seed', '42', '4294967296', ARRAY['0x100000000', '00004294967296']),
  ('seed', '42', '18446744073709551615', ARRAY['0xffffffffffffffff', '0x0000ffffFFFFffffFFFF', '00018446744073709551615']),
  ('buffer_size', '1kB', '64kB', ARRAY['65536', '65536B', ' 64 kB ']),
  ('buffer_size', '1kB', '0', ARRAY['0kB']),
  ('vdso', 'on', 'off', ARRAY['no', 'OFF', '0']))
SELECT count(*) AS texts, string_agg(setting || ' ' || text, ' | ') FILTER (
         WHERE taken IS DISTINCT FROM pg_temp.taken(setting, before, plain) OR taken = pg_temp.taken(setting, before, before)) AS otherwise_taken
  FROM meant, unnest(texts) AS text, pg_temp.taken(setting, before, text) AS taken;
WITH wrong (setting, before, texts) AS (VALUES
  ('seed', '42', ARRAY[' 1', '1 ', E'1\n', E'\t1', '+1', '-1', '-0', '1e3', '1.0', '1.', '1_000', '1,000', '0b1', '0o7', '0x', '0X', 'x1',
   '0xx1', '0x 1', '0x-1', '0x+1', '0x0x1', '1x', '0x1g', '0x1.8', 'a', 'ff', 'h2a', 'inf', 'nan', 'on', 'true', '$1', E'\xef\xbc\x91',
   '18446744073709551616', '36893488147419103232', '0x10000000000000000', '99999999999999999999999999']),
  ('buffer_size', '1kB', ARRAY['65537', '65kB', '128kB', '1MB', '-1', '-1kB', '1kb', '1KB', 'kB', '', ' ', '1x', '1kBx', '99999999999999999999']),
  ('vdso', 'off', ARRAY['maybe', '']))
SELECT count(*) AS texts, string_agg(setting || ' ' || text, ' | ') FILTER (WHERE pg_temp.taken(setting, before, text) <> 'refused') AS taken
  FROM wrong, unnest(texts) AS text;
RESET ALL;

-- What comes of a command: how many requests were made of which sources, or the error.
CREATE FUNCTION pg_temp.outcome(command text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := (SELECT jsonb_object_agg(name, refills) FROM fast_uuid_sources());
  hint text;
BEGIN
  EXECUTE command;
  RETURN (SELECT coalesce(string_agg(name || ' ' || refills - (before ->> name)::int, ', ' ORDER BY name), 'done')
            FROM fast_uuid_sources() WHERE refills > (before ->> name)::int);
EXCEPTION WHEN OTHERS THEN
  GET STACKED DIAGNOSTICS hint = PG_EXCEPTION_HINT;
  RETURN concat_ws(' / ', SQLSTATE || ' ' || SQLERRM, nullif(hint, ''));
END $$;

-- What was buffered before the setting is not used; without a buffer a word is drawn for each UUID.
SELECT pg_temp.outcome('SELECT uuidv7_fast(''getrandom'')') AS buffered;
SET fast_uuid.vdso = off;
SELECT pg_temp.outcome('SELECT uuidv7_fast(''getrandom'')') AS after_vdso, pg_temp.outcome('SELECT uuidv7_fast(''urandom'')') AS buffered;
SET fast_uuid.allowed_sources = 'getrandom', openssl;
SELECT pg_temp.outcome('SELECT uuidv7_fast(''urandom'')') AS refused;
RESET fast_uuid.allowed_sources;

-- The source by setting and by argument, from every generator, without an allowlist and with one
CREATE FUNCTION pg_temp.by_cursor() RETURNS uuid LANGUAGE plpgsql SET fast_uuid.source = 'urandom' AS $$
DECLARE
  c CURSOR FOR SELECT uuidv7_fast() FROM generate_series(1, 9);
  id uuid;
BEGIN
  OPEN c;
  FETCH c INTO id;
  PERFORM set_config('fast_uuid.source', 'getrandom', true);
  FETCH c INTO id;
  CLOSE c;
  RETURN id;
END $$;
CREATE TEMP VIEW calls AS
  SELECT unnest(ARRAY['uuidv7_fast(%s) FROM generate_series(1, 2)',
                      'uuidv7_fast(interval ''0'', %s) FROM generate_series(1, 2)',
                      'uuidv7_fast_at(now(), %s) FROM generate_series(1, 2)',
                      'unnest(uuidv7_fast_array(2, %s))']) AS call;
CREATE FUNCTION pg_temp.generate(source text, call text) RETURNS text LANGUAGE sql AS $$
  SELECT pg_temp.outcome(format('SET fast_uuid.source = %L; SELECT count(id) FROM (SELECT %s) AS made (id)',
                                source, call)) $$;
CREATE TEMP VIEW by_source AS
  SELECT count(*) AS calls, source, string_agg(DISTINCT outcome, ' | ') AS outcome
    FROM unnest(ARRAY['getrandom', 'urandom', 'xorshift128+']) AS source, calls,
         unnest(ARRAY[pg_temp.generate(source, regexp_replace(call, '(, )?%s', '')),
                      pg_temp.generate(source, format(call, 'NULL')),
                      pg_temp.generate('openssl', format(call, quote_literal(upper(source))))]) AS outcome
   GROUP BY source ORDER BY source;
SET fast_uuid.buffer_size = 0;
TABLE by_source;
SELECT pg_temp.outcome('SELECT pg_temp.by_cursor()') AS by_cursor;
SET fast_uuid.allowed_sources = openssl, 'getrandom';
TABLE by_source;
SELECT name, allowed, reason FROM fast_uuid_sources() WHERE name IN ('getrandom', 'urandom') ORDER BY name;
SET fast_uuid.allowed_sources = '';
SELECT pg_temp.outcome('SELECT uuidv7_fast(''getrandom'')') AS from_none;
RESET ALL;

-- Who may set what and see it: everybody after SET ROLE, and who was given the privilege.
CREATE ROLE regress_fast_uuid_user;
CREATE ROLE regress_fast_uuid_trusted;
SELECT format('GRANT SET ON PARAMETER %s TO regress_fast_uuid_trusted', name) FROM pg_settings
 WHERE name LIKE 'fast\_uuid.%' AND context = 'superuser' \gexec
CREATE FUNCTION pg_temp.may(who text, name text, value text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  command text;
  done text;
BEGIN
  FOREACH command IN ARRAY ARRAY['SET fast_uuid.%s = %L', 'RESET fast_uuid.%s', 'SHOW fast_uuid.%s'] LOOP
    BEGIN
      EXECUTE 'SET LOCAL ROLE ' || who;
      EXECUTE format(command, name, value);
      done := concat_ws(' ', done, split_part(command, ' ', 1));
      RESET ROLE;
    EXCEPTION WHEN insufficient_privilege THEN
    END;
  END LOOP;
  RETURN done;
END $$;
SELECT name, pg_temp.may('regress_fast_uuid_user', name, value) AS everybody,
       pg_temp.may('regress_fast_uuid_trusted', name, value) AS trusted
  FROM (VALUES ('source', 'urandom'), ('allowed_sources', 'urandom'), ('seed', '1'),
               ('buffer_size', '0'), ('vdso', 'off')) AS given (name, value);
DROP OWNED BY regress_fast_uuid_trusted;
-- nor has anybody a seed for all sessions
ALTER SYSTEM SET fast_uuid.seed = '1';
DROP ROLE regress_fast_uuid_user, regress_fast_uuid_trusted;
