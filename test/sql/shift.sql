-- uuidv7_fast(shift): the time of the value is now and an interval.
CREATE FUNCTION pg_temp.state(command text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
  EXECUTE command;
  RETURN 'made';
EXCEPTION WHEN OTHERS THEN
  RETURN SQLSTATE;
END $$;

SELECT shift, bool_and(uuidv7_fast_timestamp(id) BETWEEN date_trunc('milliseconds', before + shift)
                                                     AND after + shift) AS in_time,
       count(DISTINCT id) AS different, bool_and(substr(id::text, 15, 1) = '7') AS version_7
  FROM unnest(ARRAY['0', '1 day', '-1 day', '1 month', '-10 years', '90 minutes', '-0.5 s',
                    '1000 years']::interval[]) AS shift,
       LATERAL (SELECT clock_timestamp() AS before, uuidv7_fast(shift) AS id, clock_timestamp() AS after
                  FROM generate_series(1, 1000)) AS made
 GROUP BY shift ORDER BY shift;

-- a source may be named
SELECT count(DISTINCT uuidv7_fast(interval '1 h', name)) = count(*) AS different
  FROM fast_uuid_sources() WHERE available;

-- values of one shift ascend; the order of the others is not disturbed, also
-- not by a shift far ahead
CREATE TEMP TABLE kept (n serial, kind text, id uuid);
DO $$
BEGIN
  FOR i IN 1..1000 LOOP
    INSERT INTO kept (kind, id) VALUES ('now', uuidv7_fast());
    INSERT INTO kept (kind, id) VALUES ('day', uuidv7_fast('1 day'::interval));
    INSERT INTO kept (kind, id) VALUES ('millennium', uuidv7_fast('1000 years'::interval));
  END LOOP;
END $$;
SELECT kind, count(*), bool_and(id > previous) AS ascending,
       max(uuidv7_fast_timestamp(id)) < clock_timestamp() + interval '1 s' AS not_ahead
  FROM (SELECT kind, id, lag(id) OVER (PARTITION BY kind ORDER BY n) AS previous FROM kept) AS pairs
 GROUP BY kind ORDER BY kind;

-- the whole range of years ascends (a case of the server's own tests of uuidv7)
SELECT count(*) > 8900 AS years, bool_and(ts > previous) AS ascending
  FROM (SELECT ts, lag(ts) OVER (ORDER BY y) AS previous
          FROM (SELECT y, uuidv7_fast_timestamp(uuidv7_fast(make_interval(years => y))) AS ts
                  FROM generate_series(1970 - extract(year FROM current_date)::integer + 1,
                                       10888 - extract(year FROM current_date)::integer) AS y) AS made) AS pairs;

-- out of range: before 1970, after 10889, beyond what a timestamp holds
SELECT shift, pg_temp.state(format('SELECT uuidv7_fast(%L::interval)', shift))
  FROM unnest(ARRAY['-100 years', '-3000 years', '-178000000 years', '8900 years', '200000 years',
                    '290000 years', '178000000 years', '2147483647 days', '-2147483648 days']) AS shift;
SELECT uuidv7_fast(interval '-100 years');
SELECT uuidv7_fast(interval '8900 years');
-- infinite intervals are known to PostgreSQL 17 and later
SELECT shift, pg_temp.state(format('SELECT uuidv7_fast(%L::interval)', shift))
         = CASE WHEN current_setting('server_version_num')::integer >= 170000 THEN '22008' ELSE '22007' END AS refused
  FROM unnest(ARRAY['infinity', '-infinity']) AS shift;

-- an interval without its type is taken for a source
SELECT uuidv7_fast('-1 hour');
SELECT uuidv7_fast(NULL) IS NOT NULL AS untyped_null_is_a_source;

-- Where the server has uuidv7(shift) itself, each case has the same SQLSTATE
-- and the same time.
DO $$
DECLARE
  shift text;
  ours text;
  cores text;
  difference interval;
BEGIN
  IF to_regprocedure('pg_catalog.uuidv7(interval)') IS NULL THEN
    RETURN;
  END IF;
  FOREACH shift IN ARRAY ARRAY['0', '1 day', '-1 day', '1 month', '29 days 23:59:59.999999', '-55 years',
      '-56 years', '-57 years', '-100 years', '8862 years', '8863 years', '8864 years', '9000 years',
      '-178000000 years', '178000000 years', 'infinity', '-infinity'] LOOP
    ours := pg_temp.state(format('SELECT uuidv7_fast(%L::interval)', shift));
    cores := pg_temp.state(format('SELECT uuidv7(%L::interval)', shift));
    IF ours <> cores THEN
      RAISE WARNING 'shift %: % instead of %', shift, ours, cores;
    ELSIF ours = 'made' THEN
      EXECUTE format('SELECT uuid_extract_timestamp(uuidv7_fast(%1$L::interval)) - uuid_extract_timestamp(uuidv7(%1$L::interval))',
                     shift) INTO difference;
      IF abs(extract(epoch FROM difference)) > 60 THEN
        RAISE WARNING 'shift %: differs by %', shift, difference;
      END IF;
    END IF;
  END LOOP;
END $$;
