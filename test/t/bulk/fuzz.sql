-- The judge of fuzz.pl: carries out calls and keeps those whose answer is wrong.

CREATE EXTENSION fast_uuid;

-- argument: of the type that the kind takes; extra: the source, the flag of
-- uuidv7_fast_timestamp, or the name of a setting.
CREATE UNLOGGED TABLE call (n integer PRIMARY KEY, kind text, argument text, extra text);
CREATE UNLOGGED TABLE answer (n integer, kind text, answer text);
CREATE UNLOGGED TABLE wrong (n integer, kind text, argument text, extra text, answer text, reasons text[], got text);
GRANT ALL ON call, answer, wrong TO plain;
GRANT EXECUTE ON FUNCTION fast_uuid_stats() TO plain;

CREATE FUNCTION ms(ts timestamptz) RETURNS numeric IMMUTABLE LANGUAGE sql
  RETURN floor(extract(epoch FROM ts) * 1000);
CREATE FUNCTION ms(id uuid) RETURNS numeric IMMUTABLE LANGUAGE sql
  RETURN ('x' || left(replace(id::text, '-', ''), 12))::bit(48)::bigint;
CREATE FUNCTION is_v7(id uuid) RETURNS boolean IMMUTABLE LANGUAGE sql
  RETURN id::text ~ '^.{14}7.{4}[89ab]';
CREATE FUNCTION in_range(ts timestamptz) RETURNS boolean IMMUTABLE LANGUAGE sql
  RETURN ts BETWEEN '1970-01-01 00:00:00+00' AND '10889-08-02 05:31:50.655999+00';

-- The time shifted; null where PostgreSQL itself finds it out of range.
CREATE FUNCTION shifted(ts timestamptz, shift interval) RETURNS timestamptz LANGUAGE plpgsql AS $$
BEGIN
  RETURN ts + shift;
EXCEPTION WHEN datetime_field_overflow THEN
  RETURN NULL;
END $$;

-- The time that the bits of a version 7 UUID hold.
CREATE FUNCTION time_of(id uuid, sub_ms boolean) RETURNS numeric IMMUTABLE LANGUAGE sql AS $$
  SELECT ms(id) * 1000 + CASE WHEN sub_ms THEN
    least(ceil((('x0' || substr(hex, 14, 3))::bit(16)::integer * 256
                + (('x' || substr(hex, 17, 3))::bit(12)::integer >> 2 & 255)) * 1000000.0 / 1048576), 999999)::integer / 1000
    ELSE 0 END
  FROM replace(id::text, '-', '') AS hex $$;

-- What may be wrong with setting a setting; certain: it is.
CREATE FUNCTION setting_reasons(name text, value text, superuser boolean,
                                OUT reasons text[], OUT certain boolean) LANGUAGE plpgsql AS $$
DECLARE
  setting text := lower(substr(name, 11));
  sources text[] := '{openssl,getrandom,urandom,xorshift128+}';
BEGIN
  reasons := '{}';
  certain := true;
  IF setting <> ALL ('{source,allowed_sources,ordering,required_ordering,buffer_size,vdso,seed,max_clock_lead}') THEN
    reasons := '{42602,42704}';
  ELSIF setting IN ('allowed_sources', 'seed', 'required_ordering') AND NOT superuser THEN
    reasons := '{42501}';
  ELSIF value IS NULL THEN
    NULL;                       -- RESET
  ELSIF setting = 'source' THEN
    IF lower(value COLLATE "C") <> ALL (sources) THEN
      reasons := '{22023}';
    END IF;
  ELSIF setting IN ('ordering', 'required_ordering') THEN
    IF lower(value COLLATE "C") NOT IN ('session', 'instance', 'durable') THEN
      reasons := '{22023}';
    END IF;
  ELSIF setting = 'seed' THEN
    IF NOT (value = '' OR
            CASE WHEN value ~ '^[0-9]+$' THEN
                   length(ltrim(value, '0')) < 20 OR
                   length(ltrim(value, '0')) = 20 AND ltrim(value, '0') COLLATE "C" <= '18446744073709551615'
                 ELSE value ~ '^0[xX][0-9a-fA-F]+$' AND length(ltrim(substr(value, 3), '0')) <= 16 END) THEN
      reasons := '{22023}';
    END IF;
  ELSE
    reasons := '{22023}';
    certain := false;
  END IF;
END $$;

-- The allowed sources, read from the setting.
CREATE FUNCTION allowed() RETURNS text[] LANGUAGE sql AS $$
  SELECT coalesce(array_agg(lower(name)), '{}')
    FROM regexp_split_to_table(current_setting('fast_uuid.allowed_sources'), E'[, "\t\n\r\f\v]') AS name WHERE name <> '' $$;

