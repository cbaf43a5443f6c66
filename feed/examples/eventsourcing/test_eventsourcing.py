"""The library's tests on the adapter, and its own, in the database that PGDATABASE names."""

import contextlib
import faulthandler
import getpass
import os
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from unittest import mock
from uuid import uuid4

import psycopg
from eventsourcing import postgres
from eventsourcing.persistence import DataError, OperationalError, ProgrammingError, StoredEvent
from eventsourcing.popo import POPOTrackingRecorder
from eventsourcing.tests import application, persistence, projection
from eventsourcing.utils import Environment
from psycopg.sql import SQL

import fast_feed_eventsourcing as adapter

os.environ |= {
    "PERSISTENCE_MODULE": "fast_feed_eventsourcing",
    "POSTGRES_DBNAME": os.environ["PGDATABASE"],
    "POSTGRES_HOST": os.environ["PGHOST"],
    "POSTGRES_PORT": os.environ["PGPORT"],
    "POSTGRES_USER": os.environ.get("PGUSER", getpass.getuser()),
    "POSTGRES_PASSWORD": os.environ.get("PGPASSWORD", ""),
    "POSTGRES_SCHEMA": "events",
    "EVENTCOUNTERS_PERSISTENCE_MODULE": "eventsourcing.popo",
}


def connect():
    return psycopg.connect(autocommit=True, options="-c search_path=events,public")


class Store:
    """A schema of its own for each test, and recorders as an application gets them."""

    env = {}

    def setUp(self):
        # A test that hangs ends the run.
        faulthandler.dump_traceback_later(300, exit=True, file=sys.__stderr__)
        self.addCleanup(faulthandler.cancel_dump_traceback_later)
        with connect() as conn:
            conn.execute("DROP SCHEMA IF EXISTS events CASCADE; CREATE SCHEMA events")
        self.env = Environment("", os.environ | self.env)
        self.factory = adapter.Factory(self.env)
        self.addCleanup(self.factory.close)
        super().setUp()

    def create_recorder(self):
        return self.factory.application_recorder()

    def recorder(self, recorder_class):
        recorder = recorder_class(self.factory.datastore)
        recorder.create_table()
        return recorder


class ApplicationRecorderTest(Store, persistence.ApplicationRecorderTestCase):
    test_insert_subscribe = persistence.ApplicationRecorderTestCase.optional_test_insert_subscribe


class DbFunctionsTest(ApplicationRecorderTest):
    env = {"POSTGRES_ENABLE_DB_FUNCTIONS": "y"}


class NonInterleavingTest(Store, persistence.NonInterleavingNotificationIDsBaseCase):
    """Only the lock keeps the ids of one append together."""

    env = {"APPLICATION_RECORDER_TOPIC": "fast_feed_eventsourcing:LockingApplicationRecorder"}


class ProcessRecorderTest(Store, persistence.ProcessRecorderTestCase):
    def create_recorder(self):
        return self.factory.process_recorder()


class LockingProcessRecorderTest(ProcessRecorderTest):
    env = {"PROCESS_RECORDER_TOPIC": "fast_feed_eventsourcing:LockingProcessRecorder"}


class TrackingRecorderTest(Store, persistence.TrackingRecorderTestCase):
    def create_recorder(self):
        return self.factory.process_recorder()


class TrackingRecorder(postgres.PostgresTrackingRecorder):
    pass


class FactoryTest(Store, persistence.InfrastructureFactoryTestCase):
    def expected_factory_class(self):
        return adapter.Factory

    def expected_aggregate_recorder_class(self):
        return postgres.PostgresAggregateRecorder

    def expected_application_recorder_class(self):
        return adapter.FeedApplicationRecorder

    def expected_tracking_recorder_class(self):
        return postgres.PostgresTrackingRecorder

    def tracking_recorder_subclass(self):
        return TrackingRecorder

    def expected_process_recorder_class(self):
        return adapter.FeedProcessRecorder


