"""The library's tests on the adapter, and its own, in the database that PGDATABASE names."""

import contextlib
import faulthandler
import getpass
import os
import pathlib
import re
import sys
import threading
import unittest
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from unittest import mock
from uuid import uuid4

import psycopg
from eventsourcing import postgres
from eventsourcing.persistence import DataError, OperationalError, ProgrammingError, StoredEvent
from eventsourcing.popo import POPOTrackingRecorder
from eventsourcing.tests import application, persistence, projection
from eventsourcing.utils import Environment

import fast_uuid_eventsourcing as adapter

os.environ |= {
    "PERSISTENCE_MODULE": "fast_uuid_eventsourcing",
    "POSTGRES_DBNAME": os.environ["PGDATABASE"],
    "POSTGRES_HOST": os.environ["PGHOST"],
    "POSTGRES_PORT": os.environ["PGPORT"],
    "POSTGRES_USER": os.environ.get("PGUSER", getpass.getuser()),
    "POSTGRES_PASSWORD": os.environ.get("PGPASSWORD", ""),
    "POSTGRES_SCHEMA": "events",
    "EVENTCOUNTERS_PERSISTENCE_MODULE": "eventsourcing.popo",
}
README = pathlib.Path("README.md").read_text()
CONVERT, WAY_BACK = re.findall(r"```sql\n(.*?)```", README, re.DOTALL)


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


def fails(test, message):
    """A test of the library that fails with this assertion and no other: README.md says why."""

    def fails_so(self):
        with self.assertRaisesRegex(AssertionError, message):
            test(self)

    return fails_so


class ApplicationRecorderTest(Store, persistence.ApplicationRecorderTestCase):
    EXPECT_CONTIGUOUS_NOTIFICATION_IDS = False
    test_insert_subscribe = persistence.ApplicationRecorderTestCase.optional_test_insert_subscribe
    test_insert_select = fails(
        persistence.ApplicationRecorderTestCase.test_insert_select, r"!= \[1, 2\]"
    )


class DbFunctionsTest(ApplicationRecorderTest):
    env = {"POSTGRES_ENABLE_DB_FUNCTIONS": "y"}


class Ranks(adapter.FeedApplicationRecorder):
    """1, 2, 3 in place of the ids"""

    def ids(self):
        return [None, *(n.id for n in super().select_notifications(None, 1000))]

    def insert_events(self, *args):
        ids = super().insert_events(*args)
        return [self.ids().index(id) for id in ids]

    def select_notifications(self, start, limit, stop=None, **kwargs):
        ids = self.ids()
        found = super().select_notifications(ids[start or 0], limit, ids[stop or 0], **kwargs)
        return [replace(n, id=ids.index(n.id)) for n in found]

    def max_notification_id(self):
        return self.ids().index(super().max_notification_id()) or None


class RanksTest(Store, persistence.RecorderTestCase):
    test_insert_select = persistence.ApplicationRecorderTestCase.test_insert_select

    def create_recorder(self):
        return self.recorder(Ranks)


class Halves(adapter.FeedApplicationRecorder):
    """Two writers, each of whom writes the second half of its events after the first of both"""

    halfway = threading.Barrier(2)

    def _insert_stored_events(self, curs, events, **kwargs):
        super()._insert_stored_events(curs, events[::2], **kwargs)
        curs.fetchall()
        self.halfway.wait(60)
        super()._insert_stored_events(curs, events[1::2], **kwargs)


class NonInterleavingTest(Store, persistence.NonInterleavingNotificationIDsBaseCase):
    test = fails(
        persistence.NonInterleavingNotificationIDsBaseCase.test, r"^\d+ not greater than \d+$"
    )

    def create_recorder(self):
        return self.recorder(Halves)


class ProcessRecorderTest(Store, persistence.ProcessRecorderTestCase):
    def create_recorder(self):
        return self.factory.process_recorder()


class LockingProcessRecorderTest(ProcessRecorderTest):
    env = {"PROCESS_RECORDER_TOPIC": "fast_uuid_eventsourcing:LockingProcessRecorder"}


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
    expected_factory_topic = "fast_uuid_eventsourcing:Factory"


