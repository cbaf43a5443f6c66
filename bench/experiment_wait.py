"""How soon a reader has what is committed, and what that costs the writers: a reader that
polls, one that is woken by NOTIFY, and one that is woken by uuidv7_fast_wait()."""

import select
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from statistics import quantiles

from timing import turned

PLAIN = 'INSERT INTO followed DEFAULT VALUES'
NOTIFYING = "WITH made AS (INSERT INTO followed DEFAULT VALUES) SELECT pg_notify('followed', '')"
READ = """
    SELECT (array_agg(id ORDER BY id DESC))[1],
           array_agg(extract(epoch FROM clock_timestamp() - at)::float8) FILTER (WHERE get_byte(uuid_send(id), 15) < %s)
      FROM followed WHERE id > %s AND id < uuidv7_fast_watermark()"""


class Polls:
    """Lets so many seconds pass."""
    statement = PLAIN

    def __init__(self, seconds):
        self.seconds = seconds

    def begin(self, _):
        return lambda: time.sleep(self.seconds)


class Notified:
    statement = NOTIFYING

    def begin(self, connection):
        connection.execute('LISTEN followed')

        def pause():
            if connection.pgconn.notifies() is None:
                select.select([connection.fileno()], [], [], 0.1)
            connection.pgconn.consume_input()
            while connection.pgconn.notifies():
                pass
        return pause


class Waits:
    statement = PLAIN

    def begin(self, connection):
        seen = [0]

        def pause():
            seen[0] = connection.execute("SELECT uuidv7_fast_wait(%s, '100 ms')", seen, prepare=True).fetchone()[0]
        return pause


class Nobody:
    statement = PLAIN


WAYS = {
    'nobody reads': Nobody(), 'polls every ms': Polls(0.001), 'polls every 10 ms': Polls(0.01),
    'NOTIFY': Notified(), 'uuidv7_fast_wait()': Waits(),
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


def _follow(connection, way, looked_at, writing):
    """The latencies of a reader, in ms, and how often it read."""
    pause = way.begin(connection)
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
    clients, rate, synchronous, foreign, looked_at = load
    arguments = ['-T', str(2 * bench.seconds)]
    with ExitStack() as stack:
        def script(statement):
            file = stack.enter_context(tempfile.NamedTemporaryFile('w', suffix='.sql'))
            file.write(f'{statement};\n')
            file.flush()
            return file.name

        connection = stack.enter_context(bench.server.connect())
        connection.execute('DROP TABLE IF EXISTS followed')
        connection.execute('CREATE TABLE followed (id uuid PRIMARY KEY DEFAULT uuidv7_fast(), at timestamptz DEFAULT clock_timestamp())')
        connection.execute(f'ALTER DATABASE postgres SET synchronous_commit = {synchronous}')
        connection.execute('SET plan_cache_mode = force_generic_plan')
        if foreign:
            others = thread.submit(bench.server.pgbench, script('SELECT uuidv7_fast()'), 4, '-R', str(foreign), *arguments)
        writing = thread.submit(bench.server.pgbench, script(way.statement), clients, *(['-R', str(rate)] if rate else []), *arguments)
        started = time.perf_counter()
        latencies, reads = _follow(connection, way, looked_at, writing) if hasattr(way, 'begin') else ([], 0)
        per_second = writing.result()
        seconds = time.perf_counter() - started
        if foreign:
            others.result()
        connection.execute('DROP TABLE followed')
    return per_second, reads / seconds, latencies


def woken(bench):
    """By load and way: latencies, what is written, and how often is read."""
    with bench.server.connect() as connection, ThreadPoolExecutor(2) as thread:
        connection.execute("ALTER DATABASE postgres SET fast_uuid.ordering = 'instance'")
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
        connection.execute('ALTER DATABASE postgres RESET ALL')
