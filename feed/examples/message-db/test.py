"""message-db as shipped, on fast_feed, back, and on fast_feed again, beside writers and readers."""
import os
import random
import subprocess
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor

import psycopg
from psycopg import errors

CATEGORIES = ["account", "order", "parcel"]
# Whatever the scripts change
STORE = """SELECT pg_get_functiondef(oid) FROM pg_proc
            WHERE pronamespace = 'message_store'::regnamespace
           UNION ALL SELECT pg_get_triggerdef(oid) FROM pg_trigger ORDER BY 1"""
# What each script changes last
CHANGED_LAST = {"fast_feed.sql": "SELECT pg_get_functiondef('acquire_lock'::regproc)",
                "back.sql": "SELECT pg_get_functiondef('get_category_messages'::regproc)"}
SEQUENCE = "SELECT * FROM messages_global_position_seq"
CATEGORY = "SELECT id, global_position FROM get_category_messages(%(category)s, %(position)s, 100)"
# What a reader of all categories has to ask for, since message-db has no function for it
EVERYTHING = """SELECT id::text, global_position FROM messages
                 WHERE global_position >= %(position)s
                   AND global_position < fast_feed.watermark('messages')
                 ORDER BY global_position LIMIT 100"""


def connect():
    return psycopg.connect(user="message_store", options="-c lock_timeout=30s")


def query(sql, **values):
    with connect() as connection:
        return connection.execute(sql, values).fetchall()


def superuser(sql):
    with psycopg.connect() as connection:
        return connection.execute(sql).rowcount


def write(connection, stream, expected=None):
    message = str(uuid.uuid4())
    connection.execute("SELECT write_message(%s, %s, 'Happened', '{}', NULL, %s)",
                       (message, stream, expected))
    return message


def read(category, connection=None):
    rows = (connection or connect()).execute(CATEGORY, {"category": category, "position": 1})
    return [message for message, _ in rows]


def until(condition):
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def psql(*arguments):
    """What it says, whatever the settings are; run again if it could not lock in time"""
    command = ["psql", "-X", "-q", "-v", "AUTOCOMMIT=off", "-f", *arguments]
    while True:
        said = subprocess.run(command, stderr=subprocess.PIPE, text=True,
                              env=os.environ | {"PGOPTIONS": "-c statement_timeout=900ms"}).stderr
        if "lock timeout" not in said:
            return said


def waits():
    """Since when one of the scripts waits, if it does"""
    with psycopg.connect() as connection:
        return connection.execute(
            """SELECT query_start FROM pg_stat_activity
                WHERE query LIKE 'CALL pg_temp.wait%' AND wait_event = 'PgSleep'
                  AND query_start < clock_timestamp() - interval '1 s'""").fetchone()


def until_it_waits(running):
    until(lambda: running.done() or waits())


def psql_waits(script):
    """For a transaction that began before, but not with the table locked"""
    with ThreadPoolExecutor() as threads, connect() as before:
        function = before.execute(CHANGED_LAST[script]).fetchone()
        running = threads.submit(psql, script)
        until_it_waits(running)
        with connect() as writer:
            write(writer, "account-1")
            writer.rollback()
        assert query(CHANGED_LAST[script]) == [function] and not running.done()
        before.commit()
        return running.result()


def no_store():
    """A run that fails leaves nothing."""
    superuser("DROP EXTENSION fast_feed")
    assert 'schema "message_store" does not exist' in psql("fast_feed.sql")
    assert superuser("SELECT FROM pg_extension WHERE extname = 'fast_feed'") == 0


def no_superuser():
    for script in "fast_feed.sql", "back.sql":
        assert "must be a superuser" in psql(script, "-U", "message_store")


def back_without_there():
    """A store as shipped stays as it is."""
    shipped = query(STORE), query(SEQUENCE)
    assert psql("back.sql") == ""
    assert (query(STORE), query(SEQUENCE)) == shipped


