"""Measures this checkout against another commit: both on servers of their own, in turn
within each round, and prints the ratios.  script/bench --against calls this, with the
lines of postgresql.conf for each."""

import argparse
import signal
import statistics
import sys
import tempfile
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from generators import KEY, SOURCES
from results import quartiles
from server import ARRAY, MILLION, Server, count, time_ms

FIRST = f'SELECT {KEY.call}'
UNBUFFERED = MILLION // 10    # values: some sources take microseconds for one
INSERT = f'INSERT INTO filled SELECT FROM generate_series(1, {MILLION})'
ROW = 'INSERT INTO filled DEFAULT VALUES'


class Build:
    """The servers of a build, one of them with the library preloaded, and a session there."""

    def __init__(self, running, bindir, directory, conf):
        preload = "shared_preload_libraries = 'fast_uuid'\n"
        self.preloaded = Server(bindir, Path(f'{directory}a'), conf + preload)
        self.unpreloaded = Server(bindir, Path(f'{directory}b'), conf)
        for server in self.preloaded, self.unpreloaded:
            running.enter_context(server)
            with server.connect() as connection:
                connection.execute('CREATE EXTENSION fast_uuid')
        self.session = running.enter_context(self.preloaded.connect())
        self.session.execute(f'CREATE UNLOGGED TABLE filled (id {KEY.column} PRIMARY KEY)')

    def ms(self, statement, settings=None):
        self.session.execute('TRUNCATE filled')
        return time_ms(self.session, statement, settings)

    def value_ns(self, generator):
        values = UNBUFFERED if 'fast_uuid.buffer_size' in generator.settings else MILLION
        return self.ms(count(generator.call, values), generator.settings) * 1e6 / values

    def transaction_us(self, clients, statement):
        """Of clients that do nothing else."""
        self.session.execute('TRUNCATE filled')
        return 1e6 / self.preloaded.pgbench(f'{statement};', clients, 3)


def first_call_us(server):
    """Of new sessions, the median."""
    times = []
    for _ in range(40):
        with server.connect() as connection:
            times.append(time_ms(connection, FIRST) * 1000)
    return statistics.median(times)


CASES = {
    **{f'{one.name}, ns': partial(Build.value_ns, generator=one) for one in (KEY, *SOURCES)},
    'an array of a million, ms': lambda build: build.ms(ARRAY),
    'a million rows inserted, ms': lambda build: build.ms(INSERT),
    'a row per transaction, us': lambda build: build.transaction_us(2, ROW),
    'first call, preloaded, us': lambda build: first_call_us(build.preloaded),
    'first call, not preloaded, us': lambda build: first_call_us(build.unpreloaded),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bindir', type=Path, required=True)
    parser.add_argument('--conf', type=Path, required=True)
    parser.add_argument('--before', type=Path, required=True)
    parser.add_argument('--rounds', type=int, default=11)
    options = parser.parse_args()

    # So that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))
    now, before = ({name: [] for name in CASES} for _ in range(2))
    with tempfile.TemporaryDirectory(prefix='fu') as directory, ExitStack() as running:
        builds = [(figures, Build(running, options.bindir, f'{directory}/{conf.stem}',
                                  conf.read_text(encoding='ascii')))
                  for figures, conf in ((now, options.conf), (before, options.before))]
        for n in range(options.rounds + 1):
            print(f'round {n} of {options.rounds}' if n else 'warming up', flush=True)
            builds.reverse()    # by turns this one is the first
            for name, measure in CASES.items():
                for figures, build in builds:
                    value = measure(build)
                    if n:
                        figures[name].append(value)

    print(f'\nMedians of {options.rounds} rounds; quartiles of the ratio within a round')
    print(f'{"":44} {"now":>9} {"before":>9} {"ratio":>6}  quartiles')
    for name in CASES:
        ratios = [new / old for new, old in zip(now[name], before[name])]
        q1, ratio, q3 = quartiles(ratios)
        print(f'{name:44} {statistics.median(now[name]):9.1f}'
              f' {statistics.median(before[name]):9.1f} {ratio:6.3f}  {q1:.3f}-{q3:.3f}')


if __name__ == '__main__':
    main()
