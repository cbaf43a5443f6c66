"""Prints mutants of src/ and sql/ one per line as test/mutants/run reads them, in the
random order of a seed: one of each statement, then another one of each, and so on."""

import glob, random, re, sys

C = [
    # a statement is left out; the result of a call is not used
    (r"^(\s+)[A-Za-z_*(][^{};]*(?:\(.*\)|=|\+\+|--)[^{};]*;", r"\1;"),
    (r"= (\w+\(.*\));", r"= ((void) \1, 0);"),
    # a condition is asked, but its answer is another
    (r"\b(while|if) \((.*)\)(\s*)$", r"\1 ((\2) && 0)\3"),
    (r"\bif \((.*)\)(\s*)$", r"if ((\1) || 1)\2"),
    (r"\breturn ([^;]*[^;\w][^;]*);", r"return !(\1);"),
    (r" \? ", " && 0 ? "), (r" \? ", " || 1 ? "), (r"!(?!=)", ""), (r"~", ""),
    # two neighbouring arguments, but not of ereport(), change places
    (r"([(,]\s*)(?!err)((?:[^(),]|\([^()]*\))+)(,\s*)((?:[^(),]|\([^()]*\))+)(?=[,)])", r"\1\4\3\2"),
    # another constant; one flag fewer
    (r"(?<![\w.>#])([A-Z][A-Z0-9]*_[A-Z0-9_]+|\d+)(?![\w.(])", r"(\1 + 1)"),
    (r"(?<![\w.])([1-9]\d*)(?![\w.])", r"(\1 - 1)"),
    (r"\| [A-Z][A-Z_0-9]+", ""), (r"[A-Z][A-Z_0-9]+ \| ", ""),
]
# each for the other, in both directions
for one, other in re.findall(r"(\S+) (\S+)", """== != < <= > >= < >= > <= + - * / % / += -= |= &= | & ^ |
        && || << >> ++ -- true false Max Min NULL (void*)1"""):
    for old, new in (one, other), (other, one):
        word = r"\b%s\b" if old.isalpha() else r"%s" if old in ("++", "--") else r"(?<=\s)%s(?=\s)"
        C.append((word % re.escape(old), new))
SQL = [
    (r"(?s)^(?:CREATE|COMMENT|GRANT|REVOKE|SELECT) .*;$", ""), (r"(IS\s)'.*'", r"\1''"),
    ("VOLATILE", "STABLE"), ("STABLE|IMMUTABLE", "VOLATILE"), ("STABLE", "IMMUTABLE"),
    ("PARALLEL (?:SAFE|RESTRICTED)", "PARALLEL UNSAFE"), ("PARALLEL SAFE", "PARALLEL RESTRICTED"),
    ("PARALLEL RESTRICTED", "PARALLEL SAFE"), (r"STRICT\s", ""), (r"(LANGUAGE C \w+)", r"\1 STRICT"),
    ("RETURNS SETOF", "RETURNS"), (r"\sSUPPORT \w+", ""), (r"(ROWS|DEFAULT) (\d+)", r"\1 1\2"),
    (r" DEFAULT \w+", ""), ("DEFAULT false", "DEFAULT true"),
    (r"_fast_min'$", "_fast_max'"), (r"_fast_max'$", "_fast_min'"),
    (r"('uuidv7_fast)_(?:from|shift|at)'", r"\1'"),
    ("OUT ", "OUT x"), (r"(OUT [^,()]+)(,\s+)(OUT [^,()]+)", r"\3\2\1"),
    (r"OPERATOR\(pg_catalog\.=\)", "="), (r"pg_catalog\.(?:=|<>)", "pg_catalog.<"),
    (r"pg_catalog\.format", "format"), (r"INCREMENT BY \d+", "INCREMENT BY 1"),
]
# what is not executed: comments, declarations, the heads of functions
STILL = re.compile(r"\s*(?:/\*|\*|--|\\|#\s*(?:if|el|endif|error|include|undef))|\W*$"
                   r"|typedef|struct|extern|StaticAssert|PG_FUNCTION_INFO_V1|PG_MODULE"
                   r"|[\w\s*]+\([^()]*\)\s*$|\s+[\w\s]+\s\**\w+(?:\[\w*\])*(?::\d+)?;\s*$")

def statements(text, is_c):
    found = [""]
    for line in text.split("\n"):
        found[-1] += line
        if is_c:
            ends = found[-1].count("(") <= found[-1].count(")") and not re.search(r"(&&|\|\||[=+?:|\\])$", line)
        else:
            ends = re.match(r"--|\\|$", line) or line.endswith(";")
        found[-1:] = [found[-1], ""] if ends else [found[-1] + "\n"]
    return found

def in_perl(text):
    text = re.sub(r"[\\/$@.*+?()[\]{}^|]", r"\\\g<0>", text)
    return text.replace("\n", r"\n").replace("\t", r"\t")

def mutants(path):
    """For each statement a list."""
    text = open(path).read()
    is_c = not path.endswith(".sql")
    parts = statements(text, is_c)
    for number, old in enumerate(parts):
        changed = set()
        for pattern, new in C if is_c else SQL:
            for match in re.finditer(pattern, old):
                if not STILL.match(old):
                    changed.add(old[:match.start()] + match.expand(new) + old[match.end():])
        # of several such statements this one
        before, above = "", number
        while text.count(before + old) > 1:
            above -= 1
            before = parts[above] + "\n" + before
        yield [f"{path} :: s/{in_perl(before + old)}/{in_perl(before + new)}/" for new in sorted(changed - {old})]

chosen = random.Random(int(sys.argv[1]))
drawn = []
for name in sorted(glob.glob("src/**/*.[ch]", recursive=True) + glob.glob("sql/*.sql")):
    for of_statement in mutants(name):
        chosen.shuffle(of_statement)
        drawn += enumerate(of_statement)
chosen.shuffle(drawn)
for _, mutant in sorted(drawn, key=lambda numbered: numbered[0]):
    print(mutant)
