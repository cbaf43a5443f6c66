# Kills a consumer 50 times, between and during deliveries, beside writers that commit late
# or roll back; restarts the server; lets two consumers take turns.  Every committed row must
# arrive unchanged, in order, and no batch twice without a reason.
# Runs as the server's user, in a database of its own, consumer_test.
# The seed repeats what is drawn.

import collections
import http.server
import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
from decimal import Decimal

import psycopg

BATCH, WRITERS, KILLS, PATIENCE = 100, 8, 50, 60
if len(sys.argv) < 2:
    sys.exit("usage: [SEED=...] test.py COMMAND..., such as test.py python consumer.py")
seed = os.environ.get("SEED") or str(random.SystemRandom().randrange(10**9))
draw = random.Random(seed)
EXACT = Decimal("9007199254740993.1")  # which is no floating-point number
# For the test itself.  The database's, which the consumers have, are worse.
os.environ["PGOPTIONS"] = (
    r"-c default_transaction_isolation=read\ committed -c statement_timeout=0"
    " -c client_encoding=utf8"
)
print(f"SEED={seed} test.py {' '.join(sys.argv[1:])}", flush=True)

changed = threading.Condition()  # of all below
consumers, killed = [], set()
plans = {}  # by the number of a consumer: what is done, and to which of its batches
kept = collections.defaultdict(set)  # connections that a consumer has not asked to close
batches, delivered, repeated = [], [], 0
disturbed = 0  # odd while the connection is broken and not yet made again
faults, ending = [], threading.Event()
answers = {"refuse": 503, "redirect": 301}


class Batch:
    def __init__(self, consumer, rows):
        self.consumer, self.rows, self.disturbed = consumer, rows, disturbed
        self.accepted = self.stored = False


def check(condition, complaint):
    if not condition:
        raise AssertionError(complaint)


def arrive(batch):
    """A batch is the next one, or the previous one again, if there is a reason."""
    global repeated
    positions = [position for position, _ in batch.rows]
    check(1 <= len(positions) <= BATCH, f"{len(positions)} rows in a batch")
    check(all(a < b for a, b in zip(positions, positions[1:])), "a batch is not in order")
    previous = batches[-1] if batches else Batch(None, [])
    if previous.rows[:1] == batch.rows[:1]:
        lost = previous.disturbed != batch.disturbed or disturbed % 2
        check(not previous.accepted or previous.consumer in killed or lost, "twice, for no reason")
        check(not previous.stored, "twice, although the position was stored")
        check(batch.rows[: len(previous.rows)] == previous.rows, "again, but not the same rows")
        del delivered[-len(previous.rows) :]
        repeated += 1
    elif previous.rows:
        check(previous.accepted, "the next batch, although the previous one was not accepted")
        check(positions[0] > previous.rows[-1][0], "rows before those that were delivered")
    batches.append(batch)
    delivered.extend(batch.rows)


class Receiver(http.server.BaseHTTPRequestHandler):
    """One request at a time; its path names the consumer."""

    protocol_version = "HTTP/1.1"

    def do_POST(self):
        number = int(self.path[1:])
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            rows = json.loads(body, parse_float=Decimal)
            rows = [(int(row["position"]), row["payload"]["Jürgen"]) for row in rows]
        except ValueError:
            check(number in killed, "not JSON")
            return
        with changed:
            if number in killed:  # The next consumer's batch can have come before.
                return
            if self.headers["Connection"] != "close":
                kept[number].add(self)
                check(len(kept[number]) <= 10, "the connections to the receiver are not reused")
            batch = Batch(number, rows)
            arrive(batch)
            changed.notify_all()
            what, delay = plans[number].get(count(number), ("accept", 0))
            if what == "kill before the answer":
                kill(number)
                return
            if what == "terminate":
                consumers[number].terminate()
                time.sleep(0.1)  # to be most likely noticed before the answer
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
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "20000")
        self.end_headers()
        self.wfile.write(b"-" * 20000)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        if not isinstance(sys.exc_info()[1], ConnectionError):  # of one that was killed
            with changed:
                faults.append(sys.exc_info()[1])
                changed.notify_all()


