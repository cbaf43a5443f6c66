"""How many rows readers miss on your Citus cluster, by the way in which they read.

Runs the SQL of README.md in a database that has the extensions citus and fast_feed and
no table outbox, beside writers that commit late, and connections that are lost between nodes.
Tried with psycopg 3.3.9, Citus 13.2.2 and PostgreSQL 15.
"""

import argparse
import random
import re
import threading
import time
from pathlib import Path

import psycopg

PAGE = Path(__file__).with_name('README.md')
READ = 'SELECT id FROM outbox WHERE id > %s {} ORDER BY id LIMIT 500'
FETCH = {'bound fetched first': "SELECT fast_feed.watermark('outbox_numbers')",
         'outbox_watermark()': 'SELECT outbox_watermark()'}
WAYS = {'without a watermark': READ.format(''),
        'in one statement': READ.format("AND id < (SELECT fast_feed.watermark('outbox_numbers'))"),
        **{way: READ.format('AND id < %s') for way in FETCH}}
LOSE = """SELECT result FROM run_command_on_workers($$
            SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
             WHERE application_name LIKE 'citus_internal%' AND datname = current_database() $$)"""
RECOVER = 'SELECT recover_prepared_transactions()'
PREPARED = """SELECT sum(result::int) FROM run_command_on_all_nodes($$
                SELECT count(*) FROM pg_prepared_xacts
                 WHERE gid LIKE 'citus%' AND database = current_database() $$)"""


class Cluster:
    """Sessions at the coordinator, until there is enough."""

    def __init__(self, conninfo):
        self.conninfo = conninfo
        self.writing, self.reading = threading.Event(), threading.Event()

    def run(self, going, step):
        """Repeat a step with a session, and with a new one where a node was lost."""
        connection = None
        while not going.is_set():
            try:
                if connection is None or connection.closed:
                    connection = psycopg.connect(self.conninfo, autocommit=True)
                if step(connection):
                    break
            except psycopg.Error:
                if connection is not None:
                    connection.close()
                time.sleep(0.1)
        if connection is not None:
            connection.close()

    def write(self):
        """Transactions that insert some rows, on several shards as a rule."""
        def transaction(connection):
            with connection.transaction(force_rollback=random.random() < 0.15):
                for _ in range(random.randint(1, 4)):
                    connection.execute('INSERT INTO outbox (tenant) VALUES (%s)', [random.randrange(1000)])
                    time.sleep(random.random() / 50)
        self.run(self.writing, transaction)

    def read(self, way, rows):
        """Read on from the last row, until there is none any more after the writers."""
        def batch(connection):
            ended = self.reading.is_set()
            bound = [connection.execute(FETCH[way]).fetchone()[0]] if way in FETCH else []
            got = connection.execute(WAYS[way], [rows[-1] if rows else 0] + bound).fetchall()
            rows.extend(row[0] for row in got)
            time.sleep(0.01)
            return ended and not got
        self.run(threading.Event(), batch)

    def disturb(self, seconds, lose):
        """End the workers' sessions now and then.  Where that leaves a transaction prepared, end it
        when others have been read; return how often."""
        until, left = time.monotonic() + seconds, []

        def once(connection):
            time.sleep(random.random() * 2)
            if lose:
                connection.execute(LOSE)
                time.sleep(1)
                left.append(connection.execute(RECOVER).fetchone()[0])
            return time.monotonic() > until
        self.run(threading.Event(), once)
        return sum(left)

    def all_rows(self):
        """When nothing is prepared any more."""
        with psycopg.connect(self.conninfo, autocommit=True) as connection:
            while connection.execute(PREPARED).fetchone()[0]:
                connection.execute(RECOVER)
            return [row[0] for row in connection.execute('SELECT id FROM outbox')]


def main():
    """Create the tables, write and read, and print what was missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('conninfo', help="of a superuser at the coordinator, such as 'dbname=test'")
    parser.add_argument('--seconds', type=int, default=60)
    parser.add_argument('--calm', action='store_true', help='lose no connection')
    options = parser.parse_args()
    cluster = Cluster(options.conninfo)
    with psycopg.connect(options.conninfo, autocommit=True) as connection:
        for sql in re.findall(r'^```sql citus\n(.*?)^```$', PAGE.read_text(encoding='utf-8'), re.M | re.S):
            connection.execute(sql)
    seen = {way: [] for way in WAYS}
    writers = [threading.Thread(target=cluster.write) for _ in range(8)]
    readers = [threading.Thread(target=cluster.read, args=item) for item in seen.items()]
    for thread in writers + readers:
        thread.start()
    left = cluster.disturb(options.seconds, not options.calm)
    cluster.writing.set()
    for thread in writers:
        thread.join()
    rows = cluster.all_rows()
    cluster.reading.set()
    for thread in readers:
        thread.join()
    print(f'{len(rows)} rows; {left} times a transaction was left prepared on a worker')
    for way, got in seen.items():
        assert got == sorted(set(got)) and set(got) <= set(rows), way
        print(f'{way:20} {len(rows) - len(got):6} missed')


main()