class ExampleApplicationTest(Store, application.ExampleApplicationTestCase):
    expected_factory_topic = "fast_feed_eventsourcing:Factory"


class ApplicationTest(Store, application.ApplicationTestCase):
    pass


class EventSourcedProjectionTest(Store, projection.EventSourcedProjectionTestCase):
    pass


class EventCounters(POPOTrackingRecorder, projection.EventCountersView):
    created = subsequent = 0

    def get_created_event_counter(self):
        return self.created

    def get_subsequent_event_counter(self):
        return self.subsequent

    def incr_created_event_counter(self, tracking):
        self.insert_tracking(tracking)
        self.created += 1

    def incr_subsequent_event_counter(self, tracking):
        self.insert_tracking(tracking)
        self.subsequent += 1


class ProjectionTest(Store, projection.AggregateEventCountersProjectionTestCase):
    view_class = EventCounters


# The adapter's own


def events(count=1):
    originator_id = uuid4()
    return [StoredEvent(originator_id, version, "topic", b"") for version in range(count)]


def read(subscription, seen, last_id=None):
    """Appends the ids up to this one, or fifty."""
    enough = len(seen) + 50
    while last_id not in seen if last_id else len(seen) < enough:
        seen.append(next(subscription).id)
    return seen


def save(recorder, count):
    with contextlib.suppress(DataError):
        return recorder.insert_events(events(count))
    return []


# Transactions that have their ids end up to 10 ms later, and one in ten rolls back.
LATE = """
CREATE FUNCTION late() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_sleep(random() / 100), 1 / (random() > 0.1)::int;
    RETURN NULL;
END $$;
CREATE TRIGGER late AFTER INSERT ON stored_events EXECUTE FUNCTION late()"""