-- Are all settings what they can be?
CREATE FUNCTION settings_are_sound() RETURNS boolean LANGUAGE sql AS $$
  SELECT current_setting('fast_uuid.source') IN ('openssl', 'getrandom', 'urandom', 'xorshift128+')
     AND current_setting('fast_uuid.ordering') IN ('session', 'instance', 'durable')
     AND current_setting('fast_uuid.required_ordering') IN ('session', 'instance', 'durable')
     AND current_setting('fast_uuid.vdso') IN ('on', 'off')
     AND pg_size_bytes(regexp_replace(current_setting('fast_uuid.buffer_size'), '([0-9])B', '\1 bytes')) BETWEEN 0 AND 65536
     AND current_setting('fast_uuid.max_clock_lead') ~ '^(-1|0|[1-9][0-9]*(ms|s|min|h|d))$'
     AND allowed() <@ '{openssl,getrandom,urandom,xorshift128+}' $$;

CREATE FUNCTION judge(first integer, last integer) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
  superuser CONSTANT boolean := current_setting('is_superuser');
  unavailable CONSTANT text[] := (SELECT coalesce(array_agg(name), '{}') FROM fast_uuid_sources() WHERE NOT available);
  sources CONSTANT text[] := '{openssl,getrandom,urandom,xorshift128+}';
  type CONSTANT jsonb := '{"shift": "interval", "at": "timestamptz", "min": "timestamptz", "max": "timestamptz",
                           "array": "integer", "set": "bigint", "timestamp": "uuid", "benchmark": "integer"}';
  c call;
  cast_refused text;
  reasons text[];
  certain boolean;              -- an error must come
  source text;
  statement text;
  began timestamptz;
  low timestamptz;
  high timestamptz;
  wanted bigint;
  latest uuid;                  -- in the session's order
  ids uuid[];
  got text;
  answer text;
  sound boolean;
