"""Measures this checkout against another commit: both on servers of their own, in
turn within each round, and prints the ratios.  script/bench --against calls this."""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from pathlib import Path

from server import Server
from timing import MILLION, connect, count, time_ms

ARRAY = f'SELECT cardinality(uuidv7_fast_array({MILLION}))'
SET = f'SELECT count(id) FROM (SELECT uuidv7_fast_set({MILLION}) AS id) AS made'
INSERT = f'INSERT INTO filled SELECT FROM generate_series(1, {MILLION})'
FIRST = 'SELECT uuidv7_fast()'
CONNECTIONS = 40


def shared_order(connection):
    """The order of all sessions, by the name that this build has for it."""
    for name in ('instance', 'cluster'):
        try:
            connection.execute(f"SET fast_uuid.ordering = '{name}'; RESET fast_uuid.ordering")
            return {'fast_uuid.ordering': name}
        except Exception:   # pylint: disable=broad-except
            continue
    return {}


def cases(connection):
    """What goes on in one session: statement and settings, by name."""
    shared = shared_order(connection)
    return {
        'a million values': (count('uuidv7_fast()'), {}),
        'a million values, order of all sessions': (count('uuidv7_fast()'), shared),
        'a million values, getrandom': (count('uuidv7_fast()'), {'fast_uuid.source': 'getrandom'}),
        'an array of a million': (ARRAY, {}),
        'an array of a million, order of all sessions': (ARRAY, shared),
        'a set of a million in a target list': (SET, {}),
        'a set of a million, order of all sessions': (SET, shared),
        'a million rows inserted': (INSERT, {}),
    }


def first_call(server):
    """Microseconds of the first call in a new session."""
    with server.connect() as connection:
        started = time.perf_counter()
        connection.execute(FIRST).fetchall()
        return (time.perf_counter() - started) * 1e6


def rows_us(server, shared):
    """Microseconds per row of two clients that insert one in each transaction."""
    with server.connect() as connection, tempfile.NamedTemporaryFile('w', suffix='.sql') as script:
        connection.execute('CREATE UNLOGGED TABLE one (id uuid PRIMARY KEY DEFAULT uuidv7_fast())')
        connection.execute('ALTER DATABASE postgres SET synchronous_commit = off')
        for setting, value in shared.items():
            connection.execute(f'ALTER DATABASE postgres SET {setting} = {value}')
        script.write('INSERT INTO one DEFAULT VALUES;\n')
        script.flush()
        tps = server.pgbench(script.name, 2, '-T', '3')
        connection.execute('ALTER DATABASE postgres RESET ALL; DROP TABLE one')
    return 1e6 / tps


def watermark_us(server):
    """Microseconds per watermark of one client that does nothing else."""
    with tempfile.NamedTemporaryFile('w', suffix='.sql') as script:
        script.write('SELECT uuidv7_fast_watermark();\n')
        script.flush()
        return 1e6 / server.pgbench(script.name, 1, '-T', '3')


def one_round(pair, first):
    """The figures of both builds, (now, before), by name; the pair of one case is
    measured together, and by turns begins with this one."""
    order = (first, 1 - first)
    figures = {}
    connections = [connect(servers[0]) for servers in pair]
    for connection in connections:
        connection.execute(FIRST)
        connection.execute('CREATE UNLOGGED TABLE filled (id uuid PRIMARY KEY DEFAULT uuidv7_fast())')
    known = [cases(connection) for connection in connections]
    for name in known[0]:
        figures[name] = [0, 0]
        for i in order:
            connections[i].execute('TRUNCATE filled')
            figures[name][i] = time_ms(connections[i], *known[i][name])
    for what, shared in (('', {}), (', order of all sessions', shared_order(connections[0]))):
        name = f'a row per transaction, two clients{what}'
        figures[name] = [0, 0]
        for i in order:
            figures[name][i] = rows_us(pair[i][0], shared)
    figures['a watermark'] = [0, 0]
    for i in order:
        figures['a watermark'][i] = watermark_us(pair[i][0])
    for connection in connections:
        connection.execute('DROP TABLE filled')
        connection.close()
    for n, how in enumerate(('preloaded', 'not preloaded')):
        times = [[], []]
        for _ in range(CONNECTIONS):
            for i in order:
                times[i].append(first_call(pair[i][n]))
        figures[f'the first call of a session, {how}'] = [statistics.median(one) for one in times]
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bindir', type=Path, required=True, help='of the PostgreSQL to measure on')
    parser.add_argument('--conf', type=Path, required=True, help='lines of postgresql.conf for this checkout')
    parser.add_argument('--before', type=Path, required=True, help='the same for the other commit')
    parser.add_argument('--rounds', type=int, default=11)
    options = parser.parse_args()

    # So that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))
    with tempfile.TemporaryDirectory(prefix='fu') as directory:
        servers = []
        for name, conf in (('now', options.conf), ('before', options.before)):
            conf = conf.read_text(encoding='ascii')
            servers.append([
                Server(options.bindir, Path(directory) / name, f"{conf}shared_preload_libraries = 'fast_uuid'\n"),
                Server(options.bindir, Path(directory) / f'{name}_loaded', conf),
            ])
        (now, now_unloaded), (before, before_unloaded) = servers
        pairs = {}
        with now, now_unloaded, before, before_unloaded:
            for server in (now, now_unloaded, before, before_unloaded):
                with server.connect() as connection:
                    connection.execute('CREATE EXTENSION fast_uuid')
            for n in range(options.rounds + 1):
                print(f'round {n} of {options.rounds}' if n else 'warming up', flush=True)
                for name, figures in one_round(servers, n % 2).items():
                    if n:
                        pairs.setdefault(name, []).append(figures)

    print(f'\nMedians of {options.rounds} pairs; quartiles of the ratio')
    print(f'{"":46} {"now":>9} {"before":>9} {"ratio":>6}  quartiles')
    for name, figures in pairs.items():
        ratios = [new / old for new, old in figures]
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        unit = 'us' if 'first call' in name or 'a row per' in name or name == 'a watermark' else 'ms'
        new, old = (statistics.median(column) for column in zip(*figures))
        print(f'{name:46} {new:6.1f} {unit} {old:6.1f} {unit} {statistics.median(ratios):6.3f}'
              f'  {quartiles[0]:.3f}-{quartiles[2]:.3f}')


if __name__ == '__main__':
    main()
