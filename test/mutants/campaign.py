"""Draws mutants, runs the tests that reach each, and reports.  Started by
script/mutants, which says what the options mean."""

import argparse
import concurrent.futures
import contextlib
import fnmatch
import glob
import hashlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time

import c_rules
import coverage
import installation
import mutant as mutants_module
import objects
import report
import sql_rules
import suite
import written
from judged import Judged
from slot import Context, Slot, Stopped, stop

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def options():
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--number", type=int)
    parser.add_argument("--files", action="append", default=[])
    parser.add_argument("--category", action="append", default=[], choices=mutants_module.CATEGORIES)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--again")
    parser.add_argument("--written")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", required=True)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--check", action="store_true")
    return parser.parse_args()


def say(*words):
    print(*words, flush=True)


def matches(name, globs):
    return any(fnmatch.fnmatch(name, g) or fnmatch.fnmatch(os.path.basename(name), g) for g in globs)


def generate():
    """All mutants, and the sources."""
    found = []
    sources = []
    for pattern, rules in (("src/*.[ch]", c_rules), ("sql/fast_uuid--*.sql", sql_rules)):
        for path in sorted(glob.glob(os.path.join(TOP, pattern))):
            with open(path) as file:
                source = mutants_module.Source(os.path.relpath(path, TOP), file.read())
            sources.append(source)
            found.extend(rules.mutants(source))
    return mutants_module.numbered(found), sources


def told_in(path):
    """What a file of one JSON object a line says, by the mutant's id."""
    found = {}
    with open(path) as file:
        for line in file:
            try:
                told = json.loads(line)
            except ValueError:          # cut short, when a run was ended
                continue
            found[told["id"]] = told
    return found


class Journal:
    """Such a file, which grows; what is there counts."""

    def __init__(self, path):
        self.lock = threading.Lock()
        self.file = open(path, "a+")
        self.found = told_in(path)
        if self.file.tell() > 0:
            self.file.write("\n")       # after a line that was cut short; else an empty one

    def add(self, told):
        with self.lock:
            self.found[told["id"]] = told
            self.file.write(json.dumps(told) + "\n")
            self.file.flush()


