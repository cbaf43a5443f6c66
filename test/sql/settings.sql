-- The settings: defaults and bounds, what a text is taken for, who may set what.
\set ECHO none
LOAD 'fast_uuid';
-- A build without OpenSSL has another default.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset

SELECT substr(name, 11) AS name, CASE setting WHEN :'openssl' THEN 'openssl' ELSE setting END AS setting, unit, context, vartype,
       min_val, max_val, enumvals
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
    WHEN 'allowed_sources' THEN (SELECT coalesce(string_agg(name, ' '), 'none') FROM fast_uuid_sources() WHERE allowed)
    ELSE current_setting('fast_uuid.' || setting) END;
END $$;
CREATE TEMP TABLE name (wrong text);
INSERT INTO name SELECT unnest(ARRAY[' urandom', 'urandom ', E'urandom\n', 'urand', 'urandomx', 'u random', '"urandom"', '/dev/urandom', 'urandom,',
  '', ' ', '0', '1', 'default', 'all', 'xorshift128', 'xorshift128++', 'xorshift', E'\xef\xbd\x95random', '-1 hour', 'P1D', 'open ssl']);
WITH meant (setting, before, plain, texts) AS (VALUES
  ('seed', '42', '0', ARRAY['00', '0x0', '0X0', '000000000000000000000000']),
  ('seed', '42', '7', ARRAY['07', '0x7']),
  ('seed', '42', '10', ARRAY['010', '0xA', '0x0a']),
  ('seed', '42', '2989', ARRAY['0xBaD', '0X0bAd']),
  ('seed', '42', '10000000', ARRAY['0x989680']),
  ('seed', '42', '4294967296', ARRAY['0x100000000', '00004294967296']),
  ('seed', '42', '18446744073709551615', ARRAY['0xffffffffffffffff', '0x0000ffffFFFFffffFFFF', '00018446744073709551615']),
  ('allowed_sources', 'getrandom', 'urandom',
   ARRAY['URANDOM', ' urandom ', E'\turandom\n', '"urandom"', '"URandom"', 'urandom,urandom', ',urandom,']),
  ('allowed_sources', 'urandom', 'getrandom, urandom',
   ARRAY['urandom,getrandom', E'urandom\n,\tgetrandom', ' "urandom" , GETRANDOM', 'urandom,getrandom,urandom', 'urandom getrandom']),
  ('allowed_sources', 'urandom', '', ARRAY[' ', E'\t', ',']),
  ('source', 'getrandom', 'urandom', ARRAY['URANDOM', 'URandom']),
  ('source', 'getrandom', 'xorshift128+', ARRAY['XorShift128+']),
  ('buffer_size', '1kB', '64kB', ARRAY['65536', '65536B', ' 64 kB ']),
  ('buffer_size', '1kB', '0', ARRAY['0kB']),
  ('max_clock_lead', '5s', '1s', ARRAY['1000', '1000ms', ' 1 s ']),
  ('max_clock_lead', '5s', '2147483647ms', ARRAY['2147483647']),
  ('vdso', 'on', 'off', ARRAY['no', 'OFF', '0']))
SELECT count(*) AS texts, string_agg(setting || ' ' || text, ' | ') FILTER (
         WHERE taken IS DISTINCT FROM pg_temp.taken(setting, before, plain) OR taken = pg_temp.taken(setting, before, before)) AS otherwise_taken
  FROM meant, unnest(texts) AS text, pg_temp.taken(setting, before, text) AS taken;
RESET ALL;
WITH wrong (setting, before, texts) AS (VALUES
  ('seed', '42', ARRAY[' 1', '1 ', E'1\n', E'\t1', '+1', '-1', '-0', '1e3', '1.0', '1.', '1_000', '1,000', '0b1', '0o7', '0x', '0X', 'x1',
   '0xx1', '0x 1', '0x-1', '0x+1', '0x0x1', '1x', '0x1g', '0x1.8', 'a', 'ff', 'h2a', 'inf', 'nan', 'on', 'true', '$1', E'\xef\xbc\x91',
   '18446744073709551616', '36893488147419103232', '0x10000000000000000', '99999999999999999999999999']),
  ('allowed_sources', 'getrandom', ARRAY['urand', 'urandomx', 'u random', '/dev/urandom', 'xorshift128', 'all', 'none', '*',
   'urandom;getrandom', 'urandom|getrandom', '''urandom''', '"urandom" x', 'urandom, all', 'urand, urandom', 'openssl getrandom typo']),
  ('buffer_size', '1kB', ARRAY['65537', '65kB', '128kB', '1MB', '-1', '-1kB', '1kb', '1KB', 'kB', '', ' ', '1x', '1kBx', '99999999999999999999']),
  ('max_clock_lead', '5s', ARRAY['-2', '-2ms', '-1s', '25d', '2147483648', '1 month', '1S', 's', '', ' ', '1x']),
  ('vdso', 'off', ARRAY['maybe', '']),
  ('source', 'getrandom', (SELECT array_agg(wrong) FROM name)))
