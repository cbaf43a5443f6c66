"""Prints mutants of src/ and sql/ one per line as test/mutants/run reads them, in
the random order of a seed: one of each statement, then another one of each, and so on.
universalmutator makes them; what it changes is a line, here a whole statement."""

import contextlib
import glob
import os
import random
import re
import sys

from universalmutator.mutator import mutants_regexp

HERE = os.path.dirname(os.path.abspath(__file__))
BREAK = "\x1f"                          # in a statement, instead of a line break: white space that ends no line
# Its rules are to change neither comments nor parts of names, which become one letter each.
HIDDEN = re.compile(r"[ \t]*/\*.*?\*/|\b(?!PG_)[A-Za-z_]\w*\d\w*", re.DOTALL)
FIRST_LETTER = 0x4e00
NOWHERE = (r"\1break;\n", r"\1continue;\n", "while ==> if")     # rules with which next to nothing compiles


def goes_on_in_c(line):
    return line.count("(") > line.count(")") or re.search(r"(&&|\|\||[=+?:|\\])$", line)


def goes_on_in_sql(line):
    return not re.match(r"--|\\|$", line) and not line.endswith(";")


def statements(text, goes_on):
    found = [""]
    for line in text.split("\n"):
        found[-1] += line
        if goes_on(found[-1]):
            found[-1] += BREAK
        else:
            found.append("")
    return found


def quoted(text, special):
    text = re.sub("[%s]" % re.escape(special), r"\\\g<0>", text)
    return text.replace("\n", r"\n").replace("\t", r"\t")


def mutants(path):
    """For each statement a list."""
    with open(path) as file:
        text = file.read()
    is_c = not path.endswith(".sql")
    hidden = HIDDEN.findall(text) if is_c else []
    letters = iter(range(FIRST_LETTER, FIRST_LETTER + len(hidden)))
    parts = statements(HIDDEN.sub(lambda _: chr(next(letters)), text) if is_c else text,
                       goes_on_in_c if is_c else goes_on_in_sql)

    def shown(part):
        return re.sub("[\u4e00-\u9fff]", lambda letter: hidden[ord(letter.group()) - FIRST_LETTER], part.replace(BREAK, "\n"))

    rules = ["universal.rules", "c_like.rules", HERE + "/c.rules"] if is_c else [HERE + "/sql.rules"]
    with contextlib.redirect_stdout(None):
        made = mutants_regexp([part + "\n" for part in parts], rules, ignorePatterns=[], ignoreStringOnly=is_c)
    found = {}
    for number, new, (rule, _), _ in made:
        if rule.endswith(NOWHERE):
            continue
        old, new = shown(parts[number - 1]), shown(new.rstrip("\n"))
        new += "\n" * (old.count("\n") - new.count("\n"))       # a message has its line's number
        before, above = "", number - 1
        while text.count(before + old) > 1:
            above -= 1
            before = shown(parts[above]) + "\n" + before
        found.setdefault(number, []).append("%s :: s/%s/%s/ :: ?" % (
            path, quoted(before + old, r"\/$@.*+?()[]{}^|"), quoted(before + new, r"\/$@")))
    return found.values()


chosen = random.Random(int(sys.argv[1]))
drawn = []
for name in sorted(glob.glob("src/**/*.[ch]", recursive=True) + glob.glob("sql/*.sql")):
    for of_statement in mutants(name):
        chosen.shuffle(of_statement)
        drawn += enumerate(of_statement)
chosen.shuffle(drawn)
for _, mutant in sorted(drawn, key=lambda numbered: numbered[0]):
    print(mutant)
