"""A slot: a copy of the built checkout with an installation and a server of its
own, in which one mutant at a time is tried."""

import os
import signal
import subprocess
import threading
import time

stop = threading.Event()                # set: all slots end what they run

# Of every server that a slot itself starts, beside the way to the extension.
SERVER = """
listen_addresses = ''
fsync = off
port = 54329
unix_socket_directories = '%s'
"""


class Stopped(Exception):
    """The run was stopped."""


class Context:
    """What the shell script has prepared, and how to run a command there."""

    def __init__(self, environment):
        self.work = environment["MUTANTS_WORK"]
        self.bin = environment["MUTANTS_BIN"]
        with open(environment["TEMP_CONFIG"]) as conf:
            self.settings = conf.read()
        self.as_user = ["runuser", "-u", "postgres", "--"] if os.getuid() == 0 else []
        self.environment = {name: value for name, value in environment.items()
                            if not name.startswith(("PG", "MAKE", "MUTANTS_")) or name == "PG_CONFIG"}
        self.environment.update(LC_ALL="C.UTF-8", PATH=self.bin + ":" + environment["PATH"])
        if self.as_user:
            self.environment.update(USER="postgres", LOGNAME="postgres")


class Slot:
    def __init__(self, context, name):
        self.context = context
        self.root = os.path.join(context.work, name)
        self.source = self.root + "/source"
        self.install = self.root + "/install"
        self.tmp = self.root + "/tmp"
        self.log = self.tmp + "/log"
        self.data = self.root + "/data"
        self.server_is_up = False
        self.environment = dict(context.environment, HOME=self.root, TMPDIR=self.tmp,
                                TEMP_CONFIG=self.root + "/server.conf")

    def create(self):
        work = self.context.work
        subprocess.run(self.context.as_user + ["mkdir", "-p", self.tmp], check=True, cwd=work)
        for name in ("source", "install"):
            subprocess.run(self.context.as_user + ["cp", "-a", "%s/%s" % (work, name), self.root], check=True, cwd=work)
        settings = self.context.settings.replace(work + "/install", self.install)
        with open(self.root + "/server.conf", "w") as conf:
            conf.write(settings)
        self.require([self.context.bin + "/initdb", "--no-sync", "--auth=trust", "-U", "postgres",
                      "-D", self.root + "/template"])
        with open(self.root + "/template/postgresql.conf", "a") as conf:
            conf.write(settings + SERVER % self.tmp)

    def build_to_count_lines(self):
        flags = ["with_llvm=no", "PG_CFLAGS=--coverage -O0", "SHLIB_LINK=-lcrypto --coverage"]
        self.require(["make", "-s", "clean"])
        self.require(["make", "-s"] + flags)
        self.require(["make", "-s", "install", "DESTDIR=" + self.install] + flags)
        self.require(["make", "-s", "test-modules"])

    def path(self, name):
        return "%s/%s" % (self.source, name)

    # Commands

    def run(self, command, limit=600, **environment):
        """The exit status, or None where it took longer than so many seconds."""
        with open(self.log, "wb") as log:
            process = subprocess.Popen(self.context.as_user + command, cwd=self.source, stdin=subprocess.DEVNULL,
                                       stdout=log, stderr=subprocess.STDOUT, start_new_session=True,
                                       env=dict(self.environment, **environment))
            end = time.monotonic() + limit
            while True:
                try:
                    return process.wait(0.2)
                except subprocess.TimeoutExpired:
                    if stop.is_set() or time.monotonic() > end:
                        self.end_all()
                        process.wait()
                        if stop.is_set():
                            raise Stopped()
                        return None

    def require(self, command, **environment):
        status = self.run(command, **environment)
        if status != 0:
            raise RuntimeError("failed: %s\n%s" % (" ".join(command), self.said(30)))

    def said(self, lines):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-lines:])

    # The server of the tests that are given one

    def start_server(self, **environment):
        self.stop_server()
        self.require(["rm", "-rf", self.data])
        self.require(["cp", "-a", self.root + "/template", self.data])
        self.server_is_up = True
        return self.run([self.context.bin + "/pg_ctl", "-s", "-w", "-D", self.data, "-l", self.tmp + "/server.log",
                         "start"], 120, **environment) == 0

    def stop_server(self, mode="immediate"):
        if self.server_is_up:
            self.run([self.context.bin + "/pg_ctl", "-s", "-D", self.data, "-m", mode, "-t", "30", "stop"], 60)
            self.server_is_up = False

    def to_server(self):
        """What a client needs in its environment."""
        return {"PGHOST": self.tmp, "PGPORT": "54329", "PGUSER": "postgres", "PGDATABASE": "postgres"}

    # Whatever a test has left running

    def processes(self):
        """Those that work below this slot's directory: nobody else does."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                place = os.readlink("/proc/%s/cwd" % pid)
            except OSError:
                continue
            if place.startswith(self.root + "/"):
                found.append((int(pid), place))
        return found

    def end_all(self):
        """Servers are asked first, so that they leave no shared memory."""
        self.server_is_up = False
        for sign in (signal.SIGQUIT, signal.SIGKILL):
            for pid, place in self.processes():
                is_server = os.path.exists(place + "/PG_VERSION")
                if is_server and sign == signal.SIGQUIT and not is_postmaster(pid, place):
                    continue
                try:
                    os.kill(pid, sign if is_server else signal.SIGKILL)
                except ProcessLookupError:
                    pass
            end = time.monotonic() + 8
            while self.processes() and time.monotonic() < end:
                time.sleep(0.1)


def is_postmaster(pid, data):
    try:
        with open(data + "/postmaster.pid") as file:
            return int(file.readline()) == pid
    except (OSError, ValueError):
        return False
