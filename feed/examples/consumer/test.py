# Kills a consumer 50 times, between and during deliveries, beside writers that commit late or roll
# back; lets the server crash, recover as a standby, and be promoted; lets a second consumer of the
# name take over.  Every committed row must arrive unchanged, in order, and no batch twice without
# a reason.  The seed repeats what is drawn.

import http.server
import json
import os
import pathlib
import random
import re
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import types
from decimal import Decimal

import psycopg

BATCH, WRITERS, KILLS, PATIENCE = 100, 8, 50, 120
EXACT = Decimal("9007199254740993.1")  # which is no floating-point number
REFUSAL = "another consumer of this name is at work"
SESSION = "FROM pg_stat_activity WHERE application_name = %s"
INSERT = """
    INSERT INTO event (payload) SELECT jsonb_build_object('Jürgen', %s)
      FROM generate_series(1, %s) RETURNING id"""
seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**9))
draw = random.Random(seed)
here = pathlib.Path(__file__).parent
readme = (here / "README.md").read_text()
begin, begin_now, begin_anew = re.findall("```sql\n(.*?)```", readme, re.DOTALL)
print(f"SEED={seed} test.py {' '.join(sys.argv[1:])}", flush=True)

consumers, killed = [], set()
plans = {}  # by the number of a consumer: what is done, and to which of its batches
batches, delivered, arriving = [], [], threading.Lock()
places = set()
disturbed = []  # an odd number while the session is broken and there is no new one
faults, ending = [], threading.Event()
answers = {"refuse": 503, "redirect": 301}


def arrive(batch):
    """A batch is the next one, or the previous one again, if there is a reason."""
    numbers = [number for number, _ in batch.rows]
    assert 1 <= len(numbers) <= BATCH, f"{len(numbers)} rows in a batch"
    assert all(a < b for a, b in zip(numbers, numbers[1:])), "a batch is not in order"
    previous = batches[-1] if batches else None
    if previous and previous.rows[0] == batch.rows[0]:
        lost = previous.disturbed != len(disturbed) or len(disturbed) % 2
        assert not previous.accepted or previous.consumer in killed or lost, "twice, for no reason"
        assert not previous.stored, "twice, although the position was stored"
        assert batch.rows[: len(previous.rows)] == previous.rows, "again, but not the same rows"
        del delivered[-len(previous.rows) :]
    elif previous:
        assert previous.accepted, "the next batch, although the previous one was not accepted"
        assert numbers[0] > previous.rows[-1][0], "rows before those that were delivered"
    batches.append(batch)
    delivered.extend(batch.rows)


