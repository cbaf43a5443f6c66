"""Which lines of src/ each test executes, and how long it takes."""

import concurrent.futures
import glob
import json
import os
import shutil
import subprocess

from suite import builds_itself, files_of, fingerprint, run_test


class Reach:
    """What one test reaches."""

    def __init__(self, test, told, builds):
        self.test = test
        self.seconds = told["seconds"]
        self.passes = told["passes"]
        self.lines = {file: set(lines) for file, lines in told["lines"].items()}
        self.known = {file: set(lines) for file, lines in told["known"].items()}
        self.builds = builds            # a library of its own, whose lines are not counted

    def reaches(self, file, lines):
        return self.builds or not self.lines.get(file, set()).isdisjoint(lines)

    @property
    def limit(self):
        """Seconds after which it hangs."""
        return 30 + 5 * self.seconds


def gather(campaign, top, tests, cache, say):
    """{test: Reach}, for each of the tests; what is in the cache is taken from there.
    The campaign lends the slots, a_counting_slot() those that are built to count lines."""
    os.makedirs(cache, exist_ok=True)
    paths = {test: os.path.join(cache, "%s-%s.json" % (test.replace(":", "-"), fingerprint(top, files_of(top, test))))
             for test in tests}
    left = [test for test in tests if not os.path.exists(paths[test])]

    def count(test):
        with campaign.a_counting_slot() as counting:
            told = measure(counting, campaign.a_slot, test)
        with open(paths[test] + ".new", "w") as file:
            json.dump(told, file)
        os.rename(paths[test] + ".new", paths[test])

    if left:
        campaign.make_counting_slots()
    with concurrent.futures.ThreadPoolExecutor(campaign.chosen.jobs) as pool:
        futures = {pool.submit(count, test): test for test in left}
        try:
            for number, future in enumerate(concurrent.futures.as_completed(futures), 1):
                future.result()
                say("%3d/%d  lines that %s reaches" % (number, len(left), futures[future]))
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    found = {}
    for test in tests:
        with open(paths[test]) as file:
            found[test] = Reach(test, json.load(file), builds_itself(top, test))
    return found


def measure(counting, a_slot, test):
    counts = os.path.join(counting.tmp, "counts")
    shutil.rmtree(counts, ignore_errors=True)
    counting.require(["mkdir", counts])
    outcome = run_test(counting, test, count_lines=counts)
    counting.end_all()
    passes = outcome.passed
    if not passes:
        # Because it is counted, or in any case?
        with a_slot() as usual:
            outcome = run_test(usual, test)
            usual.stop_server()
            usual.end_all()
        passes = outcome.passed
    lines, known = executed(counting, counts)
    return {"seconds": round(outcome.seconds, 2), "passes": passes, "message": outcome.message,
            "lines": lines, "known": known}


def executed(slot, counts):
    """{file: lines that were executed}, {file: all lines that could be}"""
    lines = {}
    known = {}
    for data in glob.glob(counts + "/**/*.gcda", recursive=True) + glob.glob(slot.source + "/**/*.gcda", recursive=True):
        notes = "/" + os.path.relpath(data, counts)[:-4] + "gcno"
        if os.path.exists(notes):
            shutil.copy(notes, os.path.dirname(data))
        said = subprocess.run(["gcov", "--json-format", "--stdout", data], cwd=slot.source, stdout=subprocess.PIPE,
                              stderr=subprocess.DEVNULL, check=False).stdout
        for report in filter(None, said.splitlines()):
            for file in json.loads(report)["files"]:
                name = os.path.relpath(os.path.join(slot.source, file["file"]), slot.source)
                if not name.startswith("src/"):
                    continue
                for line in file["lines"]:
                    known.setdefault(name, set()).add(line["line_number"])
                    if line["count"] > 0:
                        lines.setdefault(name, set()).add(line["line_number"])
        if data.startswith(slot.source):
            os.unlink(data)             # by a process that was not told where to count
    return ({file: sorted(found) for file, found in sorted(lines.items())},
            {file: sorted(found) for file, found in sorted(known.items())})
