"""The experiments with readers: what they see, how soon, and what that costs."""

import re
import select
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from statistics import quantiles

from server import turned

BELOW = "AND id < fast_feed.watermark('followed')"


def create_feed(connection):
    connection.execute('CREATE EXTENSION IF NOT EXISTS fast_feed; DROP TABLE IF EXISTS followed;'
                       ' CREATE TABLE followed (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,'
                       " at timestamptz DEFAULT clock_timestamp());"
                       " SELECT fast_feed.enable('followed', 'id')")


def missed(bench):
    """What a reader of a table by its ids misses, by the number of writers, which commit
    after a random delay of up to five milliseconds."""
    transaction = ('\\set us random(0, 5000)\nBEGIN;\nINSERT INTO followed DEFAULT VALUES;\n'
                   '\\sleep :us us\nCOMMIT;\n')
    readers = {'id > the last one': '', 'id < the watermark': BELOW}
    with bench.server.connect() as connection, ThreadPoolExecutor(1) as thread:
        for n in bench.rounds('What a reader misses', short=True):
            for writers in (2, 8, 32):
                create_feed(connection)
                last, seen = dict.fromkeys(readers, 0), dict.fromkeys(readers, 0)
                writing = thread.submit(bench.server.pgbench, transaction, writers, bench.seconds)
                ended = False
                while not ended:
                    # Once more after the last row.
                    ended = writing.done()
                    for reader, below in readers.items():
                        rows, latest = connection.execute(
                            'SELECT count(*), max(id)'
                            f' FROM followed WHERE id > %s {below}', [last[reader]]).fetchone()
                        last[reader] = latest or last[reader]
                        seen[reader] += rows
                writing.result()
                all_rows = connection.execute('SELECT count(*) FROM followed').fetchone()[0]
                for reader in readers:
                    percent = (all_rows - seen[reader]) / all_rows * 100
                    bench.record('missed', reader, writers, n, 'rows missed, %', percent)


def poll(_):
    return lambda: time.sleep(0.01)


def listen(connection):
    connection.execute('LISTEN followed')

    def pause():
        if connection.pgconn.notifies() is None:
            select.select([connection.fileno()], [], [], 0.1)
        connection.pgconn.consume_input()
        while connection.pgconn.notifies():
            pass
    return pause


def wait(connection):
    seen = [0]

    def pause():
        seen[0] = connection.execute("SELECT fast_feed.wait(%s, '100 ms')", seen,
                                     prepare=True).fetchone()[0]
    return pause


# What makes the pause between two reads, for a connection.
WAYS = {'nobody reads': None, 'polls every 10 ms': poll, 'NOTIFY': listen,
        'fast_feed.wait()': wait}
INSERT = 'INSERT INTO followed DEFAULT VALUES'
NOTIFYING = f"WITH made AS ({INSERT}) SELECT pg_notify('followed', '')"


@dataclass
class Load:
    clients: int
    rate: int = 0               # rows per second; 0: as many as they can
    synchronous: str = 'off'
    looked_at: int = 256        # of how many rows of 256 the latency is measured


LOADS = {
    '100 per second': Load(clients=4, rate=100),
    '500 per second': Load(clients=4, rate=500),
    '32 clients, synchronous commit': Load(clients=32, synchronous='on', looked_at=4),
}


def follow(connection, pause, load, writing):
    """The latencies of a reader, in ms, and how often it read."""
    last, latencies, reads = 0, [], 0
    while not writing.done():
        pause()
        found = True
        while found:
            found, seconds = connection.execute(f"""
                SELECT max(id),
                       array_agg(extract(epoch FROM clock_timestamp() - at)::float8)
                         FILTER (WHERE id %% 256 < %s)
                  FROM followed WHERE id > %s {BELOW}""",
                [load.looked_at, last], prepare=True).fetchone()
            last, reads = found or last, reads + 1
            latencies += [1000 * second for second in seconds or []]
    return latencies, reads


def woken(bench):
    """By load and way: latencies, what is written, and how often is read."""
    with bench.server.connect() as connection, ThreadPoolExecutor(1) as thread:
        connection.execute('SET plan_cache_mode = force_generic_plan')
        for n in bench.rounds('A reader that is woken', short=True):
            for (name, load), (way, begin) in turned(
                    [(load, way) for load in LOADS.items() for way in WAYS.items()], n):
                create_feed(connection)
                pause = begin(connection) if begin else None
                writing = thread.submit(
                    bench.server.pgbench, f'{NOTIFYING if begin is listen else INSERT};',
                    load.clients, 2 * bench.seconds, load.rate, load.synchronous)
                started = time.perf_counter()
                latencies, reads = follow(connection, pause, load, writing) if pause else ([], 0)
                per_second = writing.result()
                seconds = time.perf_counter() - started
                connection.execute('UNLISTEN *')
                bench.record('woken', way, name, n, 'transactions per second', per_second)
                if pause:
                    percentiles = quantiles(latencies, n=100, method='inclusive')
                    bench.record('woken', way, name, n, 'latency p50, ms', percentiles[49])
                    bench.record('woken', way, name, n, 'latency p99, ms', percentiles[98])
                    bench.record('woken', way, name, n, 'reads per second', reads / seconds)


BEHIND = 500000
READERS = {
    'without the watermark': 'SELECT id, body FROM outbox WHERE id > %(last)s'
                             ' ORDER BY id LIMIT %(size)s',
    'position in the client': 'SELECT id, body FROM outbox WHERE id > %(last)s'
                              " AND id < fast_feed.watermark('outbox') ORDER BY id LIMIT %(size)s",
    # That of the recipes, whose transaction takes the position from a table and stores it there
    'position in the database': "SELECT * FROM outbox_next('mail', %(size)s)",
}
OUTBOX = """
    CREATE EXTENSION IF NOT EXISTS fast_feed;
    DROP TABLE IF EXISTS outbox, consumers CASCADE;
    CREATE TABLE outbox (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, body text);
    SELECT fast_feed.enable('outbox', 'id');
    INSERT INTO outbox (body) SELECT repeat('x', 100) FROM generate_series(1, {});
    CREATE TABLE consumers (name text PRIMARY KEY, position bigint NOT NULL);
    INSERT INTO consumers VALUES ('mail', 0);
    VACUUM ANALYZE outbox"""


def recipe():
    """The function outbox_next() of the recipes."""
    page = (Path(__file__).parent.parent / 'doc/recipes.md').read_text(encoding='utf-8')
    return re.search(r'CREATE FUNCTION outbox_next.*?END \$\$;', page, re.DOTALL)[0]


def caught_up(bench):
    """Rows per second of one reader that is so many rows behind, by the size of its batches."""
    with bench.server.connect() as connection:
        for statement in [*OUTBOX.format(BEHIND).split(';'), recipe()]:
            connection.execute(statement)
        connection.execute('SET synchronous_commit = off')
        for n in bench.rounds('A reader that catches up', short=True):
            for (reader, statement), size in turned(
                    [(reader, size) for reader in READERS.items() for size in (100, 1000)], n):
                connection.execute('UPDATE consumers SET position = 0')
                last, begun = 0, time.perf_counter()
                while last < BEHIND:
                    batch = connection.execute(
                        statement, {'last': last, 'size': size}, prepare=True).fetchall()
                    last = batch[-1][0]
                bench.record('caught up', reader, size, n, 'rows per second',
                             BEHIND / (time.perf_counter() - begun))