def another_version():
    shipped = query(STORE)
    (theirs,), = query("SELECT pg_get_functiondef('acquire_lock'::regproc)")
    superuser(theirs.replace("BEGIN", "BEGIN -- changed"))
    changed = query(STORE)
    said = psql("fast_feed.sql")
    assert "not as message-db 1.2.3 to 1.3.1 installs it: message_store.acquire_lock" in said, said
    assert query(STORE) == changed != shipped
    superuser(theirs)
    assert query(STORE) == shipped


def not_preloaded():
    """As on PostgreSQL 15 and 16: no reader is given a function that fails."""
    shipped = query(STORE)
    superuser("""ALTER FUNCTION fast_feed.holders RENAME TO preloaded;
                 CREATE FUNCTION fast_feed.holders() RETURNS int
                 LANGUAGE plpgsql AS $$ BEGIN RAISE 'not preloaded'; END $$""")
    assert "not preloaded" in psql("fast_feed.sql")
    assert query(STORE) == shipped
    superuser("""DROP FUNCTION fast_feed.holders;
                 ALTER FUNCTION fast_feed.preloaded RENAME TO holders""")


class Load:
    commits, over, last = 0, False, None


def writer(load):
    """Transactions of up to three messages, in one order of streams, some late or rolled back"""
    written = []
    with connect() as connection:
        while not load.over:
            try:
                streams = [f"{random.choice(CATEGORIES)}-{random.randrange(50)}"
                           for _ in range(random.randint(1, 3))]
                messages = [write(connection, stream) for stream in sorted(streams)]
                time.sleep(random.choice([0, 0, 0.1]) * random.random())
                if random.random() < 0.1:
                    connection.rollback()
                else:
                    connection.commit()
                    load.commits += 1
                    written += messages
            except errors.DeadlockDetected:    # back.sql
                connection.rollback()
    return written


def reader(load, sql, category=None):
    """All that it is given up to the last message, whose position is known at the end"""
    messages, position = [], 0
    with connect() as connection:
        connection.autocommit = True
        while load.last is None or position < load.last.get(category, 0):
            for message, position in connection.execute(
                    sql, {"category": category, "position": position + 1}).fetchall():
                messages.append(message)
    return messages


def beside_writers_and_readers():
    """Theirs, ours, theirs, ours: each message that was committed is read once, in order."""
    load, shipped = Load(), query(STORE)
    with ThreadPoolExecutor() as threads:
        try:
            writers = [threads.submit(writer, load) for _ in range(6)]
            readers = {category: threads.submit(reader, load, CATEGORY, category)
                       for category in CATEGORIES}

            def go_on():
                enough = load.commits + 300
                until(lambda: load.commits >= enough or any(w.done() for w in writers))

            go_on()
            assert psql_waits("fast_feed.sql") == ""
            ours = query(STORE)
            go_on()
            assert psql_waits("back.sql") == ""
            assert query(STORE) == shipped != ours
            go_on()
            for _ in range(2):    # as often as one likes
                said = psql("fast_feed.sql")
                assert said == "", said
            assert query(STORE) == ours
            readers[None] = threads.submit(reader, load, EVERYTHING)
            go_on()
            load.over = True
            written = [message for w in writers for message in w.result()]
            load.last = dict(query("""SELECT category(stream_name), max(global_position)
                                        FROM messages GROUP BY ROLLUP (1)"""))
        finally:
            load.over, load.last = True, load.last or {}
    for category, r in readers.items():
        assert r.result() == [message for message, in query(
            """SELECT id::text FROM messages WHERE category(stream_name) = %(category)s
                   OR %(category)s::text IS NULL ORDER BY global_position""", category=category)]
        print(f"{len(r.result())} messages read of {category or 'all categories'}")
    assert sorted(readers[None].result()) == sorted(written)
    assert query("""SELECT stream_name FROM (
                      SELECT stream_name, position,
                             row_number() OVER (PARTITION BY stream_name ORDER BY global_position)
                        FROM messages) AS numbered
                    WHERE position <> row_number - 1""") == []


def a_late_commit():
    """Holds readers back, but no writer of another stream."""
    with connect() as late, connect() as early:
        first, second = write(late, "late-1"), write(early, "late-2")
        early.commit()
        assert read("late") == [] == read("late", late)
        late.commit()
        until(lambda: read("late") == [first, second])
        write(late, "late-1")
        third = write(early, "late-2")
        early.commit()
        assert read("late") == [first, second]
        late.rollback()
        until(lambda: read("late") == [first, second, third])


