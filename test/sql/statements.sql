-- The UUIDs of a session ascend, and keep their time, whatever it does between: random
-- statements with every source, setting and order, in bulk, by default, from a resting cursor,
-- in transactions and savepoints that are rolled back, after errors, beside UUIDs of other times.
\set ECHO none
CREATE TEMP TABLE item (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), n int);
CREATE FUNCTION pg_temp.change(name text, value text) RETURNS uuid[] LANGUAGE sql AS
  $$ SELECT NULL::uuid[] FROM set_config('fast_uuid.' || name, value, random() < 0.5) $$;
CREATE PROCEDURE pg_temp.run(steps int, seed bigint, INOUT ran bigint, INOUT wrong text)
  LANGUAGE plpgsql AS $$
DECLARE
  -- %1$L: a source or NULL, %2$s: a number from 1 to 600, %3$L: an order
  statements text[] := ARRAY[
    'SELECT ARRAY[uuidv7_fast()]',
    'SELECT ARRAY[uuidv7_fast(%1$L), uuidv7_fast()]',
    'SELECT uuidv7_fast_array(%2$s, %1$L)',
    'SELECT ARRAY(SELECT uuidv7_fast_set(%2$s, %1$L))',
    'SELECT ARRAY(SELECT uuidv7_fast_set(1000, %1$L) LIMIT %2$s)',
    'WITH made AS (INSERT INTO item (n) SELECT generate_series(1, %2$s) RETURNING id)
     SELECT array_agg(id) FROM made',
    'SELECT NULL::uuid[] FROM uuidv7_fast(interval ''1 h'' * (600 - 2 * %2$s), %1$L)',
    'SELECT NULL::uuid[] FROM uuidv7_fast_at(now() + interval ''10 years'', %1$L)',
    'SELECT array_agg(uuidv7_fast(CASE WHEN n < 5 THEN %1$L ELSE ''typo'' END))
       FROM generate_series(1, %2$s) AS n',
    -- A reset that is refused, in a transaction with UUIDs of instance order.
    'SELECT CASE WHEN set_config(''fast_uuid.ordering'', ''instance'', true) = ''instance''
         AND uuidv7_fast() IS NOT NULL THEN fast_uuid_reset_ordering()::text::uuid[] END',
    'SELECT pg_temp.change(''source'', %1$L)',
    'SELECT pg_temp.change(''buffer_size'', ''%2$s'')',
    'SELECT pg_temp.change(''vdso'', (%2$s %% 2)::text)',
    'SELECT pg_temp.change(''seed'', ''%2$s'')',
    'SELECT pg_temp.change(''allowed_sources'', coalesce(%1$L, ''urandom, xorshift128+''))',
    'SELECT pg_temp.change(''allowed_sources'', ''openssl, getrandom, urandom, xorshift128+'')',
    'SELECT pg_temp.change(''ordering'', %3$L)'];
  sources text[] := ARRAY(SELECT name FROM fast_uuid_sources() WHERE available) || NULL::text;
  -- Before 17 a wider order can be had preloaded alone.
  orders text[] := CASE WHEN current_setting('server_version_num')::int >= 170000
      OR current_setting('shared_preload_libraries') LIKE '%fast_uuid%'
    THEN '{session,instance}' ELSE '{session}' END;
  reached bool[];
  latest uuid := uuidv7_fast();
  resting refcursor := 'resting';
  chosen int;
  ids uuid[];
  id uuid;
BEGIN
  PERFORM setseed(seed / 2.0 ^ 32);
  FOR step IN 1..steps LOOP
    chosen := 1 + floor(random() * cardinality(statements));
    ids := NULL;
    BEGIN
      EXECUTE format(statements[chosen], sources[1 + floor(random() * cardinality(sources))],
                     1 + floor(600 * random() ^ 3),
                     orders[1 + floor(random() * cardinality(orders))]) INTO ids;
      reached[chosen] := true;
      IF random() < 0.3 THEN
        IF NOT EXISTS (SELECT FROM pg_cursors WHERE name = 'resting') THEN
          OPEN resting FOR SELECT uuidv7_fast_set(1000);
        END IF;
        FETCH resting INTO id;
        ids := ids || id;
      END IF;
      IF random() < 0.2 THEN
        RAISE 'rolled back';
      END IF;
    EXCEPTION WHEN raise_exception OR invalid_parameter_value OR insufficient_privilege
        OR active_sql_transaction OR object_not_in_prerequisite_state THEN
      EXECUTE 'CLOSE ALL';
    END;
    FOREACH id IN ARRAY coalesce(ids, '{}') LOOP
      IF (id > latest AND uuidv7_fast_timestamp(id) < uuidv7_fast_timestamp(latest) + '30 min'
         ) IS NOT TRUE THEN
        wrong := coalesce(wrong, format('TEST_SEED=%s: %s after %s: %s', seed, id, latest,
                                        statements[chosen]));
      END IF;
      latest := id;
    END LOOP;
    IF random() < 0.2 THEN
      IF random() < 0.5 THEN COMMIT; ELSE ROLLBACK; END IF;
    END IF;
  END LOOP;
  ran := cardinality(array_remove(reached, NULL));
END $$;
SELECT floor(random() * 2 ^ 32) AS seed \gset
\getenv seed TEST_SEED
CALL pg_temp.run(3000, :seed, NULL, NULL);
