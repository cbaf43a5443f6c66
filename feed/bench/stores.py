"""Event stores, as shipped and as feed/examples puts them on fast_feed: how fast they append, and
what their readers get.  script/bench --stores fetches their libraries."""

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from statistics import quantiles

from server import turned

HERE = Path(__file__).resolve().parent
EXAMPLES, LIBRARIES = HERE.parent / 'examples', HERE / 'libraries'
PYTHON = [sys.executable, '-B', HERE / 'load.py']
EVENTSOURCING, WATERMILL, MESSAGE_DB = 'eventsourcing', 'watermill', 'message-db'
FUNCTIONS = 'eventsourcing, functions'
# The program that loads each, its table, and that table's numbers
STORES = {EVENTSOURCING: (PYTHON, 'stored_events', 'notification_id'),
          FUNCTIONS: (PYTHON, 'stored_events', 'notification_id'),
          WATERMILL: ([LIBRARIES / 'watermill'], 'watermill_messages', 'offset'),
          MESSAGE_DB: (PYTHON, 'message_store.messages', 'global_position')}
KINDS = {'shipped': 'as shipped', 'fast_feed': 'on fast_feed'}

PAUSE = 'PERFORM pg_sleep(0.002);'
LATE = "PERFORM pg_sleep(random() * 0.01); IF random() < 0.1 THEN RAISE 'rolled back'; END IF;"
BEFORE_COMMIT = """
CREATE FUNCTION before_commit() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN {body} RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER before_commit AFTER INSERT ON {table} DEFERRABLE INITIALLY DEFERRED
  FOR EACH ROW EXECUTE FUNCTION before_commit()"""


def run(bench, database, command):
    environment = {**os.environ, 'PGHOST': str(bench.server.directory), 'PGUSER': 'postgres',
                   'PGDATABASE': database, 'DATABASE_NAME': database, 'CREATE_DATABASE': 'off',
                   'PYTHONPATH': f"{LIBRARIES / 'python'}:{EXAMPLES / 'eventsourcing'}"}
    return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE).stdout


def create(bench, database, template):
    with bench.server.connect() as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{database}" WITH (FORCE)')
        connection.execute(f'CREATE DATABASE "{database}" TEMPLATE {template}')
        connection.execute(f'ALTER DATABASE "{database}" SET synchronous_commit = off')


def template(bench, store, kind):
    """Its name; an empty store, which is made once."""
    name = f'{store}_{kind}'    # without a space, for message-db
    with bench.server.connect() as connection:
        made = connection.execute('SELECT FROM pg_database WHERE datname = %s', [name]).rowcount
    if not made:
        create(bench, name, 'template1')
        with bench.server.connect(name) as connection:
            connection.execute('CREATE EXTENSION fast_feed')
        if store == MESSAGE_DB:
            package = LIBRARIES / 'message-db/node_modules/@eventide/message-db'
            run(bench, name, ['bash', package / 'database/install.sh'])
            if kind == 'fast_feed':
                run(bench, name, ['psql', '-Xqf', EXAMPLES / 'message-db/fast_feed.sql'])
        else:
            run(bench, name, [*STORES[store][0], store, kind, '0', '0', '0', '0'])
    return f'"{name}"'


OTHER = """
CREATE EXTENSION IF NOT EXISTS fast_feed;
CREATE TABLE IF NOT EXISTS other (n integer);
CREATE TABLE IF NOT EXISTS other_feed (number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
SELECT fast_feed.enable('other_feed', 'number')"""


@contextmanager
def transaction(bench, store, foreign):
    """An open one that has written to another table of this database, and executed this statement."""
    if not foreign:
        yield
        return
    database, statement = foreign
    _, table, column = STORES[store]
    with bench.server.connect(database) as connection:
        connection.execute(OTHER)
        connection.execute('BEGIN; INSERT INTO other DEFAULT VALUES;'
                           + statement.format(table=table, column=column))
        yield


def load(bench, store, kind, *, writers, rate=0, reader=False, before_commit='',
         foreign=None):
    """What was appended, with times, and what was read, in a database of its own."""
    program, table, _ = STORES[store]
    create(bench, 'measured', template(bench, store, kind))
    if before_commit:
        with bench.server.connect('measured') as connection:
            connection.execute(BEFORE_COMMIT.format(body=before_commit, table=table))
    numbers = writers, bench.seconds, rate, int(reader)
    with transaction(bench, store, foreign):
        said = json.loads(run(bench, 'measured', [*program, store, kind, *map(str, numbers)]))
    return said['appended'], said['read']


def cases(n, *stores):
    return [(store, kind) for store in turned(stores, n) for kind in turned(KINDS, n)]


def appends(bench):
    """By one and eight writers, with and without a pause before the commit."""
    for n in bench.rounds('Appends to event stores', short=True):
        for writers in (1, 8):
            for pause, before_commit in (('', ''), (', 2 ms', PAUSE)):
                for store, kind in cases(n, EVENTSOURCING, WATERMILL, MESSAGE_DB):
                    appended, _ = load(bench, store, kind, writers=writers,
                                       before_commit=before_commit)
                    case = f'{store}, {writers} writer{"s" * (writers > 1)}{pause}'
                    # A writer connects in its first one.
                    latencies = [(end - begin) * 1000 for message, begin, end in appended
                                 if not message.endswith('-0')]
                    p99 = quantiles(latencies, n=100, method='inclusive')[98]
                    for metric, value in (('p99, ms', p99),
                                          ('per second', len(appended) / bench.seconds)):
                        bench.record('appends', case, KINDS[kind], n, metric, value)


def inverted(appended, messages):
    """How many came after one whose append began when theirs had already ended."""
    times, latest, number = {message: times for message, *times in appended}, 0, 0
    for message in messages:
        begin, end = times[message]
        number += end < latest
        latest = max(latest, begin)
    return number


def lost(bench):
    """What a reader gets beside writers that commit late or roll back."""
    for n in bench.rounds('What readers of event stores get', short=True):
        for store, kind in cases(n, *STORES):
            appended, messages = load(bench, store, kind, writers=8, reader=True,
                                      before_commit=LATE)
            number, different, case = len(appended), len(set(messages)), f'{store}, {KINDS[kind]}'
            bench.record('lost', case, '', n, 'messages', number)
            for metric, value in (('missed', number - different),
                                  ('twice', len(messages) - different),
                                  ('inverted', inverted(appended, messages))):
                bench.record('lost', case, '', n, f'{metric} of 10,000', 10000 * value / number)


FOREIGN = {'nothing': None,
           'in another table': ('measured', ''),
           'in another database': ('postgres', ''),
           'with a number of this feed':
               ('measured', "SELECT fast_feed.next(pg_get_serial_sequence('{table}', '{column}'))"),
           'with a number of another feed': ('measured', 'INSERT INTO other_feed DEFAULT VALUES')}


def held_back(bench):
    """What is delivered while a transaction that writes no message is open."""
    for n in bench.rounds('What a transaction holds back', short=True):
        for name, foreign in FOREIGN.items():
            for store, kind in cases(n, EVENTSOURCING, WATERMILL, MESSAGE_DB):
                appended, messages = load(bench, store, kind, writers=1,
                                          rate=100 // bench.seconds, reader=True, foreign=foreign)
                bench.record('held back', f'{store}, {KINDS[kind]}', name, n, 'delivered, %',
                             100 * len(messages) / len(appended))


ALL = [appends, lost, held_back]