def a_snapshot_from_before():
    """Of a reader that began before back.sql had waited: it misses no message."""
    with ThreadPoolExecutor() as threads, connect() as late, connect() as reader:
        first = write(late, "snapshot-1")
        with connect() as early:
            second = write(early, "snapshot-2")
        running = threads.submit(psql, "back.sql")
        until_it_waits(running)
        for_writers = waits()
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("SELECT 1")
        late.commit()
        until(lambda: waits() not in (None, for_writers))
        assert read("snapshot", reader) == []
        reader.commit()
        assert running.result() == "" == psql("fast_feed.sql")
    until(lambda: read("snapshot") == [first, second])


def a_prepared_transaction():
    """back.sql waits for it, too."""
    with ThreadPoolExecutor() as threads, connect() as late:
        late.autocommit = True
        late.execute("BEGIN")
        first = write(late, "prepared-1")
        late.execute("PREPARE TRANSACTION 'late'")
        with connect() as early:
            second = write(early, "prepared-2")
        running = threads.submit(psql, "back.sql")
        until_it_waits(running)
        assert read("prepared") == [] and not running.done()
        late.execute("COMMIT PREPARED 'late'")
        assert running.result() == "" == psql("fast_feed.sql")
    until(lambda: read("prepared") == [first, second])


def expected_version():
    """Of two writers who expect the same the second waits, and wins if the first rolls back."""
    with connect() as first, connect() as second, ThreadPoolExecutor() as threads:
        for version, end in enumerate([first.rollback, first.commit], -1):
            write(first, "race-1", version)
            waiting = threads.submit(write, second, "race-1", version)
            until(lambda: query("""SELECT FROM pg_locks WHERE pid = %(pid)s AND NOT granted""",
                                pid=second.info.backend_pid))
            end()
            if end == first.rollback:
                waiting.result()
                second.commit()
            else:
                error = waiting.exception()
                assert isinstance(error, errors.RaiseException), error
                assert "Wrong expected version: 0 (Stream: race-1, Stream Version: 1)" in str(error)
                second.rollback()

        def one(_):
            with connect() as connection:
                try:
                    return write(connection, f"race-{version}", -1)
                except errors.RaiseException:
                    connection.rollback()

        for version in range(2, 22):
            won = [message for message in threads.map(one, range(4)) if message]
            assert query("SELECT id::text FROM messages WHERE stream_name = %(stream)s",
                         stream=f"race-{version}") == [tuple(won)]


def opposite_order():
    """Two streams of one category: a deadlock, after which one writer begins again."""
    both = threading.Barrier(2)

    def transfer(*streams):
        tries = 0
        with connect() as connection:
            while True:
                tries += 1
                try:
                    write(connection, streams[0])
                    if tries == 1:
                        both.wait()
                    write(connection, streams[1])
                    return tries
                except errors.DeadlockDetected:
                    connection.rollback()

    with ThreadPoolExecutor() as threads:
        there = threads.submit(transfer, "transfer-1", "transfer-2")
        back = threads.submit(transfer, "transfer-2", "transfer-1")
        assert sorted([there.result(), back.result()]) == [1, 2]
    assert query("""SELECT stream_name, count(*) FROM messages
                     WHERE category(stream_name) = 'transfer' GROUP BY 1 ORDER BY 1""") == [
        ("transfer-1", 2), ("transfer-2", 2)]


no_store()
os.environ |= {"DATABASE_NAME": os.environ["PGDATABASE"], "CREATE_DATABASE": "off"}
subprocess.run(["bash", "node_modules/@eventide/message-db/database/install.sh"], check=True,
               stdout=subprocess.DEVNULL)
superuser("CREATE EXTENSION fast_feed")
for test in (no_superuser, another_version, not_preloaded, back_without_there,
             beside_writers_and_readers, a_late_commit, a_snapshot_from_before, a_prepared_transaction,
             expected_version, opposite_order):
    test()
    print(f"{test.__name__}: passed")
