"""Delivers the rows of a table in the order of their numbers, each at least once."""

import os
import signal
import sys
import time
import urllib.request

import psycopg

NAME, BATCH = "mail", 100
RECEIVER = os.environ.get("RECEIVER", "http://127.0.0.1:8080/")

POSITION = "SELECT position FROM event_consumer WHERE name = %s"
ROWS = """
    SELECT id, payload::text FROM event
     WHERE id > %s AND id < fast_feed.watermark('event') ORDER BY id LIMIT %s"""
# Not where somebody has changed the position meanwhile.
STORE = "UPDATE event_consumer SET position = %s WHERE name = %s AND position = %s"
# For a second at most, because SIGTERM does not end it
WAIT = "SELECT fast_feed.wait(%s, '1 s')"

stopping = False
said = None


class NoRedirect(urllib.request.HTTPRedirectHandler):
    """It would be followed by GET, without the rows."""

    def redirect_request(self, *_):
        return None


opener = urllib.request.build_opener(NoRedirect)


def deliver(place, rows):
    """Replace this. If it raises an error, the same rows come again."""
    # Payloads are the database's text, because Python changes numbers.
    objects = ",".join(f'{{"id": {id}, "payload": {payload}}}' for id, payload in rows)
    request = urllib.request.Request(
        RECEIVER,
        f'{{"place": "{place}", "rows": [{objects}]}}'.encode(),
        {"Content-Type": "application/json"},
    )
    with opener.open(request, timeout=30):
        pass


def consume():
    # JSON is UTF-8, whatever encoding the database has.
    with psycopg.connect(autocommit=True, client_encoding="utf8") as connection:
        (place,) = connection.execute("SELECT event_consume(%s)", [NAME]).fetchone()
        seen = 0
        while not stopping:
            (position,) = connection.execute(POSITION, [NAME]).fetchone()
            rows = connection.execute(ROWS, [position, BATCH]).fetchall()
            if rows:
                deliver(place, rows)
                connection.execute(STORE, [rows[-1][0], NAME, position])
            say("at work")
            if len(rows) < BATCH:
                (seen,) = connection.execute(WAIT, [seen]).fetchone()


def say(line):
    """Not again each second."""
    global said
    if line != said:
        print(f"{NAME}: {line}", file=sys.stderr)
    said = line


def stop(*_):
    global stopping
    stopping = True


signal.signal(signal.SIGTERM, stop)
while not stopping:
    try:
        consume()
    except Exception as error:  # of the connection or the delivery: the position is as it was
        say("tries again each second: " + (str(error) or repr(error)).splitlines()[0])
        time.sleep(1)
