-- What a DBA can see: sources, the statistics of the orders, the benchmark.
\c -
-- A build without OpenSSL says so, and has another default; all else is the same.
CREATE TEMP VIEW sources AS
  SELECT *, reason IS NOT DISTINCT FROM 'fast_uuid was built without OpenSSL.' AS not_built
    FROM fast_uuid_sources();
SELECT name, cryptographic, available <> not_built AS available, allowed, CASE WHEN NOT not_built THEN reason END AS reason
  FROM sources;
SELECT name = (SELECT name FROM sources WHERE NOT not_built LIMIT 1) AS first_is_default FROM sources WHERE current;
SELECT name, not_built OR implementation ~ CASE name
         WHEN 'openssl' THEN '^\w+SSL [0-9.]+'
         WHEN 'getrandom' THEN '^(vDSO|system call)$'
         WHEN 'urandom' THEN '^/dev/urandom$'
         ELSE '^seeded from strong entropy$' END AS described
  FROM sources;
SET fast_uuid.vdso = off;
SET fast_uuid.seed = '7';
SET fast_uuid.source = 'urandom';
SELECT name, current, CASE WHEN name IN ('getrandom', 'xorshift128+') THEN implementation END AS implementation
  FROM fast_uuid_sources();

-- refills: 64 bytes at first, doubling to the size of the buffer
\c -
-- (whether there is an instance to speak of depends on the server)
SELECT name, refills, bytes FROM fast_uuid_sources();
SELECT * FROM fast_uuid_stats() WHERE name <> 'instance';
SELECT count(uuidv7_fast('urandom')) FROM generate_series(1, 9);
SELECT count(uuidv7_fast('getrandom')) FROM generate_series(1, 10000);
SET fast_uuid.buffer_size = 100;
SELECT count(uuidv7_fast('xorshift128+')) FROM generate_series(1, 100);
SET fast_uuid.buffer_size = 0;
SELECT cardinality(uuidv7_fast_array(33, 'urandom'));
SELECT name, refills, bytes FROM fast_uuid_sources();
SELECT name, clock_lead < interval '1 ms' AS no_lead, largest_clock_lead < interval '1 ms' AS never_a_lead
  FROM fast_uuid_stats() WHERE name <> 'instance';

-- the benchmark: a row for each source, implementation and size
SELECT array_agg(DISTINCT source) = (SELECT array_agg(name ORDER BY name) FROM fast_uuid_sources() WHERE available) AS all_sources,
       count(*) = 4 * count(DISTINCT (source, implementation)) AS four_sizes,
       array_agg(DISTINCT bytes) AS bytes, bool_and(ns_per_request > 0) AS measured
  FROM fast_uuid_benchmark(1);
SELECT count(*) FILTER (WHERE implementation = 'system call') AS by_system_call,
       count(*) FILTER (WHERE implementation = 'vDSO')
         = 4 * (SELECT count(*) FROM (SELECT set_config('fast_uuid.vdso', 'on', false)) AS on_again, fast_uuid_sources()
                 WHERE implementation = 'vDSO') AS by_vdso_where_there_is_one
  FROM fast_uuid_benchmark(1) WHERE source = 'getrandom';
-- it leaves the settings as they were, also when it is cancelled
SET fast_uuid.vdso = on;
SELECT count(*) > 0 AS measured FROM fast_uuid_benchmark(1);
SHOW fast_uuid.vdso;
SET fast_uuid.vdso = off;
SET statement_timeout = '20ms';
SELECT count(*) FROM fast_uuid_benchmark(10000);
RESET statement_timeout;
SHOW fast_uuid.vdso;
SELECT implementation = 'system call' AS off_is_off
  FROM (SELECT set_config('fast_uuid.vdso', 'off', false)) AS off, fast_uuid_sources() WHERE name = 'getrandom';
SELECT * FROM fast_uuid_benchmark(0);
SELECT * FROM fast_uuid_benchmark(10001);
SELECT count(*) FROM fast_uuid_benchmark(NULL);
CREATE ROLE regress_fast_uuid_guest;
SET ROLE regress_fast_uuid_guest;
SELECT count(*) FROM fast_uuid_sources();
SELECT count(*) FROM fast_uuid_stats();
SELECT count(*) FROM fast_uuid_benchmark(1);
RESET ROLE;
DROP ROLE regress_fast_uuid_guest;
