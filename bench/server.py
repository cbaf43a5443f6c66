"""A throwaway server for one run of the benchmark."""

import os
import subprocess

import psycopg

# Nothing in the background; room for a million rows without a checkpoint, in
# files of WAL that are there already.
SETTINGS = """
listen_addresses = ''
jit = off
max_parallel_workers_per_gather = 0
autovacuum = off
checkpoint_timeout = 1h
min_wal_size = 4GB
max_wal_size = 20GB
shared_buffers = 512MB
"""


class Server:
    """PostgreSQL in a directory of its own, running inside the with block.

    conf: lines of postgresql.conf.
    """

    def __init__(self, bindir, directory, conf):
        self.bindir = bindir
        self.data = directory / 'data'
        self.socket = directory
        directory.mkdir()
        self._run('initdb', '--auth=trust', '--username=postgres', '--encoding=UTF8', '--locale=C')
        with open(self.data / 'postgresql.conf', 'a', encoding='ascii') as file:
            file.write(f"{SETTINGS}unix_socket_directories = '{directory}'\n{conf}\n")

    def _run(self, program, *arguments):
        subprocess.run([self.bindir / program, '-D', self.data, *arguments], check=True, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self._run('pg_ctl', '-w', '-l', self.socket / 'log', 'start')
        return self

    def __exit__(self, failure, *_):
        self._run('pg_ctl', '-w', '-m', 'immediate' if failure else 'fast', 'stop')

    def connect(self):
        return psycopg.connect(host=str(self.socket), user='postgres', dbname='postgres', autocommit=True)

    def pgbench_output(self, script, clients, *arguments):
        threads = min(clients, os.cpu_count())
        return subprocess.run(
            [self.bindir / 'pgbench', '-n', '-M', 'prepared', '-h', self.socket, '-U', 'postgres',
             '-c', str(clients), '-j', str(threads), '-f', script, *arguments, 'postgres'],
            check=True, capture_output=True, text=True).stdout

    def pgbench(self, script, clients, *arguments):
        """Transactions per second of a script, without the time to connect."""
        out = self.pgbench_output(script, clients, *arguments)
        line = next(line for line in out.splitlines() if line.startswith('tps = '))
        return float(line.split()[2])