class Campaign:
    def __init__(self, chosen):
        self.chosen = chosen
        self.all_mutants, self.sources = generate()
        if chosen.written:
            self.all_mutants = written.mutants(chosen.written, TOP)
        self.judged = Judged(os.path.join(TOP, "test/mutants/equivalent"))
        self.table = report.Table()
        self.slots = queue.Queue()
        self.made = []
        self.originals = None
        self.counting = queue.Queue()

    def open_journals(self):
        """What is kept: for the same code and compiler, and results for the same tests too."""
        code = [s.name for s in self.sources] + ["Makefile", "fast_uuid.control"]
        version = subprocess.run([os.environ["PG_CONFIG"], "--version"], check=True, stdout=subprocess.PIPE).stdout
        compiler = subprocess.run(["gcc", "--version"], check=True, stdout=subprocess.PIPE).stdout.splitlines()[0]
        self.code = "%s-%s" % (suite.fingerprint(TOP, code), hashlib.sha256(version + compiler).hexdigest()[:4])
        self.tests = [test for test in suite.all_tests(TOP) if not matches(test, self.chosen.without)]
        tests = sorted({file for test in suite.all_tests(TOP) for file in suite.files_of(TOP, test)})
        self.checks = Journal("%s/checks-%s" % (self.chosen.output, self.code))
        self.said = "%s/said" % self.chosen.output
        os.makedirs(self.said, exist_ok=True)
        self.results_path = "%s/results-%s-%s" % (self.chosen.output, self.code, suite.fingerprint(TOP, tests))

    # Slots

    def make_slot(self, number):
        slot = Slot(self.context, "slot%d" % number)
        slot.create()
        slot.require(["mkdir", slot.root + "/objects"])
        slot.build = objects.Build(slot)
        slot.original = {}
        return slot

    def make_slots(self, count):
        say("Making %d slots" % count)
        for number in range(1, count + 1):
            slot = self.make_slot(number)
            if self.originals is None:
                self.originals = slot.build.all_objects()
                self.active = slot.build.active_lines([s for s in self.sources if s.name.startswith("src/")])
            else:
                slot.require(["sh", "-c", "cp -p '%s'/src/*.o src/" % self.made[0].source])
            slot.require(["sh", "-c", "mkdir ../originals && cp -p src/*.o ../originals/"])
            self.made.append(slot)
            self.slots.put(slot)

    @contextlib.contextmanager
    def lent(self, slots):
        slot = slots.get()
        try:
            yield slot
        finally:
            slots.put(slot)

    def a_slot(self):
        return self.lent(self.slots)

    def a_counting_slot(self):
        return self.lent(self.counting)

    def make_counting_slots(self):
        say("Making %d slots to count lines" % self.chosen.jobs)
        for number in range(1, self.chosen.jobs + 1):
            slot = Slot(self.context, "counting%d" % number)
            self.made.append(slot)
            slot.create()
            slot.build_to_count_lines()
            self.counting.put(slot)

    # Which mutants

    def candidates(self):
        found = self.all_mutants
        if self.chosen.files:
            found = [m for m in found if matches(m.file, self.chosen.files)]
        if self.chosen.category:
            found = [m for m in found if m.category in self.chosen.category]
        if self.chosen.again:
            told = told_in(self.chosen.again)
            found = [m for m in found if told.get(m.id, {}).get("outcome") in ("survived", "unreached")]
        return mutants_module.drawn(found, self.chosen.seed)

    def verdict(self, mutant):
        if mutant.id not in self.checks.found:
            if mutant.file.startswith("src/") and self.active[mutant.file].isdisjoint(mutant.lines):
                told = objects.ABSENT
            else:
                with self.a_slot() as slot:
                    if mutant.file.startswith("src/"):
                        told = objects.check(slot.build, self.originals, mutant)
                    else:
                        told = installation.check(slot, slot.original, mutant)
            self.checks.add({"id": mutant.id, "verdict": told})
        return self.checks.found[mutant.id]["verdict"]

    def draw(self, candidates):
        """So many that can be run; the others are counted."""
        found = []
        seen = set()
        began = shown = time.monotonic()
        wanted = self.chosen.number or len(candidates)
        number = 0
        with concurrent.futures.ThreadPoolExecutor(self.chosen.jobs) as pool:
            while number < len(candidates) and len(found) < wanted:
                some = candidates[number:number + min(4 * self.chosen.jobs, wanted - len(found))]
                for mutant, verdict in zip(some, pool.map(self.verdict, some)):
                    number += 1
                    self.table.add(mutant, "drawn")
                    column = self.column_of(mutant, verdict, seen)
                    if column is None:
                        found.append(mutant)
                    else:
                        self.table.add(mutant, column)
                if time.monotonic() > shown + 60:
                    shown = time.monotonic()
                    share = max(len(found) / wanted, number / len(candidates))
                    say("%d mutants compiled and compared, about %s left" % (
                        number, report.duration((shown - began) * (1 / share - 1))))
        for slot in self.made:
            slot.stop_server()
        return found

    def column_of(self, mutant, verdict, seen):
        if verdict == objects.FAILS:
            return "broken"
        if verdict == objects.ABSENT:
            return "absent"
        if verdict == objects.SAME:
            return "same"
        code = tuple(sorted(verdict.items()))
        if code in seen:
            return "twice"
        seen.add(code)
        return "judged" if mutant in self.judged else None

    # Running

    def tests_for(self, mutant):
        """Those that reach it, fastest first."""
        passing = [r for r in self.reach.values() if r.passes]
        if mutant.file.startswith("sql/"):
            found = [r for r in passing if not r.test.startswith("unit:")]
        elif not self.known[mutant.file].isdisjoint(mutant.lines):
            found = [r for r in passing if r.reaches(mutant.file, mutant.lines)]
        else:
            # No line of its own: a macro, a table.  All that enter a file in which it is used.
            changed = set(self.checks.found[mutant.id]["verdict"])
            found = [r for r in passing if r.builds or r.test.startswith("unit:") or not changed.isdisjoint(r.lines)]
        return sorted(found, key=lambda r: r.seconds)

    def prepare(self, slot, mutant):
        if mutant.file.startswith("sql/"):
            installation.put(slot, mutant.file, mutant.text())
            return
        objects.write(slot.path(mutant.file), mutant.text())
        for source in self.checks.found[mutant.id]["verdict"]:
            if slot.build.object(source, "src") is None:
                raise RuntimeError("does not compile any more: %s" % mutant.key)
        slot.build.make_library()

    def restore(self, slot, mutant):
        slot.stop_server()
        slot.end_all()
        if mutant.file.startswith("sql/"):
            installation.put(slot, mutant.file, mutant.source.text)
            return
        objects.write(slot.path(mutant.file), mutant.source.text)
        slot.require(["sh", "-c", "cp -p ../originals/*.o src/"])
        slot.build.make_library()

    def confirmed(self, slot, reach):
        """What a test says; that it fails it has to say twice, because some fail by
        themselves where a machine is busy.  Not that it hangs: the limit is far off."""
        outcome = suite.run_test(slot, reach.test, reach.limit)
        if not outcome.passed and not outcome.timed_out:
            slot.stop_server()
            slot.end_all()
            outcome = suite.run_test(slot, reach.test, reach.limit)
        return outcome

    def try_mutant(self, mutant):
        began = time.monotonic()
        told = {"id": mutant.id, "file": mutant.file, "line": mutant.line, "where": mutant.where,
                "category": mutant.category, "original": mutant.original, "changed": mutant.changed,
                "outcome": "unreached", "by": None, "message": "", "tests": []}
        tests = self.tests_for(mutant)
        if tests:
            with self.a_slot() as slot:
                if stop.is_set():
                    raise Stopped()
                began = time.monotonic()
                try:
                    self.prepare(slot, mutant)
                    # Of a test that builds for itself nobody knows what it reaches.
                    told["outcome"] = "unreached" if all(reach.builds for reach in tests) else "survived"
                    for reach in tests:
                        outcome = self.confirmed(slot, reach)
                        told["tests"].append(reach.test)
                        if not outcome.passed:
                            told.update(outcome="hung" if outcome.timed_out else "killed", by=reach.test, message=outcome.message)
                            objects.write("%s/%s" % (self.said, mutant.id), slot.said(200))
                            break
                finally:
                    if not stop.is_set():
                        self.restore(slot, mutant)
        told["seconds"] = round(time.monotonic() - began, 1)
        return told

    def run(self, chosen):
        results = Journal(self.results_path)
        left = [m for m in chosen if m.id not in results.found]
        say("%d mutants to run, %d have their result in %s" % (len(left), len(chosen) - len(left), self.results_path))
        began = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.chosen.jobs) as pool:
            futures = {pool.submit(self.try_mutant, mutant): mutant for mutant in left}
            for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
                mutant = futures[future]
                try:
                    told = future.result()
                except Stopped:
                    break
                except BaseException:
                    stop.set()
                    raise
                results.add(told)
                ahead = (time.monotonic() - began) / number * (len(left) - number)
                say("%4d/%d  %-9s %5.0f s  %s:%d %s%s, about %s left" % (
                    number, len(left), told["outcome"], told["seconds"], mutant.file, mutant.line, mutant.category,
                    ", by " + told["by"] if told["by"] else "", report.duration(ahead)))
        if stop.is_set():
            raise Stopped()
        return {m.id: results.found[m.id] for m in chosen}

    # All of it

    def main(self):
        candidates = self.candidates()
        for mutant in candidates:
            self.table.add(mutant, "generated")
        for key in self.judged.stale(self.all_mutants) if not self.chosen.written else ():
            say("test/mutants/equivalent, of no mutant any more: " + key)
        if self.chosen.list:
            for mutant in candidates[:self.chosen.number]:
                say("%s:%d  %s, %s\n%s" % (mutant.file, mutant.line, mutant.where, mutant.category, mutant.diff()))
            say("\n" + self.table.text(["generated"]))
            return 0
        self.context = Context(dict(os.environ))
        self.open_journals()
        self.make_slots(self.chosen.jobs)
        chosen = self.draw(candidates)
        if self.chosen.check:
            for mutant in chosen:
                self.table.add(mutant, "run")
            say("\n" + self.table.text(report.COLUMNS[:8]) + "\n\n" + report.MEANING)
            return 0
        say("The lines that each test reaches")
        self.reach = coverage.gather(self, TOP, self.tests, "%s/lines-%s" % (self.chosen.output, self.code), say)
        for reach in self.reach.values():
            if not reach.passes:
                say("left out, because it fails without a mutant: " + reach.test)
        self.known = {s.name: set() for s in self.sources}
        for reach in self.reach.values():
            for file, lines in reach.known.items():
                self.known.get(file, set()).update(lines)
        results = self.run(chosen)
        for mutant in chosen:
            self.table.add(mutant, "run")
            self.table.add(mutant, results[mutant.id]["outcome"])
        alive = [m for m in chosen if results[m.id]["outcome"] in ("survived", "unreached")]
        say("\nSurvivors\n")
        for mutant in sorted(alive, key=lambda m: (m.file, m.line)):
            say(report.in_detail(mutant, results[mutant.id]))
        say(self.table.text() + "\n\n" + report.MEANING)
        return 1 if alive else 0


def main():
    def on_signal(*_):
        stop.set()

    chosen = options()
    os.makedirs(chosen.output, exist_ok=True)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, on_signal)
    campaign = Campaign(chosen)
    try:
        return campaign.main()
    except Stopped:
        say("Stopped; the same command goes on from here")
        return 130
    finally:
        for slot in campaign.made:
            slot.end_all()


if __name__ == "__main__":
    sys.exit(main())