def start(plan):
    with changed:
        number = len(consumers)
        plans[number] = plan
        consumers.append(
            subprocess.Popen(
                sys.argv[1:],
                stderr=said,
                env={
                    **os.environ,
                    "PGAPPNAME": f"consumer {number}",
                    "PGOPTIONS": "",
                    "RECEIVER": f"http://127.0.0.1:{receiver.server_port}/{number}",
                    "no_proxy": "*",
                },
            )
        )
    return number


def kill(number):
    killed.add(number)
    consumers[number].kill()
    consumers[number].wait()


def count(number):
    return sum(batch.consumer == number for batch in batches)


def wait_until(condition, what):
    with changed:
        held = changed.wait_for(lambda: faults or condition(), PATIENCE)
    if faults:
        raise faults[0]
    check(held, f"waited in vain: {what}")


def ask(statement, parameters=()):
    with psycopg.connect() as connection:
        return connection.execute(statement, parameters).fetchone()[0]


def ask_until(statement, parameters, what):
    deadline = time.monotonic() + PATIENCE
    with psycopg.connect(autocommit=True) as connection:
        while not connection.execute(statement, parameters).fetchone()[0]:
            check(time.monotonic() < deadline, f"waited in vain: {what}")
            time.sleep(0.002)


def write(number):
    """With an odd number, commits late: after others have committed what is held back."""
    draw = random.Random(f"{seed} {number}")
    payload = EXACT + number
    while not ending.is_set():
        try:
            with psycopg.connect() as connection:
                while not ending.is_set():
                    inserted = connection.execute(
                        "INSERT INTO event (payload)"
                        " SELECT jsonb_build_object('Jürgen', %s::numeric)"
                        " FROM generate_series(1, %s) RETURNING position",
                        [payload, draw.randint(1, 60)],
                    ).fetchall()
                    # Not a position after its own: what it holds back can be before that.
                    while number % 2 and not connection.execute(
                        "SELECT EXISTS (SELECT FROM event"
                        " WHERE position >= uuidv7_feed_position_watermark()"
                        " AND payload <> jsonb_build_object('Jürgen', %s::numeric))",
                        [payload],
                    ).fetchone()[0]:
                        if ending.wait(0.005):
                            break
                    if draw.random() < 0.2:
                        connection.rollback()
                        continue
                    connection.commit()
                    # No faster than the consumer, so that it reads what was just committed
                    with changed:
                        changed.wait_for(
                            lambda: ending.is_set() or delivered and delivered[-1] >= inserted[-1]
                        )
        except psycopg.OperationalError:  # the restart
            ending.wait(0.05)
        except Exception as error:
            with changed:
                faults.append(error)
                changed.notify_all()
            return


def kill_some(times):
    whats = ["kill before the answer", "kill after the answer", "kill once stored"]
    for i in range(times):
        what, nth = whats[i % 3], draw.randint(1, 3)
        number = start({nth: (what, draw.uniform(0, 0.003))})
        if what == "kill once stored":
            wait_until(lambda: count(number) >= nth, "a batch")
            batch = [batch for batch in batches if batch.consumer == number][nth - 1]
            ask_until(
                "SELECT read_up_to >= %s FROM event_reader", [batch.rows[-1][0]], "the position"
            )
            batch.stored = True
            kill(number)
        else:
            wait_until(lambda: number in killed, "a batch")


def disturb(number, how):
    """Breaks its connection; a batch may come twice until it has another one."""
    global disturbed
    session = "FROM pg_stat_activity WHERE application_name = %s"
    name = f"consumer {number}"
    pid = ask(f"SELECT pid {session}", [name])
    with changed:
        disturbed += 1
    how(pid)
    ask_until(f"SELECT count(*) > 0 {session} AND pid <> %s", [name, pid], "a new connection")
    with changed:
        disturbed += 1


def restart(_):
    data = ask("SHOW data_directory")
    pg_ctl = ask("SELECT setting FROM pg_config WHERE name = 'BINDIR'") + "/pg_ctl"
    log = f"{data}/restart.log"
    options = ["-s", "-w", "-D", data, "-l", log, "-m", "immediate"]
    subprocess.run([pg_ctl, "restart", *options], check=True)


def wait_for_more(number, more):
    enough = count(number) + more
    wait_until(lambda: count(number) >= enough, f"{more} more batches")


