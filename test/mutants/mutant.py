"""A mutant: one change of one file, and how it is named."""

import bisect
import hashlib
import re

CATEGORIES = ("delete", "condition", "constant", "string", "operator", "argument", "result", "sql")


def one_line(text):
    return " ".join(text.replace("\\\n", " ").split())


class Source:
    """A file that is mutated."""

    def __init__(self, name, text):
        self.name = name
        self.text = text
        self.newlines = [i for i, c in enumerate(text) if c == "\n"]

    def line_at(self, place):
        return bisect.bisect_left(self.newlines, place) + 1


class Mutant:
    """text[start:end] of a source becomes "new".

    "where" is the function, or what stands for it; [first, last] is what a test has
    to reach, so that it can notice: the statement or the condition.
    """

    def __init__(self, source, category, where, start, end, new, first, last):
        text = source.text
        # A line stays the line it is: messages have its number.
        new += "\n" * (text[start:end].count("\n") - new.count("\n"))
        self.source = source
        self.category = category
        self.where = where
        self.start = start
        self.end = end
        self.new = new
        self.line = source.line_at(start)
        self.lines = range(source.line_at(first), source.line_at(last - 1) + 1)
        begin = text.rfind("\n", 0, min(start, first)) + 1
        finish = text.find("\n", max(end, last))
        finish = len(text) if finish < 0 else finish
        self.original = one_line(text[begin:finish])
        self.changed = one_line(text[begin:start] + new + text[end:finish])
        self.ordinal = 1

    @property
    def file(self):
        return self.source.name

    @property
    def key(self):
        """What it is called in test/mutants/equivalent."""
        where = self.where if self.ordinal == 1 else "%s#%d" % (self.where, self.ordinal)
        return " :: ".join((self.file, where, self.original, self.changed))

    @property
    def id(self):
        return hashlib.sha256(self.key.encode()).hexdigest()[:12]

    def text(self):
        return self.source.text[:self.start] + self.new + self.source.text[self.end:]

    def diff(self):
        """The lines that are changed, as a diff shows them."""
        begin = self.source.text.rfind("\n", 0, self.start) + 1
        finish = self.source.text.find("\n", self.end)
        old = self.source.text[begin:finish]
        new = self.text()[begin:finish + len(self.new) - (self.end - self.start)]
        return "\n".join(sign + line for sign, side in (("-", old), ("+", new)) for line in side.split("\n") if line.strip())


def numbered(mutants):
    """Without those that are the same text twice; same lines of one function are counted."""
    seen_texts = set()
    counts = {}
    found = []
    for mutant in mutants:
        place = (mutant.file, mutant.start, mutant.end, mutant.new)
        # The same text from two rules, in whatever place it was written.
        text = hashlib.sha256((mutant.file + re.sub(r"[ \t]+", " ", mutant.text())).encode()).digest()
        if place in seen_texts or text in seen_texts:
            continue
        seen_texts.update((place, text))
        name = mutant.key
        counts[name] = counts.get(name, 0) + 1
        mutant.ordinal = counts[name]
        found.append(mutant)
    return found


def drawn(mutants, seed):
    """In the random order of a seed, in which each has its place whatever others there are."""
    return sorted(mutants, key=lambda m: hashlib.sha256(("%s %s" % (seed, m.id)).encode()).digest())
