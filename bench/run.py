"""Runs the experiments on throwaway servers of the PostgreSQL of --bindir, and writes
results.csv and machine.json.  script/bench calls this."""

import argparse
import json
import os
import platform
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / 'feed/bench'))

import experiments
import feed
import stores
from results import Results
from server import Server

NOOP = Path(__file__).resolve().parent / 'noop'


class Bench:
    """What an experiment works with: the servers, and where figures go."""

    def __init__(self, options, server, unpreloaded):
        self.options, self.server, self.unpreloaded = options, server, unpreloaded
        self.calls, self.seconds = options.function, options.seconds
        self.results = Results()
        self.record = self.results.record

    def rounds(self, what, short=False):
        """Numbers of the rounds, from 0 on, which warms up, with a line of progress."""
        number = min(self.options.rounds, 3) if short else self.options.rounds
        for n in range(number + 1):
            print(f'{what}: round {n} of {number}' if n else f'{what}: warming up', flush=True)
            yield n


def first(path, pattern):
    found = re.search(pattern, Path(path).read_text(encoding='utf-8'), re.MULTILINE)
    return found[1].strip() if found else ''


def describe(connection, rounds, path):
    """What to know of the machine and the server beside any figure."""
    openssl = subprocess.run(['openssl', 'version'], check=True, capture_output=True, text=True)
    virtual = ', virtual machine' if first('/proc/cpuinfo', r'^flags.*\b(hypervisor)\b') else ''
    model = first('/proc/cpuinfo', r'^model name\s*: (.*)') or platform.machine()
    getrandom = connection.execute(
        "SELECT implementation FROM fast_uuid_sources() WHERE name = 'getrandom'").fetchone()
    described = {
        'PostgreSQL': connection.execute('SHOW server_version').fetchone()[0],
        'Architecture': platform.machine(),
        'CPU': f'{model}, {os.cpu_count()} processors{virtual}',
        'Kernel': platform.release(),
        'Clock source': first(
            '/sys/devices/system/clocksource/clocksource0/current_clocksource', '(.*)'),
        'C library': ' '.join(platform.libc_ver()),
        'OpenSSL': openssl.stdout.split()[1],
        'getrandom': getrandom[0],
        'Rounds': str(rounds),
        'Date': time.strftime('%Y-%m-%d'),
    }
    path.write_text(json.dumps(described, indent=2) + '\n', encoding='ascii')


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--bindir', type=Path, required=True)
    parser.add_argument('--conf', type=Path, required=True)
    parser.add_argument('--results', type=Path, required=True)
    parser.add_argument('--rounds', type=int, default=11)
    parser.add_argument('--seconds', type=int, default=2, help='of each run of pgbench')
    parser.add_argument('--only', action='append')
    parser.add_argument('--stores', action='store_true')
    parser.add_argument('--setup', action='append', default=[])
    parser.add_argument('--function', action='append', default=[])
    options = parser.parse_args()

    # So that the servers are stopped.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit('terminated'))
    conf = options.conf.read_text(encoding='ascii')
    preload = f"shared_preload_libraries = 'fast_uuid,fast_feed,{NOOP}'\n"
    # A short path: that of a socket has a limit.
    with tempfile.TemporaryDirectory(prefix='fu') as directory, \
            Server(options.bindir, Path(directory) / 'a', conf + preload) as server, \
            Server(options.bindir, Path(directory) / 'b', conf) as unpreloaded:
        for one in server, unpreloaded:
            with one.connect() as connection:
                for statement in (
                        'CREATE EXTENSION fast_uuid', 'CREATE SEQUENCE counter',
                        f"CREATE FUNCTION fast_uuid_noop() RETURNS uuid AS '{NOOP}' LANGUAGE c",
                        *options.setup):
                    connection.execute(statement)
        bench = Bench(options, server, unpreloaded)
        for experiment in experiments.ALL + feed.ALL + stores.ALL * options.stores:
            if not options.only or experiment.__name__ in options.only:
                experiment(bench)
        options.results.mkdir(exist_ok=True)
        bench.results.write(options.results / 'results.csv')
        with server.connect() as connection:
            describe(connection, options.rounds, options.results / 'machine.json')


if __name__ == '__main__':
    main()