BEGIN
  FOR c IN SELECT * FROM call WHERE n BETWEEN first AND last ORDER BY n LOOP
    reasons := '{}';
    certain := true;
    ids := NULL;
    got := NULL;

    -- What PostgreSQL's own type says of the argument.
    cast_refused := NULL;
    IF type ? c.kind AND c.argument IS NOT NULL THEN
      BEGIN
        EXECUTE format('SELECT (%L::%s)::text', c.argument, type ->> c.kind) INTO got;
      EXCEPTION WHEN OTHERS THEN
        cast_refused := SQLSTATE;
        IF SQLSTATE NOT IN ('22P02', '22003', '22007', '22008', '22015', '22023', '22009') THEN
          INSERT INTO wrong VALUES (c.n, c.kind, c.argument, c.extra, SQLSTATE, NULL, 'cast');
        END IF;
      END;
    END IF;
    began := clock_timestamp();

    -- What is wrong with the call.
    IF cast_refused IS NOT NULL THEN
      reasons := ARRAY[cast_refused];
    ELSIF c.kind IN ('now', 'shift', 'at', 'array', 'set') THEN
      source := coalesce(lower(c.extra COLLATE "C"), current_setting('fast_uuid.source'));
      IF source <> ALL (sources) THEN
        reasons := reasons || '22023'::text;
      ELSIF source <> ALL (allowed()) AND NOT (c.kind IN ('array', 'set') AND c.argument::bigint = 0) THEN
        reasons := reasons || '42501'::text;
      ELSIF source = ANY (unavailable) THEN
        reasons := reasons || '0A000'::text;
      END IF;
      IF c.kind <> 'now' AND c.argument IS NULL THEN
        reasons := reasons || '22004'::text;
      ELSIF c.kind = 'at' AND NOT in_range(c.argument::timestamptz) THEN
        reasons := reasons || '22008'::text;
      ELSIF c.kind IN ('array', 'set') THEN
        wanted := c.argument;
        IF wanted < 0 OR c.kind = 'array' AND wanted > 67108862 THEN
          reasons := reasons || '22023'::text;
        END IF;
      END IF;
    ELSIF c.kind IN ('min', 'max') AND c.argument IS NOT NULL AND NOT in_range(c.argument::timestamptz) THEN
      reasons := '{22008}';
    ELSIF c.kind = 'setting' THEN
      SELECT * FROM setting_reasons(c.extra, c.argument, superuser) INTO reasons, certain;
    ELSIF c.kind IN ('reset', 'benchmark') AND NOT superuser THEN
      reasons := '{42501}';
    ELSIF c.kind = 'benchmark' AND c.argument::integer NOT BETWEEN 1 AND 10000 THEN
      reasons := '{22023}';
    END IF;

    statement := CASE c.kind
      WHEN 'now' THEN CASE WHEN c.extra IS NULL AND c.n % 2 = 0 THEN 'SELECT ARRAY[uuidv7_fast()]'
                      ELSE 'SELECT ARRAY[uuidv7_fast(%2$s)]' END
      WHEN 'shift' THEN 'SELECT ARRAY[uuidv7_fast(%1$L::interval, %2$s)]'
      WHEN 'at' THEN 'SELECT ARRAY[uuidv7_fast_at(%1$L, %2$s)]'
      WHEN 'array' THEN 'SELECT uuidv7_fast_array(%1$L, %2$s)'
      WHEN 'set' THEN 'SELECT ARRAY(SELECT uuidv7_fast_set(%1$L, %2$s) LIMIT 300)'
      WHEN 'min' THEN 'SELECT ARRAY[uuidv7_fast_min(%1$L)]'
      WHEN 'max' THEN 'SELECT ARRAY[uuidv7_fast_max(%1$L)]'
      WHEN 'timestamp' THEN 'SELECT uuidv7_fast_timestamp(%1$L, %2$s::boolean)'
      WHEN 'setting' THEN 'SELECT set_config(%2$s, %1$L, ' || (c.n % 3 = 0) || ')'
      WHEN 'sources' THEN 'SELECT count(*) = 4 AND count(*) FILTER (WHERE current) = 1
                              AND bool_and(allowed = (name = ANY (allowed()))) FROM fast_uuid_sources()'
      WHEN 'stats' THEN 'SELECT count(*) = 7 AND bool_and(bytes BETWEEN 8 * refills AND 65536 * refills) FROM fast_uuid_stats()'
      WHEN 'reset' THEN 'SELECT fast_uuid_reset_ordering()'
      WHEN 'benchmark' THEN 'SELECT count(*) FROM fast_uuid_benchmark(%1$L) WHERE ns_per_request > 0'
    END;
    -- The text as a constant, or as a row of the table holds it.
    statement := format(statement, c.argument, CASE WHEN c.n % 5 < 3 THEN quote_nullable(c.extra) || '::text' ELSE '$1' END);

    BEGIN
      IF c.kind IN ('now', 'shift', 'at', 'array', 'set', 'min', 'max') THEN
        EXECUTE statement INTO ids USING c.extra;
      ELSE
        EXECUTE statement INTO got USING c.extra;
      END IF;
      answer := 'value';
    EXCEPTION WHEN OTHERS THEN
      answer := SQLSTATE;
      got := SQLERRM;
    END;

    -- Whether a shift leads out of range depends on the moment of the call.
    IF c.kind = 'shift' AND cast_refused IS NULL AND c.argument IS NOT NULL THEN
      low := shifted(began, c.argument::interval);
      high := shifted(clock_timestamp(), c.argument::interval);
      IF NOT coalesce(in_range(low) AND in_range(high), false) THEN
        certain := NOT coalesce(in_range(low) OR in_range(high), false) OR reasons <> '{}';
        reasons := reasons || '22008'::text;
      END IF;
    END IF;

    IF answer <> 'value' THEN
      sound := answer = ANY (reasons);
    ELSIF reasons <> '{}' AND certain THEN
      sound := false;
    ELSIF c.kind IN ('now', 'array', 'set') THEN
      SELECT cardinality(ids) = CASE c.kind WHEN 'now' THEN 1 WHEN 'array' THEN wanted ELSE least(wanted, 300) END
             AND coalesce(bool_and(is_v7(id) AND id > before AND ms(id) BETWEEN ms(began) AND ms(clock_timestamp())), true)
        FROM (SELECT id, lag(id, 1, coalesce(latest, uuidv7_fast_min('epoch'))) OVER (ORDER BY place) AS before
                FROM unnest(ids) WITH ORDINALITY AS made (id, place)) AS made
        INTO sound;
      latest := coalesce(ids[cardinality(ids)], latest);
    ELSIF c.kind = 'shift' THEN
      sound := is_v7(ids[1]) AND ms(ids[1]) BETWEEN ms(low) AND ms(high);
    ELSIF c.kind = 'at' THEN
      sound := is_v7(ids[1]) AND time_of(ids[1], true) = extract(epoch FROM c.argument::timestamptz) * 1000000;
    ELSIF c.kind IN ('min', 'max') THEN
      sound := ids[1] IS NOT DISTINCT FROM
        (lpad(to_hex(ms(c.argument::timestamptz)::bigint), 12, '0')
         || CASE c.kind WHEN 'min' THEN '70008000000000000000' ELSE '7fffbfffffffffffffff' END)::uuid;
    ELSIF c.kind = 'timestamp' THEN
      sound := extract(epoch FROM got::timestamptz) * 1000000 IS NOT DISTINCT FROM
        CASE WHEN is_v7(c.argument::uuid) THEN time_of(c.argument::uuid, c.extra::boolean) END
        OR c.extra IS NULL AND got IS NULL;
    ELSIF c.kind = 'setting' THEN
      sound := settings_are_sound();
    ELSIF c.kind = 'benchmark' THEN
      sound := CASE WHEN c.argument IS NULL THEN got = '0' ELSE got::integer >= 16 - 4 * cardinality(unavailable) END;
    ELSIF c.kind = 'reset' THEN
      sound := true;
      latest := NULL;
    ELSE
      sound := got;
    END IF;

    INSERT INTO answer VALUES (c.n, c.kind, answer);
    IF sound IS NOT TRUE THEN
      INSERT INTO wrong VALUES (c.n, c.kind, c.argument, c.extra, answer, reasons, coalesce(got, left(ids::text, 100)));
    END IF;
  END LOOP;
END $$;
