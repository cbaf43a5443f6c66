# Delivers the rows of a table in the order of their positions, each at least once.

import logging
import os
import signal
import sys
import time
import urllib.request

import psycopg

TABLE, GROUP, BATCH = "event", "mail", 100
RECEIVER = os.environ.get("RECEIVER") or sys.exit("RECEIVER must be the URL to post to")
stopping = False


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect is an error: it would be followed by GET, without the rows."""

    def redirect_request(self, *_):
        return None


def deliver(rows):
    """Replace this. If it raises an error, the same rows come again."""
    # Positions as strings, because many receivers take JSON's numbers as floating point; so does
    # Python, so payloads are the database's text.
    objects = [f'{{"position": "{row[0]}", "payload": {row[1] or "null"}}}' for row in rows]
    request = urllib.request.Request(
        RECEIVER,
        f"[{','.join(objects)}]".encode(),
        {"Content-Type": "application/json"},
    )
    urllib.request.build_opener(NoRedirect).open(request, timeout=30).close()


def next_batch(connection):
    """Delivers the rows after the group's position, and returns how many there were."""
    with connection.transaction():
        # Another consumer of the group waits here until this one has committed.
        (read_up_to,) = connection.execute(
            "SELECT read_up_to FROM event_reader WHERE name = %s FOR UPDATE", [GROUP]
        ).fetchone()
        rows = connection.execute(
            f"SELECT position, payload::text FROM {TABLE} WHERE position > %s"
            " AND position < uuidv7_feed_position_watermark() ORDER BY position LIMIT %s",
            [read_up_to, BATCH],
        ).fetchall()
        if rows:
            deliver(rows)
            connection.execute(
                "UPDATE event_reader SET read_up_to = %s WHERE name = %s", [rows[-1][0], GROUP]
            )
        return len(rows)


def consume():
    # JSON is UTF-8, whatever encoding the database has.
    with psycopg.connect(autocommit=True, client_encoding="utf8") as connection:
        # uuidv7_feed_wait() refuses a higher level, and a timeout would end it.
        connection.execute(
            "SET default_transaction_isolation = 'read committed'; SET statement_timeout = 0"
        )
        connection.execute(
            "INSERT INTO event_reader VALUES (%s, 0) ON CONFLICT DO NOTHING", [GROUP]
        )
        seen = 0
        while not stopping:
            if not next_batch(connection):
                # Outside of a transaction; for a second at most, because SIGTERM does not end it
                (seen,) = connection.execute(
                    "SELECT uuidv7_feed_wait(%s, '1 s')", [seen]
                ).fetchone()


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
while not stopping:
    try:
        consume()
    except Exception:  # of the connection or the delivery: nothing was stored
        logging.exception("The batch is tried again, on a new connection")
        time.sleep(1)
