-- What a DBA can see: sources, what was fetched from them, the benchmark.
\set ECHO none
\c -
-- A build without OpenSSL says so, and has another default; all else is the same.
CREATE TEMP VIEW sources AS
  SELECT *, reason IS NOT DISTINCT FROM 'fast_uuid was built without OpenSSL.' AS not_built
    FROM fast_uuid_sources();
SELECT name, cryptographic, available <> not_built AS available, allowed,
       CASE WHEN NOT not_built THEN reason END AS reason,
       current = (name = (SELECT name FROM sources WHERE NOT not_built LIMIT 1)) AS right_default,
       not_built OR implementation ~ CASE name
         WHEN 'openssl' THEN '^\w+SSL [0-9.]+'
         WHEN 'getrandom' THEN '^(vDSO|system call)$'
         WHEN 'urandom' THEN '^/dev/urandom$'
         WHEN 'xorshift128+' THEN '^seeded from strong entropy$' ELSE '.' END AS described
  FROM sources;
SET fast_uuid.vdso = off;
SET fast_uuid.seed = '7';
SET fast_uuid.source = 'urandom';
SELECT name, current, implementation FROM fast_uuid_sources()
 WHERE name IN ('getrandom', 'urandom', 'xorshift128+');

-- nothing is fetched before it is needed
\c -
SELECT sum(refills) AS refills, sum(bytes) AS bytes FROM fast_uuid_sources();
-- the benchmark: a row for each source, implementation and size; it leaves the settings
CREATE TEMP TABLE measured AS SELECT * FROM fast_uuid_benchmark(1);
SELECT array_agg(DISTINCT source)
         = (SELECT array_agg(name ORDER BY name) FROM fast_uuid_sources() WHERE available) AS all,
       count(*) = 6 * count(DISTINCT (source, implementation)) AS six_sizes,
       array_agg(DISTINCT bytes) AS bytes,
       -- up to the two roundings, to a tenth each
       bool_and(ns_per_request > 0 AND abs(mb_per_second - 1000.0 * bytes / ns_per_request)
                <= 0.051 * (1 + mb_per_second / ns_per_request)) AS measured,
       count(*) FILTER (WHERE implementation = 'system call') AS by_system_call,
       count(*) FILTER (WHERE implementation = 'vDSO') = 6 * (
         SELECT count(*) FROM fast_uuid_sources() WHERE implementation = 'vDSO') AS by_vdso
  FROM measured;
SHOW fast_uuid.vdso;
SET fast_uuid.vdso = off;
SELECT count(*) > 0 AS measured FROM fast_uuid_benchmark(1);
SHOW fast_uuid.vdso;
SELECT implementation FROM fast_uuid_sources() WHERE name = 'getrandom';
