"""The experiments about the order of UUIDs: what a reader sees, and what it costs."""

import time
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from statistics import quantiles

from generators import FEED
from timing import count, turned


def watermark(bench):
    """Microseconds of a call of the watermark, by the sessions whose transactions it
    has to look at.  Each is in a transaction of its own: the next one in the same would
    be given the same."""
    calls = 20000
    functions = 'uuidv7_feed_watermark', 'fast_uuid_noop'
    with bench.large.connect() as connection, ExitStack() as writers:
        for function in functions:
            connection.execute(f'CREATE PROCEDURE {function}_calls(calls int) LANGUAGE plpgsql AS '
                               f'$$ BEGIN FOR i IN 1..calls LOOP PERFORM {function}(); COMMIT; END LOOP; END $$')
        opened = 0
        for sessions in (0, 100, 1000):
            while opened < sessions:
                writer = writers.enter_context(bench.large.connect())
                writer.execute('BEGIN; SELECT uuidv7_feed_id()')
                opened += 1
            for n in bench.rounds(f'The watermark with {sessions} transactions in flight', short=True):
                seconds = []
                for function in functions:
                    started = time.perf_counter()
                    connection.execute(f'CALL {function}_calls({calls})')
                    seconds.append(time.perf_counter() - started)
                bench.record('watermark', 'uuidv7_feed_watermark()', sessions, n, 'us', (seconds[0] - seconds[1]) * 1e6 / calls)


FIRST = '00000000-0000-0000-0000-000000000000'
BELOW = 'AND id < uuidv7_feed_watermark()'


def _read(connection, last, bound=BELOW, more='', prepare=None):
    """How many rows there are after an id, the id of the last of them, and what else is asked for."""
    rows, latest, *others = connection.execute(
        f'SELECT count(*), (array_agg(id ORDER BY id DESC))[1]{more} FROM followed WHERE id > %s {bound}', [last],
        prepare=prepare).fetchone()
    return rows, latest or last, *others


class _Reader:
    """Follows a table by its ids, and counts what it has seen."""

    def __init__(self, connection, bound):
        self.connection, self.bound = connection, bound
        self.last, self.rows = FIRST, 0

    def read(self):
        rows, self.last = _read(self.connection, self.last, self.bound)
        self.rows += rows


@contextmanager
def _writers(bench, transaction):
    """A connection, and what lets so many sessions write to a new feed for a while."""
    with bench.server.connect() as connection, ThreadPoolExecutor(1) as thread, \
            bench.server.settings({'synchronous_commit': 'off'}):
        def write(sessions):
            connection.execute('DROP TABLE IF EXISTS followed')
            connection.execute('CREATE TABLE followed (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id())')
            return thread.submit(bench.server.pgbench, transaction, sessions, 2 * bench.seconds)

        yield connection, write
        connection.execute('DROP TABLE followed')


def missed(bench):
    """What a reader of a table by its ids misses, by the number of writers, which commit
    after a random delay of up to five milliseconds."""
    transaction = '\\set us random(0, 5000)\nBEGIN;\nINSERT INTO followed DEFAULT VALUES;\n\\sleep :us us\nCOMMIT;\n'
    with _writers(bench, transaction) as (connection, write), bench.server.connect() as second:
        for n in bench.rounds('What a reader misses', short=True):
            for writers in (2, 8, 32):
                writing = write(writers)
                readers = {'id > the last one': _Reader(connection, ''), 'id < the watermark': _Reader(second, BELOW)}
                while not writing.done():
                    for reader in readers.values():
                        reader.read()
                writing.result()
                # The last rows have been committed by now.
                for reader in readers.values():
                    reader.read()
                rows = connection.execute('SELECT count(*) FROM followed').fetchone()[0]
                for name, reader in readers.items():
                    bench.record('missed', name, writers, n, 'rows committed', rows)
                    bench.record('missed', name, writers, n, 'rows missed', rows - reader.rows)


def _lags(connection, writing, called, prepare):
    """How far the bounds of a reader that asks every ten milliseconds are behind, by what:
    of a call in a statement of its own before, or of none."""
    bound = 'uuidv7_fast_timestamp(uuidv7_feed_watermark(), true), statement_timestamp()'
    lags, last = defaultdict(list), FIRST
    while not writing.done():
        time.sleep(0.01)
        if called:
            before, start = connection.execute(f'SELECT {bound}', prepare=True).fetchone()
            lags['that call behind its start'].append(start - before)
        _, last, found, start = _read(connection, last, more=f', {bound}', prepare=prepare)
        lags['behind its start'].append(start - found)
        if called:
            lags['behind that call'].append(before - found)
    return lags


def freshness(bench):
    """How far the bound of a statement that reads a table is behind that of a call just
    before it, and behind its start, while eight clients commit as fast as they can."""
    cases = {f'{how}, {what}': (what != 'no call before', how == 'prepared')
             for what in ('a call before', 'no call before') for how in ('prepared', 'planned anew')}
    with _writers(bench, 'INSERT INTO followed DEFAULT VALUES;\n') as (_, write), bench.server.connect() as reader:
        # Else the first executions of a prepared statement are planned anew as well.
        reader.execute('SET plan_cache_mode = force_generic_plan')
        for n in bench.rounds('How far the watermark is behind', short=True):
            for name, how in turned(cases.items(), n):
                writing = write(8)
                for what, lags in _lags(reader, writing, *how).items():
                    us = quantiles([max(lag / timedelta(microseconds=1), 0) for lag in lags], n=100, method='inclusive')
                    for percent in (50, 90, 99):
                        bench.record('freshness', f'{name}: {what}', f'{percent} %', n, 'us', us[percent - 1])
                writing.result()


def upper_bound(bench):
    """What feeds write, while two sessions generate without a pause."""
    with bench.server.connect() as connection:
        connection.execute('CREATE EXTENSION IF NOT EXISTS pg_walinspect')
        for n in bench.rounds('The upper bound', short=True):
            connection.execute('CHECKPOINT')
            before = connection.execute('SELECT pg_current_wal_insert_lsn()').fetchone()[0]
            started = time.perf_counter()
            bench.server.pgbench(f'{count(FEED.call, 100000)};', 2, 2 * bench.seconds)
            seconds = time.perf_counter() - started
            records, size = connection.execute("""
                SELECT count(*), coalesce(sum(record_length), 0)
                  FROM pg_get_wal_records_info(%s, pg_current_wal_flush_lsn()) WHERE resource_manager = 'Generic'""",
                                               [before]).fetchone()
            bench.record('upper_bound', FEED.name, 2, n, 'flushes per second', records / seconds)
            bench.record('upper_bound', FEED.name, 2, n, 'WAL bytes per second', size / seconds)
