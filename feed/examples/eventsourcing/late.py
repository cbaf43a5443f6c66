"""What a follower of the library's own recorder gets with POSTGRES_ENABLE_DB_FUNCTIONS=y, when one
append has its id and commits late: in an empty database, that PGDATABASE names."""

import getpass
import os
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import psycopg
from eventsourcing.persistence import StoredEvent
from eventsourcing.postgres import PostgresFactory

recorder = PostgresFactory(
    {
        "POSTGRES_DBNAME": os.environ["PGDATABASE"],
        "POSTGRES_HOST": os.environ.get("PGHOST", "/var/run/postgresql"),
        "POSTGRES_PORT": os.environ.get("PGPORT", "5432"),
        "POSTGRES_USER": os.environ.get("PGUSER", getpass.getuser()),
        "POSTGRES_PASSWORD": os.environ.get("PGPASSWORD", ""),
        "POSTGRES_ENABLE_DB_FUNCTIONS": "y",
    }
).application_recorder()


def append(topic):
    return recorder.insert_events([StoredEvent(uuid4(), 0, topic, b"")])


with psycopg.connect(autocommit=True) as holds, ThreadPoolExecutor() as thread:
    holds.execute("""
        CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS
            'BEGIN PERFORM pg_advisory_xact_lock(1); RETURN NULL; END';
        CREATE TRIGGER wait AFTER INSERT ON stored_events
            FOR EACH ROW WHEN (NEW.topic = 'late') EXECUTE FUNCTION wait();
        SELECT pg_advisory_lock(1)""")
    late = thread.submit(append, "late")
    waits = "SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
    while not late.done() and holds.execute(waits).fetchone() is None:
        pass
    append("early")
    read = recorder.select_notifications(start=None, limit=10)
    holds.execute("SELECT pg_advisory_unlock(1)")
    late.result()
    read += recorder.select_notifications(read[-1].id, 10, inclusive_of_start=False)
    print("read:", [event.topic for event in read])
    print("there:", [event.topic for event in recorder.select_notifications(None, 10)])
recorder.datastore.close()
