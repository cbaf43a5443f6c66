-- The sources and what they cost, rows by time, ids that repeat, the allowlist; then fast_feed.
\pset footer off
\echo
\echo '==> CREATE EXTENSION fast_uuid, and a table whose ids are UUIDv7 by default'
\set ECHO queries
CREATE EXTENSION fast_uuid;
CREATE TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), name text);

INSERT INTO item (name) VALUES ('first'), ('second') RETURNING *;
\set ECHO none
\echo '==> The same from each entropy source in turn'
\set ECHO queries
SET fast_uuid.source = 'openssl';
INSERT INTO item (name) VALUES ('by OpenSSL');
SET fast_uuid.source = 'getrandom';
INSERT INTO item (name) VALUES ('by getrandom');
SET fast_uuid.source = 'urandom';
INSERT INTO item (name) VALUES ('by /dev/urandom');
SET fast_uuid.source = 'xorshift128+';
INSERT INTO item (name) VALUES ('by xorshift128+');
RESET fast_uuid.source;
INSERT INTO item VALUES (uuidv7_fast('getrandom'), 'by the argument');

\set ECHO none
\echo
\echo '==> The rows of the last minute, by the primary key'
\set ECHO queries
SELECT id, uuidv7_fast_timestamp(id)::time AS time, name FROM item
 WHERE id >= uuidv7_fast_min(now() - interval '1 minute') ORDER BY id;
\set ECHO none

\echo '==> A million UUIDs from each source, buffered and not (some seconds)'
CREATE TEMP TABLE result (n serial, generator text, buffered numeric, unbuffered numeric);
-- Unbuffered, so few are enough.
CREATE FUNCTION pg_temp.ms(call text, source text, size text, made integer) RETURNS numeric LANGUAGE plpgsql AS $$
DECLARE started timestamptz;
BEGIN
  PERFORM set_config('fast_uuid.source', source, true), set_config('fast_uuid.buffer_size', size, true);
  EXECUTE format('SELECT %s', call);
  started := clock_timestamp();
  EXECUTE format('SELECT count(%s) FROM generate_series(1, %s)', call, made);
  RETURN round((extract(epoch FROM clock_timestamp() - started) * 1000 * (1000000 / made))::numeric);
END $$;
INSERT INTO result (generator, buffered, unbuffered)
  SELECT 'uuidv7_fast(), ' || name, pg_temp.ms('uuidv7_fast()', name, '4096', 1000000),
         pg_temp.ms('uuidv7_fast()', name, '0', 100000)
    FROM fast_uuid_sources() WHERE available;
INSERT INTO result (generator, unbuffered)
  SELECT call, pg_temp.ms(call, 'openssl', '4096', 500000)
    FROM unnest(ARRAY['uuidv7()', 'gen_random_uuid()']) AS call
   WHERE call = 'gen_random_uuid()' OR current_setting('server_version_num')::int >= 180000;
SELECT generator, buffered AS "ms per million, buffered", unbuffered FROM result ORDER BY n;

\echo '==> Test data that repeats: by a seed with a start time, the same in every run'
\set ECHO queries
SET fast_uuid.source = 'xorshift128+';
SET fast_uuid.seed = '42 2026-01-01 00:00:00+00';
INSERT INTO item (name) VALUES ('a fixture'), ('another') RETURNING *;
RESET fast_uuid.seed;
RESET fast_uuid.source;
\set ECHO none
\echo
\echo '==> The DBA restricts the sources: others are refused'
\set ECHO queries
ALTER DATABASE postgres SET fast_uuid.allowed_sources = 'openssl, getrandom';
\connect
\set ON_ERROR_STOP off
SELECT uuidv7_fast('xorshift128+');
\set ON_ERROR_STOP on
\set ECHO none
\echo
\echo '==> fast_feed: two readers follow a table, while another session commits late'
CREATE EXTENSION dblink;
SELECT format('host=%s port=%s dbname=%s user=%s', split_part(current_setting('unix_socket_directories'), ',', 1),
              current_setting('port'), current_database(), current_user) AS slow \gset
SELECT dblink_connect('slow', :'slow') AS connected \gset
CREATE TEMP TABLE got (reader text, read int, id bigint, body text);
\set last_without 0
\set last_with 0
\set ECHO queries
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
CREATE EXTENSION fast_feed;
SELECT fast_feed.enable('outbox', 'id');

\echo '--- The other session inserts a row, and does not commit yet; this one does.'
SELECT dblink_exec('slow', 'BEGIN'),
       dblink_exec('slow', $$INSERT INTO outbox (body) VALUES ('late')$$);
INSERT INTO outbox (body) VALUES ('early');

\echo
\echo '--- Both readers take what is new, one of them below the watermark.'
INSERT INTO got SELECT 'without the watermark', 1, * FROM outbox
 WHERE id > :last_without;
INSERT INTO got SELECT 'with the watermark', 1, * FROM outbox
 WHERE id > :last_with AND id < fast_feed.watermark('outbox');

\echo
\echo '--- The other session commits, and each reads on after the last id it has.'
SELECT dblink_exec('slow', 'COMMIT') AS commit;
\set ECHO none
SELECT coalesce(max(id) FILTER (WHERE reader LIKE 'without%'), 0) AS last_without,
       coalesce(max(id) FILTER (WHERE reader LIKE 'with the%'), 0) AS last_with
  FROM got \gset
\set ECHO queries
INSERT INTO got SELECT 'without the watermark', 2, * FROM outbox
 WHERE id > :last_without;
INSERT INTO got SELECT 'with the watermark', 2, * FROM outbox
 WHERE id > :last_with AND id < fast_feed.watermark('outbox');
\set ECHO none

\echo
\echo '==> What they have got: the row that was committed late has the smaller id'
SELECT reader, string_agg(body, ', ' ORDER BY id) FILTER (WHERE read = 1) AS "first read",
       string_agg(body, ', ' ORDER BY id) FILTER (WHERE read = 2) AS "second read",
       (SELECT count(*) FROM outbox) - count(*) AS missed
  FROM got GROUP BY reader ORDER BY reader DESC;
SELECT dblink_disconnect('slow') AS disconnected \gset
