-- Rows whose keys are made by default, one entropy source after the other.
\pset footer off
\echo
\echo '==> CREATE EXTENSION fast_uuid, and a table with a key by default'
\set ECHO queries
CREATE EXTENSION fast_uuid;

CREATE TABLE item (
  id     uuid PRIMARY KEY DEFAULT uuidv7_fast(),
  source text NOT NULL DEFAULT current_setting('fast_uuid.source'),
  name   text NOT NULL
);

INSERT INTO item (name) VALUES ('first'), ('second');

SET fast_uuid.source = 'openssl';
INSERT INTO item (name) VALUES ('third'), ('fourth');

SET fast_uuid.source = 'getrandom';
INSERT INTO item (name) VALUES ('fifth'), ('sixth');

SET fast_uuid.source = 'urandom';
INSERT INTO item (name) VALUES ('seventh'), ('eighth');

SET fast_uuid.source = 'xorshift128+';
INSERT INTO item (name) VALUES ('ninth'), ('tenth');

-- or by the call
INSERT INTO item (id, source, name) VALUES (uuidv7_fast('getrandom'), 'getrandom', 'eleventh');

\set ECHO none
\echo
\echo '==> The rows in the order of their keys'
SELECT id,
       substr(id::text, 15, 1) AS version,
       to_timestamp(('x' || substr(replace(id::text, '-', ''), 1, 12))::bit(48)::bigint / 1000.0) AS time,
       source, name
  FROM item ORDER BY id;

\echo '==> A million values of each source'
CREATE TEMP TABLE result (source text, ms numeric, different bigint);
DO $$
DECLARE
  name text;
  started timestamptz;
BEGIN
  FOREACH name IN ARRAY ARRAY['openssl', 'getrandom', 'urandom', 'xorshift128+'] LOOP
    PERFORM set_config('fast_uuid.source', name, true);
    started := clock_timestamp();
    PERFORM count(uuidv7_fast()) FROM generate_series(1, 1000000);
    INSERT INTO result VALUES (name, extract(epoch FROM clock_timestamp() - started) * 1000,
      (SELECT count(DISTINCT uuidv7_fast()) FROM generate_series(1, 1000000)));
  END LOOP;
END $$;
SELECT source, round(ms) AS "ms for a million", different FROM result;