SELECT count(*) AS texts, string_agg(setting || ' ' || text, ' | ') FILTER (WHERE pg_temp.taken(setting, before, text) <> 'refused') AS taken
  FROM wrong, unnest(texts) AS text;
RESET ALL;

-- The source as an argument, and what is drawn where there is none: from the source that
-- is set, without a buffer a word for each UUID.  What was buffered before is not used.
CREATE FUNCTION pg_temp.drawn(call text, argument text) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
  before jsonb := (SELECT jsonb_object_agg(name, refills) FROM fast_uuid_sources());
BEGIN
  EXECUTE format('SELECT count(id) FROM (SELECT %s AS id FROM generate_series(1, 2)) AS made', format(call, argument));
  RETURN (SELECT string_agg(name || ' ' || refills - (before ->> name)::int, ', ' ORDER BY name) FROM fast_uuid_sources()
           WHERE refills > (before ->> name)::int);
EXCEPTION WHEN invalid_parameter_value THEN
  RETURN 'refused';
END $$;
CREATE FUNCTION pg_temp.by_cursor() RETURNS uuid LANGUAGE plpgsql SET fast_uuid.source = 'urandom' AS $$
DECLARE
  c CURSOR FOR SELECT uuidv7_fast_set(9);
  id uuid;
BEGIN
  OPEN c;
  FETCH c INTO id;
  PERFORM set_config('fast_uuid.source', 'getrandom', true);
  FETCH c INTO id;
  CLOSE c;
  RETURN id;
END $$;
SELECT pg_temp.drawn('uuidv7_fast(''getrandom'')', '') AS buffered;
SET fast_uuid.vdso = off;
SELECT pg_temp.drawn('uuidv7_fast(''getrandom'')', '') AS after_vdso,
       pg_temp.drawn('uuidv7_fast(''urandom'')', '') AS buffered;
SET fast_uuid.source = 'urandom';
SET fast_uuid.buffer_size = 0;
SELECT call, pg_temp.drawn(call, 'NULL') AS by_null, pg_temp.drawn(call, quote_literal('GetRandom')) AS named,
       count(*) AS texts, count(*) FILTER (WHERE pg_temp.drawn(call, quote_literal(wrong)) = 'refused') AS refused
  FROM name, unnest(ARRAY['uuidv7_fast(%s)', 'uuidv7_fast(interval ''0'', %s)', 'uuidv7_fast_at(now(), %s)',
                          '(uuidv7_fast_array(1, %s))[1]', 'uuidv7_fast_set(1, %s)']) WITH ORDINALITY AS calls (call, n)
 GROUP BY n, call ORDER BY n;
SELECT call, pg_temp.drawn(call, '') AS by_setting
  FROM unnest(ARRAY['uuidv7_fast()', 'uuidv7_fast(interval ''0'')', 'uuidv7_fast_at(now())', '(uuidv7_fast_array(1))[1]',
                    'uuidv7_fast_set(1)', 'pg_temp.by_cursor()']) AS call;
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
  FOREACH command IN ARRAY ARRAY['SET fast_uuid.%s = %L', 'RESET fast_uuid.%s', 'SHOW fast_uuid.%s'
                                ] LOOP
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
               ('buffer_size', '0'), ('vdso', 'off'), ('max_clock_lead', '1')) AS given (name, value);
DROP OWNED BY regress_fast_uuid_trusted;
DROP ROLE regress_fast_uuid_user, regress_fast_uuid_trusted;
-- nor has anybody a seed for all sessions
ALTER SYSTEM SET fast_uuid.seed = '1';

-- each is described in whole sentences
SELECT name FROM pg_settings WHERE name LIKE 'fast\_uuid.%' AND (short_desc NOT LIKE '%.' OR extra_desc NOT LIKE '%.');
