"""Compiles a mutant: does it compile, and is its object code any other?

With the flags of the build, but without -g: then the objects of two sources are the
same where the compiler makes the same of them.  Some warnings are errors: a
pointer in a number's place, no value from a function that returns one.
"""

import hashlib
import os
import re
import subprocess

STRICT = ("-Werror=int-conversion -Werror=incompatible-pointer-types -Werror=implicit-function-declaration"
          " -Werror=return-type -Werror=discarded-qualifiers").split()
PROBE = re.compile(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else|endif)\b(?:/\*.*?\*/|\\\n|[^\n])*\n", re.MULTILINE | re.DOTALL)

SAME, FAILS, ABSENT = "same", "fails", "absent"


class Build:
    """How the library is built in a slot, by the makefile's own commands."""

    def __init__(self, slot):
        self.slot = slot
        slot.require(["make", "-s", "-n", "-B", "fast_uuid.so", "with_llvm=no"])
        with open(slot.log) as log:
            commands = log.read().splitlines()
        self.compile = {}
        self.link = None
        for command in commands:
            match = re.search(r" -c -o (src/\w+)\.o (src/\w+\.c)", command)
            if match:
                self.compile[match.group(2)] = re.sub(r" -g(?= )", "", command) + " " + " ".join(STRICT)
            elif " -o fast_uuid.so " in command:
                self.link = command
        self.users = {}                 # of each file, the .c files that it goes into
        for source, command in self.compile.items():
            self.users.setdefault(source, []).append(source)
            for header in self.output(command.replace(" -c ", " -MM ", 1), source, "-MT x").split():
                if header.startswith("src/") and header != source:
                    self.users.setdefault(header, []).append(source)

    def output(self, command, source, more=""):
        """Of the preprocessor."""
        command = re.sub(r" -o \S+ ", " ", command) + " " + more
        return subprocess.run(["sh", "-c", command], cwd=self.slot.source, env=self.slot.environment, check=True,
                              stdout=subprocess.PIPE, universal_newlines=True).stdout

    def object(self, source, folder):
        """Compile; the hash of the object, or None."""
        target = os.path.join(folder, os.path.basename(source)[:-1] + "o")
        if self.slot.run(["sh", "-c", re.sub(r" -o \S+ ", " -o %s " % target, self.compile[source])]) != 0:
            return None
        with open(os.path.join(self.slot.source, target), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()

    def all_objects(self):
        """Compile the original; {source: hash}."""
        found = {source: self.object(source, "src") for source in sorted(self.compile)}
        if None in found.values():
            raise RuntimeError("the original does not compile: " + self.slot.said(20))
        return found

    def make_library(self):
        self.slot.require(["sh", "-c", self.link])
        place = self.slot.install + pkglibdir(self.slot) + "/fast_uuid.so"
        self.slot.require(["cp", "fast_uuid.so", place])

    def active_lines(self, sources):
        """{file: lines that the preprocessor leaves in, of any .c file}

        A marker after each directive that begins or ends a condition shows whether
        what follows is left in.
        """
        marks = {}
        try:
            for source in sources:
                marked, marks[source.name] = mark(source)
                write(self.slot.path(source.name), marked)
            seen = set()
            for name, command in self.compile.items():
                seen.update(re.findall(r"FUUID_MARK_\w+", self.output(command.replace(" -c ", " -E -P ", 1), name)))
        finally:
            for source in sources:
                write(self.slot.path(source.name), source.text)
        return {name: {line for mark_name, lines in found if mark_name in seen for line in lines}
                for name, found in marks.items()}


def mark(source):
    """The text with markers, and [(marker, the lines that follow it)]."""
    text = ""
    found = []
    done = 0
    stem = re.sub(r"\W", "_", source.name)
    last = source.text.count("\n") + 1
    starts = [0] + [match.end() for match in PROBE.finditer(source.text)]
    for number, (start, after) in enumerate(zip(starts, starts[1:] + [len(source.text)])):
        name = "FUUID_MARK_%s_%d" % (stem, number)
        first = source.text.count("\n", 0, start) + 1
        found.append((name, range(first, min(source.text.count("\n", 0, after), last) + 1)))
        text += source.text[done:start] + name + "\n"
        done = start
    return text + source.text[done:], found


def pkglibdir(slot):
    return subprocess.run([slot.environment["PG_CONFIG"], "--pkglibdir"], check=True, stdout=subprocess.PIPE,
                          universal_newlines=True).stdout.strip()


def write(path, text):
    with open(path, "w") as file:
        file.write(text)


def check(build, original, mutant):
    """FAILS, SAME, or what tells it from other mutants: {source: hash of its object}."""
    path = build.slot.path(mutant.file)
    changed = {}
    write(path, mutant.text())
    try:
        for source in build.users.get(mutant.file, []):
            found = build.object(source, "../objects")
            if found is None:
                return FAILS
            if found != original[source]:
                changed[source] = found
    finally:
        write(path, mutant.source.text)
    return changed or SAME