class Receiver(http.server.BaseHTTPRequestHandler):
    """The path names the consumer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        number = int(self.path[1:])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with arriving:
            if number in killed:  # The body can be cut, or the next consumer's have come before.
                return
            body = json.loads(body, parse_float=Decimal)
            places.add(body["place"])
            rows = [(row["id"], row["payload"]["Jürgen"]) for row in body["rows"]]
            batch = types.SimpleNamespace(consumer=number, rows=rows, disturbed=len(disturbed))
            batch.accepted = batch.stored = False
            what, delay = plans[number].pop(count(number) + 1, ("accept", 0))
            if what == "begin anew":
                execute(begin_anew)
                batches.clear()
                delivered.clear()
            else:
                arrive(batch)
        if what == "kill before the answer":
            return kill(number)
        if what == "take long":  # longer than the limits that consumers find
            time.sleep(1.2)
        elif what == "terminate":
            consumers[number].terminate()
            time.sleep(0.1)  # to be most likely noticed before the answer
        elif what == "take over":
            disturbed.append(number)
            ask(f"SELECT pg_terminate_backend(pid) {SESSION}", f"consumer {number}")
            wait_until(lambda: batches[-1].consumer != number, "the other consumer")
            disturbed.append(number)
        batch.accepted = what not in answers
        self.answer(answers.get(what, 200))
        if what == "kill after the answer":
            time.sleep(delay)  # to hit any step after the delivery
            kill(number)

    def do_GET(self):
        """As clients follow a redirect, without the rows"""
        self.answer(200)

    def answer(self, status):
        self.send_response(status)
        self.send_header("Location", self.path)
        self.send_header("Content-Length", "20000")
        self.end_headers()
        self.wfile.write(b"-" * 20000)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # of one that was killed
            faults.append(sys.exc_info()[1])


def start(plan, url=None):
    number = len(consumers)
    plans[number] = plan
    env = {"PGAPPNAME": f"consumer {number}", "PGOPTIONS": "", "no_proxy": "*"}
    env["RECEIVER"] = url or f"http://127.0.0.1:{receiver.server_port}/{number}"
    with arriving, open(folder / str(number), "w") as output:
        consumers.append(subprocess.Popen(sys.argv[1:], stderr=output, env={**os.environ, **env}))
    return number


def said(number):
    return (folder / str(number)).read_text().splitlines()


def kill(number):
    killed.add(number)
    consumers[number].kill()
    consumers[number].wait()


def count(number):
    return sum(batch.consumer == number for batch in batches)


def wait_until(condition, what):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if faults:
            raise faults[0]
        assert time.monotonic() < deadline, f"waited in vain: {what}"
        time.sleep(0.002)


def wait_for_more(number, more):
    enough = count(number) + more
    wait_until(lambda: count(number) >= enough, f"{more} more batches")


def execute(statement, *parameters):
    with psycopg.connect(autocommit=True) as connection:
        cursor = connection.execute(statement, parameters or None)
        return cursor.fetchall() if cursor.description else None


def ask(statement, *parameters):
    return execute(statement, *parameters)[0][0]


def ask_until(statement, *parameters):
    with psycopg.connect(autocommit=True) as connection:
        wait_until(lambda: connection.execute(statement, parameters).fetchone()[0], statement)


def write(number):
    """With an odd number, commits late: after others have committed what is held back."""
    draw = random.Random(f"{seed} {number}")
    # Not a number after its own: what it holds back can be before that.
    held_back = (
        "SELECT EXISTS (SELECT FROM event WHERE id >= fast_feed.watermark('event')"
        " AND payload <> jsonb_build_object('Jürgen', %s))"
    )
    while not ending.is_set():
        try:
            with psycopg.connect() as connection:
                while not ending.is_set():
                    rows = [EXACT + number, draw.randint(1, 60)]
                    inserted = connection.execute(INSERT, rows).fetchall()
                    while number % 2 and not ending.is_set():
                        if connection.execute(held_back, [EXACT + number]).fetchone()[0]:
                            break
                        ending.wait(0.005)
                    if draw.random() < 0.2:
                        connection.rollback()
                        continue
                    connection.commit()
                    # No faster than the consumer, so that it reads what was just committed
                    while delivered[-1:] < inserted[-1:] and not ending.wait(0.005):
                        pass
        except (psycopg.OperationalError, psycopg.errors.ReadOnlySqlTransaction):  # the crash
            ending.wait(0.05)


def kill_some(times):
    whats = ["kill before the answer", "kill after the answer", "kill once stored"]
    for i in range(times):
        what, nth = whats[i % 3], draw.randint(1, 3)
        number = start({nth: (what, draw.uniform(0, 0.003))})
        if what == "kill once stored":
            wait_until(lambda: count(number) >= nth, "a batch")
            batch = [batch for batch in batches if batch.consumer == number][nth - 1]
            ask_until("SELECT position >= %s FROM event_consumer", batch.rows[-1][0])
            batch.stored = True
            kill(number)
        else:
            wait_until(lambda: number in killed, "a batch")


def refuse_and_crash():
    refusals = {nth: ("refuse", 0) for nth in (3, 4, 5)}
    number = start({2: ("take long", 0), **refusals, 7: ("redirect", 0)})
    wait_for_more(number, 9)
    lines = re.findall("^mail: (at work|tries again each second)", "\n".join(said(number)), re.M)
    if REFUSAL in said(number)[0]:  # until the session of the one that was killed has ended
        del lines[0]
    assert lines == ["at work", "tries again each second"] * 2 + ["at work"], said(number)
    pid = ask(f"SELECT pid {SESSION}", f"consumer {number}")
    disturbed.append(number)
    data = pathlib.Path(ask("SHOW data_directory"))
    (data / "standby.signal").touch()
    for action in ["restart", "-m", "immediate"], ["promote"]:
        pg_ctl = [f"{tools}/pg_ctl", "-s", "-w", "-D", data, "-l", folder / "server.log"]
        subprocess.run([*pg_ctl, *action], check=True)
    ask_until(f"SELECT count(*) > 0 {SESSION} AND pid <> %s", f"consumer {number}", pid)
    disturbed.append(number)
    wait_for_more(number, 2)
    return number


def take_over(first):
    """One of two waits, also after it has lost its session in a delivery."""
    second = start({})
    wait_until(lambda: said(second), "the second one's refusal")
    assert REFUSAL in said(second)[0], said(second)
    with arriving:
        plans[first][count(first) + 1] = ("take over", 0)
    wait_for_more(second, 5)
    wait_until(lambda: REFUSAL in said(first)[-1], "the first one's refusal")
    kill(second)
    wait_for_more(first, 5)
    with arriving:
        plans[first][count(first) + 1] = ("terminate", 0)
    check_ended(first)


def check_ended(number):
    """After SIGTERM: without an error, and what was delivered is stored."""
    assert consumers[number].wait(PATIENCE) == 0, "after SIGTERM, ended with an error"
    assert ask("SELECT position FROM event_consumer") == delivered[-1][0], "not stored"
    batches[-1].stored = True


def read_to_the_end():
    ending.set()
    for writer in writers:
        writer.join(PATIENCE)
    last = start({})
    newest = ask("SELECT max(id) FROM event")
    wait_until(lambda: delivered[-1][0] == newest, "the last row")
    rows = execute("SELECT id, (payload ->> 'Jürgen')::numeric FROM event ORDER BY id")
    assert rows == delivered, "what was delivered is not what was committed"
    assert len(places) == 2, f"not one place before the promotion, and one after it: {places}"
    print(f"{len(rows)} rows in {len(batches)} batches, after {len(killed)} kills")

    plans[last][count(last) + 1] = ("begin anew", 0)
    anew = ask(INSERT, 1, 1)
    wait_until(lambda: delivered == [*rows, (anew, 1)], "all rows")
    # Such a wait takes its whole second, longer than the limits that consumers find.
    waits = "wait_event_type = 'Extension' AND query LIKE '%%fast_feed.wait(%%'"
    ask_until(f"SELECT count(*) = 1 {SESSION} AND {waits}", f"consumer {last}")
    consumers[last].terminate()
    check_ended(last)
    assert said(last)[-1] == "mail: at work" and len(said(last)) < 3, said(last)


def receive():
    """The receiver that ships with it ignores what it knows, and no rows that get its numbers."""
    execute("DELETE FROM event_consumer")
    number = start({})
    wait_until(lambda: said(number), "an error")
    assert "event_consumer has no row for this name" in said(number)[0], said(number)
    kill(number)
    execute(begin_now)
    with open(folder / "receiver", "w") as output:
        command = [sys.executable, here / "receiver.py", "0"]
        process = subprocess.Popen(command, cwd=folder, stdout=output, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: said("receiver"), "the receiver's URL")
        for payload in 2, 3, 4:
            number = start({}, said("receiver")[0])
            inserted = execute(INSERT, payload, 100)
            for again in "position - 50", "position":
                ask_until("SELECT position = %s FROM event_consumer", inserted[-1][0])
                execute(f"UPDATE event_consumer SET position = {again}")
            kill(number)
            statement = "SELECT id FROM event WHERE payload = ? ORDER BY id"
            with sqlite3.connect(folder / "received.db") as received:
                rows = received.execute(statement, [json.dumps({"Jürgen": payload})]).fetchall()
            assert rows == inserted, "what was received is not what was inserted"
            execute("TRUNCATE event RESTART IDENTITY")
            execute(begin_anew)
    finally:
        process.kill()


tools = ask("SELECT setting FROM pg_config WHERE name = 'BINDIR'")
execute("DROP DATABASE IF EXISTS consumer_test WITH (FORCE)")
execute("DROP ROLE IF EXISTS consumer_test")
execute("CREATE ROLE consumer_test")
encoding = "ENCODING latin1 LOCALE_PROVIDER libc LOCALE 'C'"
execute(f"CREATE DATABASE consumer_test TEMPLATE template0 {encoding}")
limits = execute(
    "SELECT name FROM pg_settings WHERE name ~ '(session|statement|transaction)_timeout$'"
)
# What consumers find; the last one is as where the database itself has that encoding.
found = ["role = consumer_test", *(f"{name} = '900 ms'" for (name,) in limits)]
found += ["default_transaction_isolation = serializable", "client_encoding = sql_ascii"]
for setting in found:
    execute(f"ALTER DATABASE consumer_test SET {setting}")
os.environ["PGDATABASE"] = "consumer_test"
own = [r"default_transaction_isolation=read\ committed", "client_encoding=utf8", "role=none"]
os.environ["PGOPTIONS"] = " ".join(f"-c {s}" for s in own + [f"{name}=0" for (name,) in limits])
execute((here / "consumer.sql").read_text())
for privilege in "SELECT ON event, event_consumer", "UPDATE ON event_consumer":
    execute(f"GRANT {privilege} TO consumer_test")
receiver = Server(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
threading.excepthook = lambda thread: faults.append(thread.exc_value)
writers = [threading.Thread(target=write, args=[n], daemon=True) for n in range(WRITERS)]
with tempfile.TemporaryDirectory() as directory:
    folder = pathlib.Path(directory)
    try:
        for writer in writers:
            writer.start()
        execute(begin)
        kill_some(KILLS // 2)
        take_over(refuse_and_crash())
        kill_some(KILLS - KILLS // 2)
        read_to_the_end()
        receive()
    except BaseException:
        for number in range(len(consumers))[-5:]:
            print(f"Consumer {number}:", *said(number)[-20:], sep="\n", file=sys.stderr)
        raise
    finally:
        ending.set()
        for consumer in consumers:
            consumer.kill()