class FeedTest(Store, unittest.TestCase):
    env = {"POSTGRES_LOCK_TIMEOUT": "60"}

    def test_late_commits(self):
        """Every event once, in order."""
        recorder = self.create_recorder()
        with connect() as conn:
            conn.execute(LATE)
        with recorder.subscribe() as subscription:
            seen, saved = [], []
            for self.factory.datastore.enable_db_functions in False, True:
                with ThreadPoolExecutor(8) as writers:
                    for ids in writers.map(save, [recorder] * 300, [1, 2, 3] * 100):
                        saved += ids
                self.assertEqual(read(subscription, seen, max(saved)), sorted(saved))

    def test_held_back(self):
        """An event comes when the transaction ends that holds it back, without another event."""
        recorder = self.create_recorder()
        for end in "ROLLBACK", "COMMIT":
            with (
                self.subTest(end),
                connect() as other,
                # What comes is not brought by the timeout.
                mock.patch.object(adapter.FeedSubscription, "timeout", "1 day"),
                recorder.subscribe(gt=recorder.max_notification_id()) as subscription,
            ):
                try:
                    other.execute("BEGIN")
                    first = other.execute(
                        "INSERT INTO stored_events VALUES (gen_random_uuid(), 1, 'topic', '')"
                        " RETURNING notification_id"
                    ).fetchone()
                    second = recorder.insert_events(events())
                    self.assertEqual(recorder.select_notifications(first[0], 2), [])
                    self.assertNotEqual(recorder.max_notification_id(), second[0])
                    other.execute(end)
                    expected = [*first, *second] if end == "COMMIT" else second
                    self.assertEqual(read(subscription, [], second[0]), expected)
                finally:
                    subscription.stop()
                    other.close()
                    recorder.insert_events(events())  # wakes the subscription, to stop

    def test_settings(self):
        """A subscription waits whatever the settings are, and leaves them as they are."""
        options = "-c default_transaction_isolation=serializable -c statement_timeout=5s"
        waits = "FROM pg_stat_activity WHERE query ~ '^SELECT fast_feed.wait' AND state = 'active'"
        with (
            mock.patch.dict(os.environ, PGOPTIONS=options),
            mock.patch.object(adapter.FeedSubscription, "timeout", "5.5 s"),
            connect() as other,
        ):
            other.execute("SET statement_timeout = 0")
            recorder = self.create_recorder()
            saved = recorder.insert_events(events())
            with recorder.subscribe() as subscription:
                seen, waited = read(subscription, [], saved[0]), set()
                while len(waited) < 2 and not subscription._thread_error:
                    waited |= set(other.execute(f"SELECT query_start {waits}"))
                saved += recorder.insert_events(events())
                self.assertEqual(read(subscription, seen, saved[1]), saved)
                while not subscription._thread_error:
                    other.execute(f"SELECT pg_cancel_backend(pid) {waits}")
                with self.assertRaisesRegex(OperationalError, "user request"):
                    next(subscription)
            show = "SELECT setting FROM pg_settings WHERE name ~ '^(default_.*_iso|statement_tim)'"
            for conn in self.factory.datastore.pool._pool:
                settings = [row["setting"] for row in conn.execute(show)]
                self.assertEqual(settings, ["serializable", "5000"])

    def test_lock_timeout(self):
        """That of the settings holds, although there is no lock of the table."""
        recorder = self.create_recorder()
        with connect() as conn:
            conn.execute("""
                CREATE FUNCTION timeout() RETURNS trigger LANGUAGE plpgsql AS
                    'BEGIN NEW.topic := current_setting(''lock_timeout''); RETURN NEW; END';
                CREATE TRIGGER timeout BEFORE INSERT ON stored_events
                    FOR EACH ROW EXECUTE FUNCTION timeout()""")
        for self.factory.datastore.enable_db_functions in False, True:
            recorder.insert_events(events())
        topics = [event.topic for event in recorder.select_notifications(None, 2)]
        self.assertEqual(topics, ["1min", "1min"])

    def test_no_notification(self):
        """But for the library's own function, which stays with CREATE_TABLE=n."""
        recorder = self.create_recorder()
        with connect() as conn:
            conn.execute(f"LISTEN {recorder.channel_name}")
            for self.factory.datastore.enable_db_functions in False, True:
                recorder.insert_events(events())
            conn.execute(f"NOTIFY {recorder.channel_name}, 'first'")
            self.assertEqual(next(conn.notifies()).payload, "first")
            self.recorder(postgres.PostgresApplicationRecorder)
            recorder.insert_events(events())
            self.assertEqual(next(conn.notifies()).payload, "")

    def test_another_version(self):
        """Of the library, without what the adapter takes out: refused."""
        for was, now in ("LOCK TABLE", "LOCK"), ("NOTIFY", "LISTEN"):
            changed = mock.patch.object(postgres, "SQL", lambda sql: SQL(sql.replace(was, now)))
            with changed, self.assertRaisesRegex(ProgrammingError, "another version"):
                self.create_recorder()

    def test_another_role(self):
        """One that does not own the table needs what it needs for the library."""
        self.create_recorder()
        grants = """
            CREATE ROLE fast_feed_app;
            GRANT USAGE ON SCHEMA events TO fast_feed_app;
            GRANT SELECT, INSERT ON stored_events TO fast_feed_app;
            GRANT USAGE ON SEQUENCE stored_events_notification_id_seq TO fast_feed_app"""
        with connect() as conn, mock.patch.dict(os.environ, PGOPTIONS="-c role=fast_feed_app"):
            conn.execute(grants)
            try:
                self.env["CREATE_TABLE"] = "n"
                with adapter.Factory(self.env) as self.factory:
                    recorder = self.create_recorder()
                    for self.factory.datastore.enable_db_functions in False, True:
                        recorder.insert_events(events())
                    with recorder.subscribe() as subscription:
                        self.assertEqual(read(subscription, [], 2), [1, 2])
                    self.assertEqual(recorder.max_notification_id(), 2)
            finally:
                conn.execute("DROP OWNED BY fast_feed_app; DROP ROLE fast_feed_app")

    def test_not_enabled(self):
        """A table of the library is not read, where the adapter creates no tables."""
        self.recorder(postgres.PostgresApplicationRecorder).insert_events(events())
        self.env["CREATE_TABLE"] = "n"
        recorder = self.create_recorder()
        refused = self.assertRaisesRegex(OperationalError, "has to call fast_feed.enable")
        with refused:
            recorder.select_notifications(None, 1)
        with refused:
            recorder.max_notification_id()
        with refused, recorder.subscribe() as subscription:
            next(subscription)

    def test_other_writers(self):
        """Those of the library pass; a number that was drawn before, or never, is refused."""
        ours = self.create_recorder()
        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        for self.factory.datastore.enable_db_functions in False, True:
            theirs.insert_events(events())
        with connect() as conn:
            drawn = conn.execute("SELECT nextval('stored_events_notification_id_seq')").fetchone()
            for number in drawn[0], 4:
                with self.assertRaises(psycopg.errors.CheckViolation):
                    conn.execute(
                        "INSERT INTO stored_events VALUES (gen_random_uuid(), 1, '', '', %s)",
                        [number],
                    )
        self.assertEqual([n.id for n in ours.select_notifications(None, 9)], [1, 2])

    def test_table_in_use(self):
        """The adapter waits for its lock as long as it may, and no longer once it has had it."""
        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        self.factory.datastore.lock_timeout = 1
        with connect() as conn:
            conn.execute("BEGIN; SELECT FROM stored_events")
            with self.assertRaisesRegex(OperationalError, "lock timeout"):
                self.create_recorder()
            conn.execute("COMMIT")
            self.factory.datastore.lock_timeout = 60
            self.create_recorder()
            conn.execute("BEGIN; SELECT FROM stored_events")
            self.create_recorder()

    def test_there_and_back(self):
        """Beside writers, readers of both kinds get every event once, in order."""
        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        locking = adapter.LockingApplicationRecorder(self.factory.datastore)
        feed = adapter.FeedApplicationRecorder(self.factory.datastore)
        saved = []

        @contextlib.contextmanager
        def writing(*recorders):
            stop = threading.Event()

            def write(recorder):
                while not stop.is_set():
                    saved.extend(save(recorder, 2))

            with ThreadPoolExecutor() as pool:
                writers = [pool.submit(write, recorder) for recorder in recorders * 4]
                try:
                    yield
                finally:
                    stop.set()
            for writer in writers:
                writer.result()

        with connect() as conn:
            conn.execute(LATE)
            with theirs.subscribe() as old:
                seen_old, seen_new = [], []
                with writing(theirs):
                    read(old, seen_old)
                    locking.create_table()
                    read(old, seen_old)
                with locking.subscribe() as new:
                    for recorders in (theirs, locking), (locking,):
                        with writing(*recorders):
                            read(old, seen_old)
                            read(new, seen_new)
                    self.assertEqual(read(old, seen_old, max(saved)), sorted(saved))
                    old.stop()
                    # Only now can a greater number be committed first.
                    for recorders in (locking, feed), (feed,), (feed, locking):
                        with writing(*recorders):
                            read(new, seen_new)
                    with theirs.subscribe() as old:
                        seen_old = []
                        for recorders in (locking,), (locking, theirs), (theirs,):
                            with writing(*recorders):
                                read(old, seen_old)
                                read(new, seen_new)
                        self.assertEqual(read(new, seen_new, max(saved)), sorted(saved))
                        new.stop()
                        with writing(theirs):
                            read(old, seen_old)
                            conn.execute("SELECT fast_feed.disable('stored_events')")
                            read(old, seen_old)
                        self.assertEqual(read(old, seen_old, max(saved)), sorted(saved))
        with self.assertRaisesRegex(OperationalError, "is not followed"):
            feed.select_notifications(None, 1)
