"""How soon a reader has what is committed, and what that costs the writers: a reader that
polls, one that is woken by NOTIFY, and one that is woken by uuidv7_feed_wait()."""

import select
import time
from concurrent.futures import ThreadPoolExecutor
from statistics import quantiles

from timing import turned

PLAIN = 'INSERT INTO followed DEFAULT VALUES;'
NOTIFYING = "WITH made AS (INSERT INTO followed DEFAULT VALUES) SELECT pg_notify('followed', '');"
READ = """
    SELECT (array_agg(id ORDER BY id DESC))[1],
           array_agg(extract(epoch FROM clock_timestamp() - at)::float8) FILTER (WHERE get_byte(uuid_send(id), 15) < %s)
      FROM followed WHERE id > %s AND id < uuidv7_feed_watermark()"""


def polls(seconds):
    return lambda connection: lambda: time.sleep(seconds)


def notified(connection):
    connection.execute('LISTEN followed')

    def pause():
        if connection.pgconn.notifies() is None:
            select.select([connection.fileno()], [], [], 0.1)
        connection.pgconn.consume_input()
        while connection.pgconn.notifies():
            pass
    return pause


def waits(connection):
    seen = [0]

    def pause():
        seen[0] = connection.execute("SELECT uuidv7_feed_wait(%s, '100 ms')", seen, prepare=True).fetchone()[0]
    return pause


# What makes the pause between two reads, for a connection; what is written.
WAYS = {
    'nobody reads': (None, PLAIN), 'polls every ms': (polls(0.001), PLAIN), 'polls every 10 ms': (polls(0.01), PLAIN),
    'NOTIFY': (notified, NOTIFYING), 'uuidv7_feed_wait()': (waits, PLAIN),
}

# Clients; transactions per second, or as many as they can; synchronous_commit; those of
# another table, per second; of how many rows of 256 the latency is looked at.
LOADS = {
    '100 per second': (4, 100, 'off', 0, 256),
    '1,000 per second': (4, 1000, 'off', 0, 256),
    '100 per second, 5,000 of another table': (4, 100, 'off', 5000, 256),
    '8 clients': (8, 0, 'off', 0, 4),
    '32 clients, synchronous commit': (32, 0, 'on', 0, 4),
}


def _follow(connection, pause, looked_at, writing):
    """The latencies of a reader, in ms, and how often it read."""
    last, latencies, reads = '00000000-0000-0000-0000-000000000000', [], 0
    while not writing.done():
        pause()
        found = True
        while found:
            found, some = connection.execute(READ, [looked_at, last], prepare=True).fetchone()
            last, reads = found or last, reads + 1
            latencies += [seconds * 1000 for seconds in some or []]
    return latencies, reads


def _measure(bench, thread, way, load):
    """Transactions per second, reads per second, latencies."""
    begin, statement = way
    clients, rate, synchronous, foreign, looked_at = load

    def write(script, sessions, rate):
        return thread.submit(bench.server.pgbench, script, sessions, 2 * bench.seconds, *(['-R', str(rate)] if rate else []))

    with bench.server.settings({'synchronous_commit': synchronous}), bench.server.connect() as connection:
        connection.execute('CREATE TABLE followed (id uuid PRIMARY KEY DEFAULT uuidv7_feed_id(),'
                           ' at timestamptz DEFAULT clock_timestamp())')
        connection.execute('SET plan_cache_mode = force_generic_plan')
        pause = begin(connection) if begin else None
        others = write('SELECT uuidv7_feed_id();', 4, foreign) if foreign else None
        started = time.perf_counter()
        writing = write(statement, clients, rate)
        latencies, reads = _follow(connection, pause, looked_at, writing) if pause else ([], 0)
        per_second = writing.result()
        seconds = time.perf_counter() - started
        if others:
            others.result()
        connection.execute('DROP TABLE followed')
    return per_second, reads / seconds, latencies


def woken(bench):
    """By load and way: latencies, what is written, and how often is read."""
    with ThreadPoolExecutor(2) as thread:
        for n in bench.rounds('A reader that is woken', short=True):
            for name, load in LOADS.items():
                for what, way in turned(WAYS.items(), n):
                    per_second, reads, latencies = _measure(bench, thread, way, load)
                    bench.record('woken', what, name, n, 'transactions per second', per_second)
                    if latencies:
                        percentiles = quantiles(latencies, n=100, method='inclusive')
                        bench.record('woken', what, name, n, 'latency p50, ms', percentiles[49])
                        bench.record('woken', what, name, n, 'latency p99, ms', percentiles[98])
                        bench.record('woken', what, name, n, 'reads per second', reads)
