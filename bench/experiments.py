"""The experiments.  Each takes a Bench and records what it measures, round
after round with all its cases in turn, so that all see the same machine."""

import re
import time

from experiment_serializable import serializable
from experiment_wait import woken
from experiments_of_order import freshness, missed, upper_bound, watermark
from generators import BASELINE, CORE_V4, CORE_V7, DEFAULT, FEED, GUARDED, IDENTITY, NEXTVAL, POSITION, all_generators, core_v7
from timing import MILLION, connect, count, time_ms, turned


def requests(bench):
    """Nanoseconds per request, by source, implementation and size."""
    with bench.server.connect() as connection:
        for n in bench.rounds('Requests to the sources'):
            for source, how, size, ns in connection.execute(
                    'SELECT source, implementation, bytes, ns_per_request FROM fast_uuid_benchmark(20)'):
                bench.record('requests', f'{source} ({how})', size, n, 'ns', ns)


def statements(bench):
    """A million values by each generator, counted."""
    with connect(bench.server) as connection:
        generators = all_generators(connection, bench.calls)
        for n in bench.rounds('A million values of each generator'):
            for one in turned(generators, n):
                ms = time_ms(connection, count(one.call), one.settings)
                bench.record('statements', one.name, MILLION, n, 'ms', ms)


def bulk(bench):
    """A million values at once."""
    array = 'uuidv7_fast_array(1000000)'
    cases = [
        ('uuidv7_fast_array(1000000)', f'SELECT cardinality({array})', {}),
        ('uuidv7_fast_array(1000000), getrandom', f'SELECT cardinality({array})', {'fast_uuid.source': 'getrandom'}),
        ('uuidv7_fast_array(1000000), xorshift128+', f'SELECT cardinality({array})',
         {'fast_uuid.source': 'xorshift128+'}),
        ('uuidv7_fast_set(1000000) in a target list',
         'SELECT count(id) FROM (SELECT uuidv7_fast_set(1000000) AS id) AS made', {}),
        ('generate_series(1, 1000000) in a target list: no value at all',
         'SELECT count(id) FROM (SELECT generate_series(1, 1000000) AS id) AS made', {}),
    ]
    with connect(bench.server) as connection:
        for n in bench.rounds('In bulk'):
            for name, statement, settings in turned(cases, n):
                bench.record('bulk', name, MILLION, n, 'ms', time_ms(connection, statement, settings))


KEYS = [
    (DEFAULT.name, 'uuid DEFAULT uuidv7_fast()'),
    (FEED.name, 'uuid DEFAULT uuidv7_feed_id()'),
    (GUARDED, 'uuid DEFAULT uuidv7_feed_id()'),
    (POSITION.name, 'bigint DEFAULT uuidv7_feed_position()'),
    (IDENTITY, 'bigint GENERATED ALWAYS AS IDENTITY'),
    (CORE_V7.name, 'uuid DEFAULT pg_catalog.uuidv7()'),
    (CORE_V4.name, 'uuid DEFAULT gen_random_uuid()'),
]


def _keys(connection):
    return [key for key in KEYS if key[0] != CORE_V7.name or core_v7(connection)]


def _create(connection, kind, table, name, key):
    connection.execute(f'CREATE {kind} TABLE {table} (id {key} PRIMARY KEY, n integer)')
    if name == GUARDED:
        connection.execute(f'CREATE TRIGGER zz_guard BEFORE INSERT OR UPDATE ON {table}'
                           " FOR EACH ROW EXECUTE FUNCTION uuidv7_feed_guard('id')")
    connection.execute('CHECKPOINT')