def check_ended(number):
    """After SIGTERM: without an error, and what was delivered is stored."""
    status = consumers[number].wait(PATIENCE)
    check(status == 0, f"after SIGTERM, ended with status {status}")
    stored = ask("SELECT read_up_to FROM event_reader WHERE name = 'mail'")
    check(stored == delivered[-1][0], "after SIGTERM, the position is not that of the last row")
    batches[-1].stored = True


def run():
    kill_some(KILLS // 2)

    first = start({2: ("refuse", 0), 5: ("redirect", 0)})
    wait_for_more(first, 7)
    disturb(first, lambda pid: ask("SELECT pg_terminate_backend(%s)", [pid]))
    wait_for_more(first, 2)
    disturb(first, restart)
    wait_for_more(first, 2)

    second = start({})
    wait_for_more(second, 5)
    wait_for_more(first, 5)
    kill(first)
    wait_for_more(second, 5)
    with changed:
        plans[second][count(second) + 1] = ("terminate", 0)
    check_ended(second)

    kill_some(KILLS - KILLS // 2)

    with changed:
        ending.set()
        changed.notify_all()
    for writer in writers:
        writer.join(PATIENCE)
    last = start({})
    newest = ask("SELECT max(position) FROM event")
    wait_until(lambda: delivered[-1][0] == newest, "the last row")
    waits = "wait_event_type = 'Extension' AND query LIKE '%%uuidv7_feed_wait(%%'"
    name = f"consumer {last}"
    ask_until(
        f"SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = %s AND {waits}",
        [name],
        "a consumer that waits",
    )
    consumers[last].terminate()
    check_ended(last)
    said.seek(0)
    check(b"statement timeout" not in said.read(), "the role's statement_timeout ends a wait")

    with psycopg.connect() as connection:
        rows = connection.execute(
            "SELECT position, (payload ->> 'Jürgen')::numeric FROM event ORDER BY position"
        )
        check(rows.fetchall() == delivered, "what was delivered is not what was committed")


readme = (pathlib.Path(__file__).parent / "README.md").read_text()
with psycopg.connect(autocommit=True) as connection:
    connection.execute("DROP DATABASE IF EXISTS consumer_test WITH (FORCE)")
    connection.execute(
        "CREATE DATABASE consumer_test TEMPLATE template0 ENCODING latin1 LOCALE_PROVIDER libc LOCALE 'C'"
    )
os.environ["PGDATABASE"] = "consumer_test"
with psycopg.connect() as connection:
    connection.execute("CREATE EXTENSION fast_uuid")
    connection.execute(re.search("```sql\n(.*?)```", readme, re.DOTALL)[1])
    for setting in (
        "default_transaction_isolation = serializable",
        "statement_timeout = '900 ms'",
        "client_encoding = sql_ascii",  # as where the database itself has that
    ):
        connection.execute(f"ALTER DATABASE consumer_test SET {setting}")
receiver = Server(("127.0.0.1", 0), Receiver)
threading.Thread(target=receiver.serve_forever, daemon=True).start()
writers = [threading.Thread(target=write, args=[n], daemon=True) for n in range(WRITERS)]
unset = {name: value for name, value in os.environ.items() if name != "RECEIVER"}
told = subprocess.run(sys.argv[1:], env=unset, stderr=subprocess.PIPE, timeout=PATIENCE)
check(told.returncode == 1 and told.stderr.count(b"\n") == 1, "without RECEIVER, not one line")
started = time.monotonic()
with tempfile.TemporaryFile() as said:
    try:
        for writer in writers:
            writer.start()
        run()
    except BaseException:
        said.seek(0)
        sys.stderr.write("The consumers' messages end:\n" + said.read().decode()[-3000:] + "\n")
        with psycopg.connect() as connection:
            for session in connection.execute(
                "SELECT application_name, state, wait_event, clock_timestamp() - xact_start, query,"
                " pg_blocking_pids(pid) FROM pg_stat_activity WHERE backend_type = 'client backend'"
            ):
                print(*session, sep=" | ", file=sys.stderr)
        raise
    finally:
        ending.set()
        for consumer in consumers:
            consumer.kill()
print(
    f"{len(delivered)} rows in {len(batches)} batches, {repeated} of them repeated;"
    f" {len(killed)} kills, {time.monotonic() - started:.0f} s"
)
