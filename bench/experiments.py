"""The experiments.  Each takes a Bench and records what it measures, round after round with
all its cases in turn, so that all see the same machine."""

import time
from statistics import median

from generators import (BASELINE, CORE_V4, CORE_V7, IDENTITY, KEY, NEXTVAL, PG_UUIDV7,
                        SOURCES, Generator, available)
from server import ARRAY, MILLION, count, time_ms, turned


def statements(bench):
    """A million values of each generator, counted."""
    with bench.server.connect() as connection:
        cases = available(connection, BASELINE, KEY, *SOURCES, NEXTVAL, CORE_V7,
                          CORE_V4, PG_UUIDV7, *(Generator(call, call) for call in bench.calls))
        for n in bench.rounds('A million values of each generator'):
            for one in turned(cases, n):
                ms = time_ms(connection, count(one.call), one.settings)
                bench.record('statements', one.name, MILLION, n, 'ms', ms)


def requests(bench):
    """What each source costs without fast_uuid's buffer, by the size of a request."""
    with bench.server.connect() as connection:
        for n in bench.rounds('Requests to the sources'):
            for source, implementation, size, ns in connection.execute(
                    'SELECT source, implementation, bytes, ns_per_request'
                    ' FROM fast_uuid_benchmark()'):
                name = f'getrandom, {implementation}' if source == 'getrandom' else source
                bench.record('requests', name, size, n, 'ns', ns)


def bulk(bench):
    """A million values at once."""
    with bench.server.connect() as connection:
        for n in bench.rounds('In bulk'):
            bench.record('bulk', 'uuidv7_fast_array(1000000)', MILLION, n, 'ms',
                         time_ms(connection, ARRAY))


def inserts(bench):
    """A million rows in one statement, and one row per transaction, the key by default."""
    with bench.server.connect() as connection:
        connection.execute('CREATE EXTENSION IF NOT EXISTS pgstattuple')
        keys = available(connection, KEY, IDENTITY, CORE_V7, CORE_V4)
        for n in bench.rounds('Rows by each key'):
            for key in turned(keys, n):
                connection.execute(f'CREATE TABLE filled (id {key.column} PRIMARY KEY, n integer)')
                connection.execute('CHECKPOINT')
                before = connection.execute('SELECT pg_current_wal_insert_lsn()').fetchone()[0]
                ms = time_ms(connection,
                             f'INSERT INTO filled (n) SELECT generate_series(1, {MILLION})')
                wal, size, density = connection.execute("""
                    SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s),
                           pg_relation_size('filled_pkey'), avg_leaf_density
                      FROM pgstatindex('filled_pkey')""", [before]).fetchone()
                rate = bench.server.single_rows('filled', 2, bench.seconds)
                connection.execute('DROP TABLE filled')
                for metric, value in (('ms', ms), ('WAL bytes', wal), ('index bytes', size),
                                      ('leaf density, %', density), ('rows per second', rate)):
                    bench.record('inserts', key.name, '', n, metric, value)


def first_call(bench):
    """The first statement of a new session, with and without preloading."""
    with bench.server.connect() as connection:
        cases = available(connection, BASELINE, NEXTVAL, CORE_V7, CORE_V4, KEY)
    statement = {'nothing: SELECT 1': 'SELECT 1'}
    statement.update((one.name, f'SELECT {one.call}') for one in cases)
    for n in bench.rounds('First calls of new sessions'):
        for how, server in (('preloaded', bench.server), ('not preloaded', bench.unpreloaded)):
            for name, sql in turned(statement.items(), n):
                connect, first = [], []
                for _ in range(20):
                    started = time.perf_counter()
                    with server.connect() as connection:
                        connect.append(time.perf_counter() - started)
                        first.append(time_ms(connection, sql))
                bench.record('first call', name, how, n, 'connect us', median(connect) * 1e6)
                bench.record('first call', name, how, n, 'us', median(first) * 1e3)


def sessions(bench):
    """Values per second of one to eight sessions at once."""
    values = MILLION // 4
    with bench.server.connect() as connection:
        cases = available(connection, BASELINE, KEY, NEXTVAL, CORE_V7)
    for n in bench.rounds('One to eight sessions', short=True):
        for clients in (1, 2, 4, 8):
            for one in turned(cases, n):
                script = f'{count(one.call, values)};'
                per_second = values * bench.server.pgbench(script, clients, bench.seconds)
                bench.record('sessions', one.name, clients, n, 'values per second', per_second)


ALL = [statements, requests, bulk, inserts, first_call, sessions]
