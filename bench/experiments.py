"""The experiments.  Each takes a Bench and records what it measures, round
after round with all its cases in turn, so that all see the same machine."""

import tempfile
import time
from contextlib import ExitStack

from generators import INSTANCE, CORE_V4, CORE_V7, DEFAULT, DURABLE, BASELINE, NEXTVAL, all_generators, core_v7, durable

MILLION = 1000000


def _time_ms(connection, statement, settings):
    """Milliseconds of a statement in the server, under settings."""
    for name, value in settings.items():
        connection.execute(f"SET {name} = '{value}'")
    ms = connection.execute('SELECT pg_temp.bench_ms(%s)', [statement]).fetchone()[0]
    for name in settings:
        connection.execute(f'RESET {name}')
    return float(ms)


def _connect(server):
    connection = server.connect()
    connection.execute("""
        CREATE FUNCTION pg_temp.bench_ms(statement text) RETURNS numeric LANGUAGE plpgsql AS $$
        DECLARE
          started timestamptz := clock_timestamp();
        BEGIN
          EXECUTE statement;
          RETURN extract(epoch FROM clock_timestamp() - started) * 1000;
        END $$""")
    return connection


def _turned(cases, n):
    """The cases from another one on in each round: none always follows the same."""
    cases = list(cases)
    n %= len(cases)
    return cases[n:] + cases[:n]


def _count(call, values=MILLION):
    return f'SELECT count({call}) FROM generate_series(1, {values})'


def requests(bench):
    """Nanoseconds per request, by source, implementation and size."""
    with bench.server.connect() as connection:
        for n in bench.rounds('Requests to the sources'):
            for source, how, size, ns in connection.execute(
                    'SELECT source, implementation, bytes, ns_per_request FROM fast_uuid_benchmark(20)'):
                bench.record('requests', f'{source} ({how})', size, n, 'ns', ns)


def statements(bench):
    """A million values by each generator, counted."""
    with _connect(bench.server) as connection:
        generators = all_generators(connection, bench.calls)
        for n in bench.rounds('A million values of each generator'):
            for one in _turned(generators, n):
                ms = _time_ms(connection, _count(one.call), one.settings)
                bench.record('statements', one.name, MILLION, n, 'ms', ms)


def bulk(bench):
    """A million values at once."""
    array = 'uuidv7_fast_array(1000000)'
    cases = [
        ('uuidv7_fast_array(1000000)', f'SELECT cardinality({array})', {}),
        ('uuidv7_fast_array(1000000), getrandom', f'SELECT cardinality({array})', {'fast_uuid.source': 'getrandom'}),
        ('uuidv7_fast_array(1000000), xorshift128+', f'SELECT cardinality({array})',
         {'fast_uuid.source': 'xorshift128+'}),
        ('uuidv7_fast_array(1000000), instance order', f'SELECT cardinality({array})', INSTANCE.settings),
        ('uuidv7_fast_set(1000000) in a target list',
         'SELECT count(id) FROM (SELECT uuidv7_fast_set(1000000) AS id) AS made', {}),
        ('generate_series(1, 1000000) in a target list: no value at all',
         'SELECT count(id) FROM (SELECT generate_series(1, 1000000) AS id) AS made', {}),
    ]
    with _connect(bench.server) as connection:
        for n in bench.rounds('In bulk'):
            for name, statement, settings in _turned(cases, n):
                bench.record('bulk', name, MILLION, n, 'ms', _time_ms(connection, statement, settings))


KEYS = [
    (DEFAULT.name, 'uuid DEFAULT uuidv7_fast()', {}),
    (INSTANCE.name, 'uuid DEFAULT uuidv7_fast()', INSTANCE.settings),
    (DURABLE.name, 'uuid DEFAULT uuidv7_fast()', DURABLE.settings),
    ('bigint identity', 'bigint GENERATED ALWAYS AS IDENTITY', {}),
    (CORE_V7.name, 'uuid DEFAULT pg_catalog.uuidv7()', {}),
    (CORE_V4.name, 'uuid DEFAULT gen_random_uuid()', {}),
]


def _keys(connection):
    missing = [one.name for one, has in ((CORE_V7, core_v7), (DURABLE, durable)) if not has(connection)]
    return [key for key in KEYS if key[0] not in missing]


