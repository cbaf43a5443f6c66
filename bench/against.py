"""Measures this checkout against another commit: both on servers of their own, in
turn within each round, and prints the ratios.  script/bench --against calls this."""

import argparse
import signal
import statistics
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from server import Server
from timing import MILLION, connect, count, time_ms

FIRST = 'SELECT uuidv7_fast()'
VALUES = count('uuidv7_fast()')
ARRAY = f'SELECT cardinality(uuidv7_fast_array({MILLION}))'
SET = f'SELECT count(id) FROM (SELECT uuidv7_fast_set({MILLION}) AS id) AS made'
INSERT = 'INSERT INTO {} ' + f'SELECT FROM generate_series(1, {MILLION})'
ROW = 'INSERT INTO {} DEFAULT VALUES'
CONNECTIONS = 40


class Build:
    """The servers of a build, one of them with the library preloaded, and a session there."""

    def __init__(self, running, bindir, directory, conf):
        self.servers = {}
        for how, preload in (('preloaded', "shared_preload_libraries = 'fast_uuid'\n"), ('not preloaded', '')):
            self.servers[how] = running.enter_context(Server(bindir, Path(f'{directory}{len(self.servers)}'), conf + preload))
            with self.servers[how].connect() as connection:
                connection.execute('CREATE EXTENSION fast_uuid')
        self.session = running.enter_context(connect(self.servers['preloaded']))
        self.feed, self.watermark, self.order = 'uuidv7_feed_id()', 'uuidv7_feed_watermark()', {}
        # A commit from before feeds had functions of their own: a setting chose the order.
        if not self.session.execute("SELECT to_regprocedure('uuidv7_feed_id()')").fetchone()[0]:
            strongest = 'durable' if self.session.info.server_version >= 170000 else 'instance'
            self.feed, self.watermark, self.order = 'uuidv7_fast()', 'uuidv7_fast_watermark()', {'fast_uuid.ordering': strongest}
        self.session.execute('CREATE UNLOGGED TABLE filled (id uuid PRIMARY KEY DEFAULT uuidv7_fast())')
        self.session.execute(f'CREATE UNLOGGED TABLE fed (id uuid PRIMARY KEY DEFAULT {self.feed})')
        self.session.execute(FIRST)

    def ms(self, statement, settings=None):
        self.session.execute('TRUNCATE filled, fed')
        return time_ms(self.session, statement, settings or {})

    def transaction_us(self, clients, statement, settings=None):
        """Of clients that do nothing else."""
        self.session.execute('TRUNCATE filled, fed')
        server = self.servers['preloaded']
        with server.settings({'synchronous_commit': 'off', **(settings or {})}):
            return 1e6 / server.pgbench(f'{statement};', clients, 3)

    def first_call_us(self, how):
        """Of new sessions, the median."""
        times = []
        for _ in range(CONNECTIONS):
            with self.servers[how].connect() as connection:
                started = time.perf_counter()
                connection.execute(FIRST).fetchall()
                times.append(time.perf_counter() - started)
        return statistics.median(times) * 1e6


CASES = {
    'a million values, ms': lambda build: build.ms(VALUES),
    'a million feed ids, ms': lambda build: build.ms(count(build.feed), build.order),
    'a million values, getrandom, ms': lambda build: build.ms(VALUES, {'fast_uuid.source': 'getrandom'}),
    'an array of a million, ms': lambda build: build.ms(ARRAY),
    'a set of a million in a target list, ms': lambda build: build.ms(SET),
    'a million rows inserted, ms': lambda build: build.ms(INSERT.format('filled')),
    'a million rows of a feed inserted, ms': lambda build: build.ms(INSERT.format('fed'), build.order),
    'a row per transaction, us': lambda build: build.transaction_us(2, ROW.format('filled')),
    'a row of a feed per transaction, us': lambda build: build.transaction_us(2, ROW.format('fed'), build.order),
    'a watermark, us': lambda build: build.transaction_us(1, f'SELECT {build.watermark}'),
    'first call, preloaded, us': lambda build: build.first_call_us('preloaded'),
    'first call, not preloaded, us': lambda build: build.first_call_us('not preloaded'),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bindir', type=Path, required=True, help='of the PostgreSQL to measure on')
    parser.add_argument('--conf', type=Path, required=True, help='lines of postgresql.conf for this checkout')
    parser.add_argument('--before', type=Path, required=True, help='the same for the other commit')
    parser.add_argument('--rounds', type=int, default=11)
    options = parser.parse_args()

    # So that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))
    pairs = {name: [] for name in CASES}
    with tempfile.TemporaryDirectory(prefix='fu') as directory, ExitStack() as running:
        builds = [Build(running, options.bindir, f'{directory}/{conf.stem}', conf.read_text(encoding='ascii'))
                  for conf in (options.conf, options.before)]
        for n in range(options.rounds + 1):
            print(f'round {n} of {options.rounds}' if n else 'warming up', flush=True)
            for name, measure in CASES.items():
                # By turns this one is the first.
                figures = {i: measure(builds[i]) for i in ((0, 1), (1, 0))[n % 2]}
                if n:
                    pairs[name].append((figures[0], figures[1]))

    print(f'\nMedians of {options.rounds} pairs; quartiles of the ratio')
    print(f'{"":46} {"now":>9} {"before":>9} {"ratio":>6}  quartiles')
    for name, figures in pairs.items():
        ratios = [new / old for new, old in figures]
        quartiles = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else ratios * 3
        new, old = (statistics.median(column) for column in zip(*figures))
        print(f'{name:46} {new:9.1f} {old:9.1f} {statistics.median(ratios):6.3f}  {quartiles[0]:.3f}-{quartiles[2]:.3f}')


if __name__ == '__main__':
    main()
