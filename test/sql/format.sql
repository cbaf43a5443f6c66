-- Each UUID has the form of RFC 9562, version 7, the time of its call and random bits of its
-- own, and is greater than all before: from every source, by every buffer, in every way.
\set ECHO none
-- A build without OpenSSL has another source in its place.
SELECT name AS openssl FROM fast_uuid_sources() WHERE current \gset
CREATE TEMP TABLE source (name text, built text);
INSERT INTO source VALUES (NULL, NULL), ('openssl', :'openssl'), ('getrandom', 'getrandom'),
  ('urandom', 'urandom'), ('xorshift128+', 'xorshift128+');
CREATE TEMP TABLE way (query text);
INSERT INTO way VALUES
  ('SELECT clock_timestamp(), uuidv7_fast(source => %L), clock_timestamp()
      FROM generate_series(1, 1000)'),
  ('SELECT before, unnest(ids), after
      FROM (SELECT clock_timestamp() AS before, uuidv7_fast_array(1000, %L) AS ids,
                   clock_timestamp() AS after) AS made'),
  ('SELECT clock_timestamp(), uuidv7_fast_set(1000, %L), clock_timestamp()');

CREATE TEMP TABLE made (n serial, source text, before timestamptz, id uuid, after timestamptz);
DO $$
DECLARE
  this record;
BEGIN
  FOR this IN SELECT * FROM source, way, unnest(ARRAY['0', '100', '64kB']) AS buffer LOOP
    PERFORM set_config('fast_uuid.buffer_size', this.buffer, true);
    EXECUTE 'INSERT INTO made (source, before, id, after) SELECT $1, made.* FROM ('
            || format(this.query, this.built) || ') AS made' USING this.name;
  END LOOP;
END $$;

-- Every bit below the milliseconds that is not fixed takes both values.
SELECT source, count(*), count(DISTINCT id) AS different, bool_and(id > previous) AS ascending,
       bool_and(unix_ms BETWEEN floor(extract(epoch FROM before) * 1000)
                            AND floor(extract(epoch FROM after) * 1000)) AS in_time,
       count(DISTINCT substr(bits::text, 29)) AS random_tails,
       bit_or(bits) = X'7fffbfffffffffffffff' AS no_more_zeros,
       bit_and(bits) = X'70008000000000000000' AS no_more_ones
  FROM (SELECT *, lag(id, 1, uuidv7_fast_min('epoch')) OVER (ORDER BY n) AS previous
          FROM made) AS pairs,
       LATERAL (SELECT replace(id::text, '-', '')) AS text (hex),
       LATERAL (SELECT ('x' || left(hex, 12))::bit(48)::bigint,
                       ('x' || right(hex, 20))::bit(80)) AS parts (unix_ms, bits)
 GROUP BY source ORDER BY source COLLATE "C" NULLS FIRST;