def inserts(bench):
    """A million rows in one statement, the primary key by default."""
    with _connect(bench.server) as connection:
        connection.execute('CREATE EXTENSION IF NOT EXISTS pgstattuple')
        keys = _keys(connection)
        for n in bench.rounds('A million rows by each key'):
            for name, key, settings in _turned(keys, n):
                for kind in ('UNLOGGED', ''):
                    connection.execute(f'CREATE {kind} TABLE filled (id {key} PRIMARY KEY, n integer)')
                    connection.execute('CHECKPOINT')
                    before = connection.execute('SELECT pg_current_wal_insert_lsn()').fetchone()[0]
                    ms = _time_ms(connection, f'INSERT INTO filled (n) SELECT generate_series(1, {MILLION})', settings)
                    bench.record('inserts', name, kind or 'LOGGED', n, 'ms', ms)
                    if not kind:
                        wal, size, density = connection.execute("""
                            SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s),
                                   pg_relation_size('filled_pkey'),
                                   (SELECT avg_leaf_density FROM pgstatindex('filled_pkey'))""", [before]).fetchone()
                        bench.record('inserts', name, kind or 'LOGGED', n, 'WAL bytes', wal)
                        bench.record('inserts', name, kind or 'LOGGED', n, 'index bytes', size)
                        bench.record('inserts', name, kind or 'LOGGED', n, 'leaf density, %', density)
                    connection.execute('DROP TABLE filled')


def single_rows(bench):
    """One row per transaction, by 1, 2 and 8 clients."""
    with bench.server.connect() as connection, tempfile.TemporaryDirectory() as directory:
        connection.execute("ALTER DATABASE postgres SET synchronous_commit = off")
        keys = _keys(connection)
        for n in bench.rounds('One row per transaction', short=True):
            for clients in (1, 2, 8):
                for i, (name, key, settings) in enumerate(_turned(keys, n)):
                    connection.execute(f'CREATE TABLE single{i} (id {key} PRIMARY KEY, n integer)')
                    connection.execute('CHECKPOINT')
                    script = f'{directory}/{i}.sql'
                    with open(script, 'w', encoding='ascii') as file:
                        file.write(f'INSERT INTO single{i} (n) VALUES (1);\n')
                    connection.execute('ALTER DATABASE postgres RESET fast_uuid.ordering')
                    for setting, value in settings.items():
                        connection.execute(f'ALTER DATABASE postgres SET {setting} = {value}')
                    tps = bench.server.pgbench(script, clients, '-T', str(bench.seconds))
                    bench.record('single rows', name, clients, n, 'rows per second', tps)
                    connection.execute(f'DROP TABLE single{i}')
        connection.execute('ALTER DATABASE postgres RESET ALL')


def first_call(bench):
    """The first statements of a new session, with and without preloading."""
    with bench.server.connect() as connection:
        core = core_v7(connection)
    cases = {
        'nothing: SELECT 1': 'SELECT 1',
        BASELINE.name: 'SELECT fast_uuid_noop()',
        **{one.name: f'SELECT {one.call}' for one in (NEXTVAL, *core, CORE_V4, DEFAULT)},
        "uuidv7_fast('getrandom')": "SELECT uuidv7_fast('getrandom')",
        "uuidv7_fast('xorshift128+')": "SELECT uuidv7_fast('xorshift128+')",
    }
    for n in bench.rounds('First calls of new sessions', times=20):
        for how, server in (('preloaded', bench.server), ('not preloaded', bench.unpreloaded)):
            for name, statement in _turned(cases.items(), n):
                started = time.perf_counter()
                with server.connect() as connection:
                    connected = time.perf_counter()
                    connection.execute(statement).fetchall()
                    first = time.perf_counter()
                    connection.execute(statement).fetchall()
                    second = time.perf_counter()
                bench.record('first call', name, how, n, 'connect us', (connected - started) * 1e6)
                bench.record('first call', name, how, n, 'us', (first - connected) * 1e6)
                bench.record('first call', name, how, n, 'us from connecting on', (first - started) * 1e6)
                bench.record('first call', name, how, n, 'second us', (second - first) * 1e6)


def growth(bench):
    """A thousand to ten million values."""
    with _connect(bench.server) as connection:
        cases = [BASELINE, DEFAULT, INSTANCE, NEXTVAL, *core_v7(connection), CORE_V4]
        for n in bench.rounds('A thousand to ten million values', short=True):
            for exponent in range(3, 8):
                for one in _turned(cases, n):
                    ms = _time_ms(connection, _count(one.call, 10 ** exponent), one.settings)
                    bench.record('growth', one.name, 10 ** exponent, n, 'ms', ms)


