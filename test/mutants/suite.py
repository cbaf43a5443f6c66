"""The tests of this project, one at a time.  Each has a name as in
test/mutants/list: unit:NAME, sql:NAME (pg_regress), pgtap:NAME, t:NAME."""

import glob
import hashlib
import os
import re
import time

PLACES = {"unit": "test/unit/%s.c", "sql": "test/sql/%s.sql", "pgtap": "test/pgtap/%s.sql", "t": "test/t/%s.pl"}
NEEDS = {"unit": ["test/unit"], "sql": [], "pgtap": [], "t": ["test/perl", "test/modules"]}
TELLING = re.compile(r"Failed test|^not ok|runtime error|Bail out|AddressSanitizer|ERROR:|FATAL:")
SANITIZERS = " -fsanitize=address,undefined -fno-sanitize-recover=all"


def all_tests(top):
    found = []
    for kind, place in PLACES.items():
        for path in sorted(glob.glob(os.path.join(top, place % ("test_*" if kind == "unit" else "*")))):
            found.append("%s:%s" % (kind, os.path.splitext(os.path.basename(path))[0]))
    return found


def place_of(test):
    kind, name = test.split(":")
    return PLACES[kind] % name


def files_of(top, test):
    """Those that decide what a test does, besides the extension."""
    kind, name = test.split(":")
    files = [place_of(test), "expected/%s.out" % name, "test/t/%s.sql" % name]
    for folder in NEEDS[kind]:
        files += [os.path.relpath(path, top) for path in glob.glob(os.path.join(top, folder, "*.*"))
                  if path.endswith((".c", ".h", ".pm"))]
    return [file for file in sorted(set(files)) if os.path.isfile(os.path.join(top, file))]


def fingerprint(top, files):
    digest = hashlib.sha256()
    for name in files:
        with open(os.path.join(top, name), "rb") as file:
            digest.update(b"%s %s\n" % (name.encode(), hashlib.sha256(file.read()).hexdigest().encode()))
    return digest.hexdigest()[:16]


def builds_itself(top, test):
    """Does the test compile the sources into a library of its own?  What that
    reaches is not counted."""
    with open(os.path.join(top, place_of(test)), errors="replace") as file:
        text = file.read()
    return test.startswith("t:") and "'make'" in text and re.search(r"fast_uuid\.so|TEST_POINTS", text) is not None


class Outcome:
    def __init__(self, status, seconds, message=""):
        self.passed = status == 0
        self.timed_out = status is None
        self.seconds = seconds
        self.message = message


def run_test(slot, test, limit=1800, count_lines=None):
    """count_lines: the directory for what gcov counts."""
    began = time.monotonic()
    environment = {"GCOV_PREFIX": count_lines} if count_lines else {}
    kind, name = test.split(":")
    if kind == "unit":
        status = run_unit(slot, name, limit, environment)
    elif kind == "t":
        status = slot.run(["make", "-s", "installcheck", "with_llvm=no", "REGRESS=", "PROVE_TESTS=" + place_of(test)],
                          limit, **environment)
    else:
        status = run_on_server(slot, kind, name, limit, environment, bool(count_lines))
    return Outcome(status, time.monotonic() - began, "" if status == 0 else failure(slot, kind))


def run_unit(slot, name, limit, environment):
    """As the makefile builds it, but a warning is none of a test."""
    status = slot.run(["make", "-s", "-n", "-B", "test/unit/" + name])
    command = slot.said(50).replace(" -Werror ", " ")
    if environment:
        command = command.replace(SANITIZERS, " --coverage -O0")
    if status == 0:
        status = slot.run(["sh", "-ec", command], limit)
    if status == 0:
        status = slot.run(["test/unit/" + name], limit, **environment)
    return status


def run_on_server(slot, kind, name, limit, environment, counting):
    if counting or not slot.server_is_up:
        if not slot.start_server(**environment):
            return 1
    if kind == "sql":
        command = ["make", "-s", "installcheck", "with_llvm=no", "TAP_TESTS=", "REGRESS=" + name]
    else:
        command = ["pg_prove", "test/pgtap/%s.sql" % name]
    status = slot.run(command, limit, **dict(environment, **slot.to_server()))
    if counting:
        slot.stop_server("fast")        # a backend counts when it ends in peace
    return status


def failure(slot, kind):
    """The line that says what failed."""
    said = slot.said(400).splitlines()
    if kind == "sql" and os.path.exists(slot.path("regression.diffs")):
        with open(slot.path("regression.diffs"), errors="replace") as file:
            diffs = [line for line in file.read().splitlines() if re.match(r"[+-](?![+-])", line)]
        said = sorted(diffs, key=lambda line: line[0] == "-") or said
    telling = [line for line in said if TELLING.search(line)]
    return (telling or [line for line in said if line.strip()] or [""])[0].strip()[:200]