def inserts(bench):
    """A million rows in one statement, the primary key by default."""
    with connect(bench.server) as connection:
        connection.execute('CREATE EXTENSION IF NOT EXISTS pgstattuple')
        keys = _keys(connection)
        for n in bench.rounds('A million rows by each key'):
            for name, key in turned(keys, n):
                for kind in ('UNLOGGED', ''):
                    _create(connection, kind, 'filled', name, key)
                    before = connection.execute('SELECT pg_current_wal_insert_lsn()').fetchone()[0]
                    ms = time_ms(connection, f'INSERT INTO filled (n) SELECT generate_series(1, {MILLION})', {})
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
    with bench.server.connect() as connection:
        keys = _keys(connection)
        for n in bench.rounds('One row per transaction', short=True):
            for clients in (1, 2, 8):
                for name, key in turned(keys, n):
                    _create(connection, '', 'single', name, key)
                    with bench.server.settings({'synchronous_commit': 'off'}):
                        tps = bench.server.pgbench('INSERT INTO single (n) VALUES (1);', clients, bench.seconds)
                    bench.record('single rows', name, clients, n, 'rows per second', tps)
                    connection.execute('DROP TABLE single')


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
            for name, statement in turned(cases.items(), n):
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


def sessions(bench):
    """Values per second of 1 to 8 sessions at once."""
    values = 250000
    with bench.server.connect() as connection:
        cases = [BASELINE, DEFAULT, FEED, POSITION, NEXTVAL, *core_v7(connection)]
    for n in bench.rounds('One to eight sessions'):
        for clients in (1, 2, 4, 8):
            for one in turned(cases, n):
                tps = bench.server.pgbench(f'{count(one.call, values)};', clients, bench.seconds)
                bench.record('sessions', one.name, clients, n, 'values per second', tps * values)


def _private_kb(connection):
    """Memory that a session has written to and no other process has, in kB.  Not in shared
    mappings: a page of the buffers that only this one has touched would count."""
    kb, private = 0, False
    with open(f'/proc/{connection.info.backend_pid}/smaps', encoding='utf-8') as file:
        for line in file:
            mapping = re.match(r'[0-9a-f]+-[0-9a-f]+ ...([ps]) ', line)
            if mapping:
                private = mapping[1] == 'p'
            elif private and line.startswith('Private_Dirty:'):
                kb += int(line.split()[1])
    return kb


def memory(bench):
    """Private memory of a session, before its first call, after it, and after a million."""
    # Not from a function in FROM, which collects its rows first.
    many = f'SELECT count({{}}) FROM (SELECT generate_series(1, {MILLION})) AS rows'
    with bench.server.connect() as connection:
        cases = [BASELINE, DEFAULT, FEED, POSITION, *core_v7(connection), CORE_V4]
    for n in bench.rounds('Memory', short=True):
        for one in turned(cases, n):
            with bench.server.connect() as connection:
                # What a statement with as many rows takes is not the generator's.
                connection.execute(many.format('now()'))
                bench.record('memory', one.name, 'before the first call', n, 'kB', _private_kb(connection))
                connection.execute(f'SELECT {one.call}')
                bench.record('memory', one.name, 'after it', n, 'kB', _private_kb(connection))
                connection.execute(many.format(one.call))
                bench.record('memory', one.name, 'after a million', n, 'kB', _private_kb(connection))


def versions(bench):
    """The index of a million ids: of version 4, of version 7, and of first the one and
    then the other."""
    cases = {
        'a million of version 4': [('gen_random_uuid()', MILLION)],
        'a million of version 7': [('uuidv7_fast()', MILLION)],
        '500,000 of version 4, then as many of version 7':
            [('gen_random_uuid()', MILLION // 2), ('uuidv7_fast()', MILLION // 2)],
    }
    with bench.server.connect() as connection:
        connection.execute('CREATE EXTENSION IF NOT EXISTS pgstattuple')
        for n in bench.rounds('Two versions in one index', short=True):
            for name, parts in turned(cases.items(), n):
                connection.execute('CREATE UNLOGGED TABLE mixed (id uuid PRIMARY KEY)')
                for call, ids in parts:
                    connection.execute(f'INSERT INTO mixed SELECT {call} FROM generate_series(1, {ids})')
                size, density = connection.execute(
                    "SELECT index_size, avg_leaf_density FROM pgstatindex('mixed_pkey')").fetchone()
                bench.record('versions', name, MILLION, n, 'index bytes', size)
                bench.record('versions', name, MILLION, n, 'leaf density, %', density)
                connection.execute('DROP TABLE mixed')


ALL = [
    requests, statements, bulk, inserts, single_rows, serializable, versions, first_call, memory, sessions,
    watermark, missed, freshness, woken, upper_bound,
]