def sessions(bench):
    """Values per second of 1 to 8 sessions at once."""
    values = 250000
    with bench.server.connect() as connection, tempfile.TemporaryDirectory() as directory:
        cases = [BASELINE, DEFAULT, INSTANCE, *durable(connection), NEXTVAL, *core_v7(connection)]
        for n in bench.rounds('One to eight sessions', short=True):
            for clients in (1, 2, 4, 8):
                for i, one in enumerate(_turned(cases, n)):
                    script = f'{directory}/{i}.sql'
                    with open(script, 'w', encoding='ascii') as file:
                        for setting, value in one.settings.items():
                            file.write(f'SET {setting} = {value};\n')
                        file.write(_count(one.call, values) + ';\n')
                    tps = bench.server.pgbench(script, clients, '-T', str(bench.seconds))
                    bench.record('sessions', one.name, clients, n, 'values per second', tps * values)


def clock_lead(bench):
    """How far the time in the last of many values is ahead of the clock, on a server
    whose RAND_bytes costs nothing."""
    with bench.fast_random.connect() as connection:
        cases = [DEFAULT, INSTANCE, *core_v7(connection)]
    for n in bench.rounds('Ahead of the clock', short=True):
        for one in cases:
            for million in (1, 2, 5, 10):
                # A session of its own: core's lead stays until the clock has caught up.
                with bench.fast_random.connect() as connection:
                    for setting, value in one.settings.items():
                        connection.execute(f"SET {setting} = '{value}'")
                    us = connection.execute(f"""
                        SELECT extract(epoch FROM uuidv7_fast_timestamp(id, true) - clock_timestamp()) * 1e6
                          FROM (SELECT {one.call} AS id FROM generate_series(1, {million * MILLION})
                                OFFSET {million * MILLION - 1}) AS made""").fetchone()[0]
                bench.record('clock lead', one.name, million * MILLION, n, 'us', max(us, 0))


def watermark(bench):
    """Microseconds of a call of the watermark, by the sessions whose transactions it
    has to look at."""
    calls = 20000
    with _connect(bench.large) as connection, ExitStack() as writers:
        connection.execute('CREATE FUNCTION watermark_calls(calls int) RETURNS void LANGUAGE plpgsql AS '
                           '$$ BEGIN FOR i IN 1..calls LOOP PERFORM uuidv7_fast_watermark(); END LOOP; END $$')
        connection.execute('CREATE FUNCTION other_calls(calls int) RETURNS void LANGUAGE plpgsql AS '
                           '$$ BEGIN FOR i IN 1..calls LOOP PERFORM fast_uuid_noop(); END LOOP; END $$')
        opened = 0
        for sessions in (0, 100, 1000):
            while opened < sessions:
                writer = writers.enter_context(bench.large.connect())
                writer.execute("SET fast_uuid.ordering = 'instance'; BEGIN; SELECT uuidv7_fast()")
                opened += 1
            for n in bench.rounds(f'The watermark with {sessions} transactions in flight', short=True):
                ms = [_time_ms(connection, f'SELECT {function}({calls})', {})
                      for function in ('watermark_calls', 'other_calls')]
                bench.record('watermark', 'uuidv7_fast_watermark()', sessions, n, 'us', (ms[0] - ms[1]) * 1000 / calls)


def horizon(bench):
    """What durable order writes, while two sessions generate without a pause."""
    with bench.server.connect() as connection, tempfile.NamedTemporaryFile('w', suffix='.sql') as script:
        if not durable(connection):
            return
        connection.execute('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
        script.write(f"SET fast_uuid.ordering = 'durable';\n{_count(DURABLE.call, 100000)};\n")
        script.flush()
        for n in bench.rounds('The horizon of durable order', short=True):
            connection.execute('CHECKPOINT')
            before = connection.execute('SELECT pg_current_wal_insert_lsn()').fetchone()[0]
            started = time.perf_counter()
            bench.server.pgbench(script.name, 2, '-T', str(2 * bench.seconds))
            seconds = time.perf_counter() - started
            records, size = connection.execute("""
                SELECT count(*), coalesce(sum(record_length), 0)
                  FROM pg_get_wal_records_info(%s, pg_current_wal_flush_lsn()) WHERE resource_manager = 'Generic'""",
                                               [before]).fetchone()
            bench.record('horizon', DURABLE.name, 2, n, 'flushes per second', records / seconds)
            bench.record('horizon', DURABLE.name, 2, n, 'WAL bytes per second', size / seconds)


ALL = [requests, statements, bulk, inserts, single_rows, first_call, growth, sessions, clock_lead, watermark, horizon]
