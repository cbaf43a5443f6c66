"""Throwaway servers, and statements that are timed there."""

import os
import re
import subprocess
import time
from contextlib import contextmanager

import psycopg

MILLION = 1000000
ARRAY = f'SELECT cardinality(uuidv7_fast_array({MILLION}))'

# Single rows that are sent without waiting for the one before: with less to do than a message
# to another processor takes, it is chance where the scheduler puts client and server, and that
# doubles the time.
PIPELINED = 20

# Nothing in the background; room for a million rows without a checkpoint, in files of WAL
# that are there already.
SETTINGS = """
listen_addresses = ''
max_connections = 120
jit = off
max_parallel_workers_per_gather = 0
autovacuum = off
checkpoint_timeout = 1h
min_wal_size = 4GB
max_wal_size = 20GB
shared_buffers = 512MB
"""


class Server:
    """PostgreSQL in a directory of its own, with these lines of postgresql.conf, running
    inside the with block."""

    def __init__(self, bindir, directory, conf):
        self.bindir, self.directory = bindir, directory
        directory.mkdir()
        self._run('initdb', '--auth=trust', '--username=postgres', '--encoding=UTF8',
                  '--locale=C')
        with open(directory / 'data/postgresql.conf', 'a', encoding='ascii') as file:
            file.write(f"{SETTINGS}unix_socket_directories = '{directory}'\n{conf}\n")

    def _run(self, program, *arguments):
        subprocess.run([self.bindir / program, '-D', self.directory / 'data', *arguments],
                       check=True, stdout=subprocess.DEVNULL)

    def __enter__(self):
        self._run('pg_ctl', '-w', '-l', self.directory / 'log', 'start')
        return self

    def __exit__(self, failure, *_):
        self._run('pg_ctl', '-w', '-m', 'immediate' if failure else 'fast', 'stop')

    def connect(self, database='postgres'):
        return psycopg.connect(host=str(self.directory), user='postgres', dbname=database,
                               autocommit=True)

    def pgbench(self, script, clients, seconds, rate=0, synchronous_commit='off'):
        """Transactions per second of a script, given as text, without the time to connect."""
        options = f'-c synchronous_commit={synchronous_commit}'
        command = [self.bindir / 'pgbench', '-h', self.directory, '-U', 'postgres', '-n',
                   '-M', 'prepared', '-f', '-', '-c', str(clients),
                   '-j', str(min(clients, os.cpu_count())), '-T', str(seconds), 'postgres']
        if rate:
            command[1:1] = ['-R', str(rate)]
        out = subprocess.run(command, env={**os.environ, 'PGOPTIONS': options}, check=True,
                             capture_output=True, text=True, input=script).stdout
        return float(re.search(r'^tps = ([\d.]+)', out, re.MULTILINE)[1])

    def single_rows(self, table, clients, seconds):
        """Rows per second, each in a transaction of its own, by INSERT INTO table (n)."""
        script = ('\\startpipeline\n'
                  + f'INSERT INTO {table} (n) VALUES (1);\n\\syncpipeline\n' * PIPELINED
                  + '\\endpipeline\n')
        return PIPELINED * self.pgbench(script, clients, seconds)

    @contextmanager
    def in_background(self, script, clients, database, *options):
        """Clients of pgbench that repeat a script, inside the with block."""
        if not clients:
            yield
            return
        command = [self.bindir / 'pgbench', '-h', self.directory, '-U', 'postgres', '-n',
                   '-M', 'prepared', '-f', '-', '-c', str(clients), '-T', '3600', *options, database]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, text=True) as process:
            process.stdin.write(script)
            process.stdin.close()
            with self.connect() as connection:
                while connection.execute(
                        "SELECT count(*) < %s FROM pg_stat_activity WHERE datname = %s"
                        " AND application_name = 'pgbench'", [clients, database]).fetchone()[0]:
                    if process.poll() is not None:
                        raise RuntimeError('pgbench has ended')
                    time.sleep(0.01)
            try:
                yield
            finally:
                process.terminate()


def time_ms(connection, statement, settings=None):
    """Milliseconds of a statement, under settings."""
    settings = settings or {}
    for name, value in settings.items():
        connection.execute(f"SET {name} = '{value}'")
    started = time.perf_counter()
    connection.execute(statement)
    ms = (time.perf_counter() - started) * 1000
    for name in settings:
        connection.execute(f'RESET {name}')
    return ms


def count(call, values=MILLION):
    return f'SELECT count({call}) FROM generate_series(1, {values})'


def turned(cases, n):
    """The cases from another one on in each round: none always follows the same."""
    cases = list(cases)
    n %= len(cases)
    return cases[n:] + cases[:n]
