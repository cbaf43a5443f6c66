"""Runs the experiments on throwaway servers of the PostgreSQL of --bindir, and
writes results.csv and machine.json.  script/bench calls this."""

import argparse
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import experiments
import machine
from results import Results
from server import Server

BENCH = Path(__file__).resolve().parent


class Bench:
    """What an experiment works with: the servers, and where figures go."""

    def __init__(self, options, results):
        self.calls = options.function
        self.seconds = options.seconds
        self.record = results.record
        self.number_of_rounds = options.rounds
        self.server = self.unpreloaded = self.large = None

    def rounds(self, what, short=False, times=1):
        """Numbers of the rounds, from 0 on, which warms up, with a line of progress."""
        number = max(3, self.number_of_rounds // 3) if short else self.number_of_rounds * times
        number = min(number, self.number_of_rounds * times)
        for n in range(number + 1):
            if n == 0:
                print(f'{what}: warming up', flush=True)
            elif (n - 1) % times == 0:
                print(f'{what}: round {(n - 1) // times + 1} of {number // times}', flush=True)
            yield n


def prepare(server, setup):
    with server.connect() as connection:
        connection.execute('CREATE EXTENSION fast_uuid')
        connection.execute('CREATE SEQUENCE counter')
        connection.execute(f"CREATE FUNCTION fast_uuid_noop() RETURNS uuid AS '{BENCH / 'noop'}' LANGUAGE c")
        for statement in setup:
            connection.execute(statement)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bindir', type=Path, required=True, help='of the PostgreSQL to measure')
    parser.add_argument('--conf', type=Path, required=True, help='lines of postgresql.conf')
    parser.add_argument('--results', type=Path, required=True, help='directory to write to')
    parser.add_argument('--rounds', type=int, default=11)
    parser.add_argument('--seconds', type=int, default=2, help='of each run of pgbench')
    parser.add_argument('--only', action='append', default=[], choices=[one.__name__ for one in experiments.ALL],
                        help='experiment, instead of all')
    parser.add_argument('--setup', action='append', default=[], help='SQL that makes a function to measure')
    parser.add_argument('--function', action='append', default=[], help='one more call to measure')
    options = parser.parse_args()

    # So that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))
    results = Results()
    bench = Bench(options, results)
    conf = options.conf.read_text(encoding='ascii')
    preload = f"shared_preload_libraries = 'fast_uuid,{BENCH / 'noop'}'\n"
    # A short path: that of a socket has a limit.
    with tempfile.TemporaryDirectory(prefix='fu') as directory:
        directory = Path(directory)
        servers = [
            Server(options.bindir, directory / 'a', conf + preload),
            Server(options.bindir, directory / 'b', conf),
            Server(options.bindir, directory / 'c', f'{conf}{preload}max_connections = 1010\n'),
        ]
        with ExitStack() as running:
            for server in servers:
                running.enter_context(server)
            bench.server, bench.unpreloaded, bench.large = servers
            for server in servers:
                prepare(server, options.setup)
            with bench.server.connect() as connection:
                described = machine.describe(connection, options.rounds)
            for experiment in experiments.ALL:
                if not options.only or experiment.__name__ in options.only:
                    experiment(bench)
    options.results.mkdir(exist_ok=True)
    results.write(options.results / 'results.csv')
    machine.write(described, options.results / 'machine.json')


if __name__ == '__main__':
    main()
