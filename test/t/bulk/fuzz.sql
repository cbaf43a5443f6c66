-- The judge of fuzz.pl: carries out calls and keeps those whose answer is wrong.

CREATE EXTENSION fast_uuid;

-- argument: of the type that the kind takes; extra: the source, the flag of
-- uuidv7_fast_timestamp, or the name of a setting.
CREATE UNLOGGED TABLE call (n integer PRIMARY KEY, kind text, argument text, extra text);
CREATE UNLOGGED TABLE answer (n integer, kind text, answer text);
CREATE UNLOGGED TABLE wrong (n integer, kind text, argument text, extra text, answer text, got text);
GRANT ALL ON call, answer, wrong TO plain;
GRANT EXECUTE ON FUNCTION fast_uuid_stats() TO plain;

-- The allowed sources, read from the setting.
CREATE FUNCTION allowed() RETURNS text[] LANGUAGE sql AS $$
  SELECT coalesce(array_agg(lower(name)), '{}')
    FROM regexp_split_to_table(current_setting('fast_uuid.allowed_sources'), E'[, "\t\n\r\f\x0b]') AS name WHERE name <> '' $$;

-- Are all settings what they can be?
CREATE FUNCTION settings_are_sound() RETURNS boolean LANGUAGE sql AS $$
  SELECT current_setting('fast_uuid.source') IN ('openssl', 'getrandom', 'urandom', 'xorshift128+')
     AND current_setting('fast_uuid.vdso') IN ('on', 'off')
     AND pg_size_bytes(regexp_replace(current_setting('fast_uuid.buffer_size'), '([0-9])B', '\1 bytes')) BETWEEN 0 AND 65536
     AND current_setting('fast_uuid.max_clock_lead') ~ '^(-1|0|[1-9][0-9]*(ms|s|min|h|d))$'
     AND allowed() <@ '{openssl,getrandom,urandom,xorshift128+}' $$;

-- Of each kind the call, with its argument and its extra, and the errors that are listed
-- for it; those of PostgreSQL's own types are for all.
CREATE TABLE kind (kind text PRIMARY KEY, call text, errors text[]);
INSERT INTO kind VALUES
  ('now', 'ARRAY[uuidv7_fast(%2$s)]', '{42501}'),
  ('feed', 'ARRAY[uuidv7_feed_id(%2$s)]', '{42501}'),
  ('position', 'ARRAY[uuidv7_feed_position()]', '{}'),
  ('shift', 'ARRAY[uuidv7_fast(%1$L::interval, %2$s)]', '{22004,42501}'),
  ('at', 'ARRAY[uuidv7_fast_at(%1$L, %2$s)]', '{22004,42501}'),
  ('array', 'uuidv7_fast_array(%1$L, %2$s)', '{22004,42501}'),
  ('set', 'ARRAY(SELECT uuidv7_fast_set(%1$L, %2$s) LIMIT 300)', '{22004,42501}'),
  ('min', 'ARRAY[uuidv7_fast_min(%1$L)]', '{}'),
  ('max', 'ARRAY[uuidv7_fast_max(%1$L)]', '{}'),
  ('timestamp', 'ARRAY[uuidv7_fast_timestamp(%1$L, %2$s::boolean)]', '{}'),
  ('setting', 'ARRAY[set_config(%2$s, %1$L, false)]', '{42501,42602,42704}'),
  ('sources', 'ARRAY(SELECT name FROM fast_uuid_sources() WHERE allowed = (name = ANY (allowed())) AND bytes BETWEEN 8 * refills AND 65536 * refills)', '{}'),
  ('stats', 'ARRAY(SELECT name FROM fast_uuid_stats())', '{}'),
  ('reset', 'ARRAY[fast_uuid_reset_ordering()::text]', '{42501}'),
  ('feed_reset', 'ARRAY[uuidv7_feed_reset()::text]', '{25001,42501}');
GRANT SELECT ON kind TO plain;

CREATE FUNCTION judge(first integer, last integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  of_types text[] := '{22P02,22003,22007,22008,22009,22015,22023}';
  c record;
  latest uuid;                  -- in the session's order
  latest_ns bigint := 0;        -- in the feed's
  began timestamptz;
  got text[];
  answer text;
  sound boolean;
BEGIN
  IF EXISTS (SELECT FROM fast_uuid_sources() WHERE NOT available) THEN
    of_types := of_types || '0A000'::text;
  END IF;
  FOR c IN SELECT * FROM call JOIN kind USING (kind) WHERE n BETWEEN first AND last ORDER BY n LOOP
    began := date_trunc('milliseconds', clock_timestamp());
    BEGIN
      EXECUTE format('SELECT ' || c.call, c.argument, quote_nullable(c.extra) || '::text') INTO got;
      answer := 'value';
    EXCEPTION WHEN OTHERS THEN
      answer := SQLSTATE;
      got := ARRAY[SQLERRM];
    END;

    IF answer <> 'value' THEN
      sound := answer = ANY (c.errors || of_types);
    ELSIF c.kind = 'setting' THEN
      sound := settings_are_sound();
    ELSIF c.kind IN ('sources', 'stats') THEN
      sound := cardinality(got) = CASE c.kind WHEN 'stats' THEN 2 ELSE 4 END;
    ELSIF c.kind = 'timestamp' THEN
      sound := got[1] IS NULL OR got[1]::timestamptz >= '1970-01-01 00:00:00+00';
    ELSIF c.kind IN ('reset', 'feed_reset') THEN
      sound := true;
      latest := CASE c.kind WHEN 'feed_reset' THEN latest END;
    ELSIF c.kind = 'position' THEN
      sound := got[1]::bigint > latest_ns;
      latest_ns := got[1];
    ELSIF c.kind IN ('min', 'max') THEN
      sound := uuidv7_fast_timestamp(got[1]::uuid) IS NOT DISTINCT FROM date_trunc('milliseconds', c.argument::timestamptz);
    ELSE
      -- Made by a source that is allowed, of version 7; by now in the order, and of the time.
      SELECT (cardinality(got) = 0 OR coalesce(lower(c.extra COLLATE "C"), current_setting('fast_uuid.source')) = ANY (allowed()))
             AND coalesce(bool_and(id::text ~ '^.{14}7.{4}[89ab]' AND CASE
                 WHEN c.kind = 'shift' THEN true
                 WHEN c.kind = 'at' THEN uuidv7_fast_timestamp(id, true) = c.argument::timestamptz
                 ELSE id > before AND uuidv7_fast_timestamp(id) BETWEEN began AND clock_timestamp() END), true)
        FROM (SELECT id, lag(id, 1, coalesce(CASE WHEN c.kind <> 'feed' THEN latest END, uuidv7_fast_min('epoch'))) OVER (ORDER BY place) AS before
                FROM unnest(got::uuid[]) WITH ORDINALITY AS made (id, place)) AS made
        INTO sound;
      IF c.kind = 'feed' THEN
        sound := sound AND uuidv7_fast_ns(got[1]::uuid) > latest_ns;
        latest_ns := uuidv7_fast_ns(got[1]::uuid);
      END IF;
      IF c.kind NOT IN ('shift', 'at') THEN
        latest := coalesce(got[cardinality(got)]::uuid, latest);
      END IF;
    END IF;

    INSERT INTO answer VALUES (c.n, c.kind, answer);
    IF sound IS NOT TRUE THEN
      INSERT INTO wrong VALUES (c.n, c.kind, c.argument, c.extra, answer, left(got::text, 100));
    END IF;
  END LOOP;
END $$;
