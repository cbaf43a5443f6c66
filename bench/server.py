"""A throwaway server for one run of the benchmark."""

import os
import re
import subprocess
from contextlib import contextmanager

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

    def pgbench(self, script, clients, seconds, *arguments, line=r'tps = ([\d.]+)'):
        """What a line of its output says of a script, given as text: transactions per
        second, without the time to connect."""
        threads = min(clients, os.cpu_count())
        out = subprocess.run(
            [self.bindir / 'pgbench', '-n', '-M', 'prepared', '-h', self.socket, '-U', 'postgres', '-f', '-',
             '-c', str(clients), '-j', str(threads), '-T', str(seconds), *arguments, 'postgres'],
            check=True, capture_output=True, text=True, input=script).stdout
        return float(re.search(f'^{line}', out, re.MULTILINE)[1])

    @contextmanager
    def settings(self, settings):
        """For the sessions that begin now."""
        with self.connect() as connection:
            for name, value in settings.items():
                connection.execute(f"ALTER DATABASE postgres SET {name} = '{value}'")
            yield
            connection.execute('ALTER DATABASE postgres RESET ALL')
