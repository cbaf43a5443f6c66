"""Mutants from a file, one a line, as test/mutants/list has them:
FILE :: PERL SUBSTITUTION :: anything."""

import os
import subprocess

from mutant import Mutant, Source


def mutants(path, top):
    found = []
    sources = {}
    with open(path) as file:
        for number, line in enumerate(file, 1):
            if not line.strip() or line.startswith("#"):
                continue
            fields = line.rstrip("\n").split(" :: ")
            if len(fields) != 3:
                raise SystemExit("%s, line %d: not \"file :: substitution :: anything\"" % (path, number))
            name, change = fields[:2]
            with open(os.path.join(top, name)) as original:
                source = sources.setdefault(name, Source(name, original.read()))
            changed = subprocess.run(["perl", "-0pe", change, os.path.join(top, name)], check=True,
                                     stdout=subprocess.PIPE, universal_newlines=True).stdout
            if changed == source.text:
                raise SystemExit("%s, line %d: no longer applies" % (path, number))
            found.append(between(source, changed, "line %d" % number))
    return found


def between(source, changed, where):
    """The span that differs."""
    old = source.text
    start = len(os.path.commonprefix([old, changed]))
    same = len(os.path.commonprefix([old[start:][::-1], changed[start:][::-1]]))
    end = len(old) - same
    return Mutant(source, "written", where, start, end, changed[start:len(changed) - same], start, max(end, start + 1))
