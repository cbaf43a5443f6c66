"""What a run has found, as text."""

import collections

COLUMNS = ("generated", "drawn", "broken", "absent", "same", "twice", "judged", "run", "killed", "hung", "survived", "unreached")
MEANING = """drawn      of those generated, the ones this run has looked at
broken     does not compile, or cannot be installed
absent     in a part that is not compiled here: another server version, another system
same       equivalent: the same object code, or the same objects in the catalog
twice      the same object code as a mutant drawn before
judged     equivalent by a line of test/mutants/equivalent
run        the others
killed     a test failed
hung       a test took longer than its limit, which counts as killed
survived   all tests passed that reach it
unreached  no test reaches it, which counts as survived"""


class Table:
    def __init__(self):
        self.counts = collections.defaultdict(collections.Counter)

    def add(self, mutant, column):
        for row in (mutant.file, "category " + mutant.category, "total"):
            self.counts[row][column] += 1

    def text(self, columns=COLUMNS):
        def of_row(name):
            return (name == "total", name.startswith("category"), name)

        lines = ["%-28s" % "" + "".join("%10s" % c for c in columns) + ("%9s" % "noticed" if "run" in columns else "")]
        for row in sorted(self.counts, key=of_row):
            count = self.counts[row]
            line = "%-28s" % row + "".join("%10d" % count[c] for c in columns)
            if "run" in columns and count["killed"] + count["hung"] + count["survived"] + count["unreached"]:
                noticed = count["killed"] + count["hung"]
                line += "%8.1f%%" % (100.0 * noticed / (noticed + count["survived"] + count["unreached"]))
            lines.append(line)
        return "\n".join(lines)


def duration(seconds):
    seconds = int(seconds + 0.5)
    if seconds < 90:
        return "%d s" % seconds
    if seconds < 5400:
        return "%d min" % ((seconds + 30) // 60)
    return "%d h %02d min" % (seconds // 3600, seconds % 3600 // 60)


def in_detail(mutant, result):
    """A survivor."""
    tests = result["tests"]
    ran = "no test reaches it" if result["outcome"] == "unreached" else "passed: " + " ".join(tests)
    return "%s:%d  %s, %s\n%s\n%s\n%s\n" % (mutant.file, mutant.line, mutant.where, mutant.category,
                                           mutant.diff(), ran, mutant.key)
