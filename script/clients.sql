-- What script/clients asserts of an example: its output is the standard input,
-- :started the time before it ran, :table holds its rows.
\set ON_ERROR_STOP on
SET client_min_messages = warning;
CREATE TEMP TABLE printed (row int GENERATED ALWAYS AS IDENTITY, line text);
\copy printed (line) FROM pstdin

CREATE TEMP VIEW value AS
SELECT row, part[1]::uuid AS id, part[2]::int AS version,
       date_trunc('milliseconds', part[3]::timestamptz) AS time,
       date_trunc('milliseconds', part[4]::timestamptz) AS server_time,
       part[5]::timestamptz AS now
  FROM printed, regexp_match(line, '^(\S+) version (\d+), time (.+), server (.+), now (.+)$') AS part;

CREATE TEMP VIEW stored AS SELECT id FROM :"table";
CREATE TEMP VIEW run AS SELECT :'started'::timestamptz AS started;

SELECT line FROM printed ORDER BY row;
DO $$
BEGIN
  ASSERT (SELECT count(*) = 3 AND count(id) = 3 FROM value), 'three lines of the agreed form';
  ASSERT (SELECT array_agg(id ORDER BY row) FROM value) = (SELECT array_agg(id ORDER BY id) FROM stored),
    'the ids of the table, ascending in the order of insertion';
  ASSERT (SELECT bool_and(version = 7) FROM value), 'version 7';
  ASSERT (SELECT bool_and(time = server_time) FROM value), 'client and server read the same time';
  ASSERT (SELECT bool_and(time = uuidv7_fast_timestamp(id)) FROM value), 'that is the time of the id';
  ASSERT (SELECT bool_and(time BETWEEN date_trunc('milliseconds', started) AND now AND now <= clock_timestamp())
            FROM value, run), 'made while the example ran';
END
$$;