class ApplicationTest(Store, application.ApplicationTestCase):
    test_save_returns_recording_event = fails(
        application.ApplicationTestCase.test_save_returns_recording_event, r"^\d+ != 1$"
    )


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
        options = "-c default_transaction_isolation=serializable -c statement_timeout=2s"
        waits = "FROM pg_stat_activity WHERE query ~ '^SELECT uuidv7_feed_w' AND state = 'active'"
        with (
            mock.patch.dict(os.environ, PGOPTIONS=options),
            mock.patch.object(adapter.FeedSubscription, "timeout", "2.5 s"),
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
                self.assertEqual(settings, ["serializable", "2000"])

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

        class Changed(adapter.LockingApplicationRecorder):
            def __init__(self, *args):
                super().__init__(*args)
                change(self)

        class Ours(adapter.FeedApplicationRecorder, Changed):
            pass

        for change in (
            lambda recorder: recorder.lock_table_statements.pop(),
            lambda recorder: setattr(recorder, "channel_name", "another"),
        ):
            with self.assertRaisesRegex(ProgrammingError, "another version"):
                self.recorder(Ours)

    def test_row_security(self):
        """The view gives nobody rows that the table does not."""
        self.create_recorder().insert_events(events())
        with connect() as conn:
            for sql in "", WAY_BACK + CONVERT:
                conn.execute(sql)
                conn.execute("""
                    BEGIN;
                    CREATE ROLE fast_uuid_reader;
                    GRANT USAGE ON SCHEMA events TO fast_uuid_reader;
                    GRANT SELECT ON stored_events, stored_events_feed TO fast_uuid_reader;
                    ALTER TABLE stored_events ENABLE ROW LEVEL SECURITY;
                    SET LOCAL ROLE fast_uuid_reader""")
                found = conn.execute("SELECT FROM stored_events_feed")
                self.assertEqual(found.rowcount, 0)
                conn.execute("ROLLBACK")

    def test_not_preloaded(self):
        """Without the watermark, as on PostgreSQL 15 and 16, the start fails, not the first read."""
        self.create_recorder()
        with connect() as conn:
            conn.execute("ALTER FUNCTION uuidv7_feed_position_watermark RENAME TO not_preloaded")
            try:
                with self.assertRaisesRegex(ProgrammingError, "uuidv7_feed_position_watermark"):
                    self.create_recorder()
            finally:
                conn.execute("ALTER FUNCTION not_preloaded RENAME TO uuidv7_feed_position_watermark")

    def test_empty_table(self):
        """That of the library becomes a feed."""
        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        self.create_recorder()
        self.assertGreater(theirs.insert_events(events())[0], 10**18)
        with connect() as conn, self.assertRaises(psycopg.errors.CheckViolation):
            conn.execute("INSERT INTO stored_events VALUES (gen_random_uuid(), 1, '', '', 1)")

    def test_table_with_events(self):
        """That of the library is refused, also where the adapter creates no tables."""
        self.recorder(postgres.PostgresApplicationRecorder).insert_events(events())
        with self.assertRaisesRegex(OperationalError, "ids from a sequence(.|\n)*README.md"):
            self.create_recorder()
        self.env["CREATE_TABLE"] = "n"
        recorder = self.create_recorder()
        for self.factory.datastore.enable_db_functions in False, True:
            for call in (
                lambda: recorder.insert_events(events()),
                lambda: recorder.select_notifications(None, 1),
                recorder.max_notification_id,
            ):
                with self.assertRaisesRegex(ProgrammingError, 'stored_events_feed" does not exist'):
                    call()

    def test_table_in_use(self):
        """The adapter waits briefly for its lock, and only if it is empty: others would wait too."""
        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        for refused in "lock timeout", "ids from a sequence":
            with connect() as conn:
                conn.execute("SET idle_in_transaction_session_timeout = '20 s'")
                conn.execute("BEGIN; SELECT FROM stored_events")
                with self.assertRaisesRegex(OperationalError, refused):
                    self.create_recorder()
                conn.execute("COMMIT")
            theirs.insert_events(events())

    def test_conversion(self):
        """There and back, beside writers; readers of both kinds get every event once, in order."""
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

        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        with theirs.subscribe() as subscription, connect() as conn:
            conn.execute(LATE)
            seen = []
            with writing(theirs):
                read(subscription, seen)
                conn.execute(CONVERT)
                read(subscription, seen)
            locking = self.recorder(adapter.LockingApplicationRecorder)
            with writing(theirs, locking):
                read(subscription, seen)
            with writing(locking):
                read(subscription, seen)
            self.assertEqual(read(subscription, seen, max(saved)), sorted(saved))

        feed = self.create_recorder()
        with locking.subscribe() as subscription:
            seen = []
            with writing(locking, feed):
                read(subscription, seen)
            with writing(feed):
                read(subscription, seen)
            with writing(feed, locking):
                read(subscription, seen)
            self.assertEqual(read(subscription, seen, max(saved)), sorted(saved))

        with theirs.subscribe() as subscription, connect() as conn:
            seen = []
            with writing(locking, theirs):
                read(subscription, seen)
            with writing(theirs):
                read(subscription, seen)
                conn.execute(WAY_BACK)
                read(subscription, seen)
            self.assertEqual(read(subscription, seen, max(saved)), sorted(saved))
        theirs.create_table()
        with self.assertRaises(OperationalError):
            self.create_recorder()

    def test_way_back(self):
        """New ids are greater than all positions, also those of events that were deleted."""
        deleted = self.create_recorder().insert_events(events())
        with connect() as conn:
            conn.execute("DELETE FROM stored_events")
            conn.execute(WAY_BACK)
        theirs = self.recorder(postgres.PostgresApplicationRecorder)
        self.assertGreater(theirs.insert_events(events()), deleted)
