-- Each value has the form of RFC 9562, version 7, and the time of its making.
-- A build without OpenSSL has another source in its place.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset
CREATE TEMP TABLE source (name text, built text);
INSERT INTO source VALUES (NULL, NULL), ('openssl', :'openssl'), ('getrandom', 'getrandom'), ('urandom', 'urandom'),
  ('xorshift128+', 'xorshift128+');

CREATE FUNCTION pg_temp.unix_ms(id uuid) RETURNS bigint
  LANGUAGE sql IMMUTABLE
  RETURN ('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint;

-- "before" and "after" stand in one row with the value, hence in its order
SELECT name,
       count(*) AS made,
       bool_and(id::text ~ '^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$') AS version_7,
       bool_and(pg_temp.unix_ms(id) BETWEEN floor(extract(epoch FROM before) * 1000)
                                        AND floor(extract(epoch FROM after) * 1000)) AS in_time
  FROM source,
       LATERAL (SELECT clock_timestamp() AS before, uuidv7_fast(built) AS id, clock_timestamp() AS after
                  FROM generate_series(1, 10000)) AS made
 GROUP BY name ORDER BY name COLLATE "C" NULLS FIRST;

-- every bit that is not fixed takes both values
CREATE FUNCTION pg_temp.bits(id uuid) RETURNS bit varying
  LANGUAGE sql IMMUTABLE
  RETURN ('x' || replace(id::text, '-', ''))::bit(128);
SELECT name,
       string_agg(bit::text, ',' ORDER BY bit) FILTER (WHERE ones = 0) AS always_zero,
       string_agg(bit::text, ',' ORDER BY bit) FILTER (WHERE ones = made) AS always_one
  FROM (SELECT name, bit, count(*) AS made, count(*) FILTER (WHERE substr(id, bit + 1, 1) = '1') AS ones
          FROM (SELECT name, pg_temp.bits(uuidv7_fast(built))::text AS id
                  FROM source, generate_series(1, 2000)) AS made,
               generate_series(48, 127) AS bit
         GROUP BY name, bit) AS counted
 GROUP BY name ORDER BY name COLLATE "C" NULLS FIRST;

-- a name's case does not matter, as in the setting
SELECT uuidv7_fast('GetRandom') IS NOT NULL AND uuidv7_fast('XORSHIFT128+') IS NOT NULL AS made;
-- nor how the text is stored
CREATE TEMP TABLE long_name (name text);
ALTER TABLE long_name ALTER name SET STORAGE EXTERNAL;
INSERT INTO long_name VALUES (repeat('getrandom', 1000)), ('getrandom');
SELECT uuidv7_fast(name) IS NOT NULL AS made FROM long_name WHERE length(name) < 10;
-- and the argument may be named
SELECT uuidv7_fast(source => 'urandom') < uuidv7_fast(source => NULL) AS ascending;
