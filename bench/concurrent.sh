#!/usr/bin/env bash
# What two sessions at once cost each other: for each scope of the order, and for
# one sequence, the time of three million values in each of two sessions, round
# after round.  Runs where psql and pgbench find a server that statements.sql has used.
#
#   concurrent.sh ROUNDS

set -euo pipefail

rounds=$1
export PGOPTIONS='-c jit=off -c max_parallel_workers_per_gather=0'
scripts=$(mktemp -d)
trap 'rm -rf "$scripts"' EXIT

count='SELECT count(%s) FROM generate_series(1, 250000);\n'
printf "SET fast_uuid.ordering = session; $count" 'uuidv7_fast()' >"$scripts/session"
printf "SET fast_uuid.ordering = cluster; $count" 'uuidv7_fast()' >"$scripts/cluster"
printf "$count" "nextval('counter')" >"$scripts/nextval"

for ((round = 0; round <= rounds; round++)); do
	for what in session cluster nextval; do
		started=$(date +%s%N)
		pgbench -n -c 2 -j 2 -t 12 -f "$scripts/$what" >"$scripts/log" 2>&1 || { cat "$scripts/log" >&2; exit 1; }
		echo "$round,$what,$(($(date +%s%N) - started))"
	done
done >"$scripts/runs"

psql -Xq -v ON_ERROR_STOP=1 <<SQL
\pset footer off
CREATE TEMP TABLE run (round integer, what text, ns bigint);
\copy run FROM '$scripts/runs' WITH (FORMAT csv)
SELECT run.what AS "two sessions, three million values each",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY run.ns / 1e6)::numeric) AS "ms, median",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY run.ns / session.ns::numeric)::numeric, 2) AS "times session order",
       round(percentile_cont(0.5) WITHIN GROUP (ORDER BY nextval.ns / run.ns::numeric)::numeric, 2) AS "throughput, times nextval's"
  FROM run
  JOIN run AS session ON session.round = run.round AND session.what = 'session'
  JOIN run AS nextval ON nextval.round = run.round AND nextval.what = 'nextval'
 WHERE run.round > 0
 GROUP BY run.what ORDER BY 2;
SQL
