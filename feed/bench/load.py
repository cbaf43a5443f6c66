"""A load on an event store, for stores.py: load.py STORE KIND WRITERS SECONDS RATE READER

Writers append one message per transaction, RATE per second, or as many as they can if it is 0.  A
reader, if READER is 1, reads until it finds nothing after they have ended.  Prints what was
appended, with the times of begin and end, and what was read."""

import json
import os
import sys
import time
import uuid
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

import psycopg
from eventsourcing.persistence import InfrastructureFactory, StoredEvent
from eventsourcing.utils import Environment


name, kind, *numbers = sys.argv[1:]
writers, seconds, rate, reader = map(int, numbers)
fork = get_context('fork')
together = fork.Barrier(max(writers, 1), timeout=60)


class EventSourcing:
    def __init__(self):
        module = {'shipped': 'eventsourcing.postgres', 'fast_feed': 'fast_feed_eventsourcing'}
        self.recorder = InfrastructureFactory.construct(Environment(env={
            'PERSISTENCE_MODULE': module[kind], 'POSTGRES_DBNAME': os.environ['PGDATABASE'],
            'POSTGRES_HOST': os.environ['PGHOST'], 'POSTGRES_USER': os.environ['PGUSER'],
            'POSTGRES_PASSWORD': 'none', 'POSTGRES_POOL_SIZE': '1',
            # By several at once it can fail.
            'CREATE_TABLE': 'n' if writers else 'y',
            'POSTGRES_ENABLE_DB_FUNCTIONS': 'y' if 'functions' in name else 'n',
        })).application_recorder()

    def append(self, writer, n, message):
        event = StoredEvent(uuid.UUID(int=writer), n, 'Happened', message.encode())
        self.recorder.insert_events([event])

    def read(self, after):
        return [(event.state.decode(), event.id) for event in
                self.recorder.select_notifications(after, limit=100, inclusive_of_start=False)]


class MessageDB:
    def __init__(self):
        self.connection = psycopg.connect(user='message_store', autocommit=True)

    def append(self, writer, _, message):
        self.connection.execute(
            "SELECT write_message(gen_random_uuid()::text, %s, 'Happened', to_jsonb(%s::text))",
            [f'account-{writer}', message], prepare=True)

    def read(self, after):
        return [(json.loads(message), position) for message, position in self.connection.execute(
            "SELECT data, global_position FROM get_category_messages('account', %s, 100)",
            [after + 1], prepare=True)]


Store = MessageDB if name == 'message-db' else EventSourcing


def write(writer):
    store, appended, n = Store(), [], 0
    together.wait()
    started = time.monotonic()
    while True:
        if rate:
            time.sleep(max(0, started + n / rate - time.monotonic()))
        begin, message = time.monotonic(), f'{writer}-{n}'
        if n == rate * seconds if rate else begin >= started + seconds:
            return appended
        try:
            store.append(writer, n, message)
            appended.append((message, begin, time.monotonic()))
        except Exception as error:
            if 'rolled back' not in str(error):    # by stores.py
                raise
        n += 1


def read(writing):
    store, messages, after = Store(), [], 0
    while True:
        ended = all(one.done() for one in writing)
        found = store.read(after)
        for message, after in found:
            messages.append(message)
        if not found and ended:
            return messages
        if not found:
            time.sleep(0.001)


with ProcessPoolExecutor(max(writers, 1), fork) as processes:
    writing = [processes.submit(write, writer) for writer in range(writers)]
    messages = read(writing) if reader else []
    if not writing:
        Store()    # makes its tables
    # The first that has failed is the reason for others.
    appended = sum((one.result() for one in as_completed(writing)), [])
    json.dump({'appended': appended, 'read': messages}, sys.stdout)
