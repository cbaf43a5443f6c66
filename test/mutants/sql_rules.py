"""What is changed in an installation or upgrade script."""

import re

from mutant import Mutant

# Statements, without the comments before them; a string may have a semicolon.
STATEMENT = re.compile(r"(?:--[^\n]*\n|\\[^\n]*\n|\s+)*((?:'(?:[^']|'')*'|--[^\n]*\n|[^;'])+;)")
OBJECT = re.compile(r"(?:FUNCTION|SEQUENCE|VIEW|TABLE|TYPE|OPERATOR)\s+(?:IF\s+\w+\s+\w+\s+)?(\w+(?:\s*\([^)]*\))?)", re.IGNORECASE)

# What is looked for, and what it becomes.
WORDS = (
    (r"\bVOLATILE\b", ("STABLE",)),
    (r"\bSTABLE\b", ("VOLATILE", "IMMUTABLE")),
    (r"\bIMMUTABLE\b", ("VOLATILE", "STABLE")),
    (r"\bPARALLEL SAFE\b", ("PARALLEL RESTRICTED", "PARALLEL UNSAFE")),
    (r"\bPARALLEL RESTRICTED\b", ("PARALLEL SAFE", "PARALLEL UNSAFE")),
    (r"\bPARALLEL UNSAFE\b", ("PARALLEL RESTRICTED",)),
    (r"\bSTRICT\b *", ("",)),
    (r"\bLANGUAGE C (?=(?:VOLATILE|STABLE|IMMUTABLE) PARALLEL)", ("LANGUAGE C STRICT ",)),
    (r"\bSECURITY DEFINER\b", ("",)),
    (r"\bSETOF ", ("",)),
    (r"\nSUPPORT \w+", ("",)),
    (r" DEFAULT (?:NULL|true|false|\d+)", ("",)),
    (r"(?<= DEFAULT )false\b", ("true",)),
    (r"(?<= DEFAULT )true\b", ("false",)),
    (r"(?<= DEFAULT )NULL\b", ("''",)),
    (r"(?<= DEFAULT )\d+\b", (lambda text: str(int(text) + 1),)),
    (r"\bROWS \d+", (lambda text: "ROWS %d" % (int(text.split()[1]) + 1), "")),
    (r"(?<=IS\n)'", ("'x",)),
)
WHOLE = re.compile(r"(REVOKE|GRANT|COMMENT|SELECT|ALTER|CREATE|DROP)\b", re.IGNORECASE)
SYMBOL = re.compile(r"'MODULE_PATHNAME', '(\w+)'")
OUT = re.compile(r"\bOUT (\w+) ([\w ]+?)(?=[,)])")


def mutants(source):
    text = source.text
    symbols = [m.group(1) for m in SYMBOL.finditer(text)]
    for match in STATEMENT.finditer(text):
        start, end = match.span(1)
        found = OBJECT.search(text, start, end)
        where = " ".join(text[start:end].split()[:1] + ([found.group(1)] if found else []))
        # Of its arguments, those that tell it from others of the name.
        where = re.sub(r"\s*,?\s*\bOUT\b.*\)", ")", " ".join(where.split()))
        for first, last, new in changes(text, start, end, symbols):
            yield Mutant(source, "sql", where, first, last, new, first, max(last, first + 1))


def changes(text, start, end, symbols):
    if WHOLE.match(text, start):
        yield start, end, ""
    for pattern, others in WORDS:
        for match in re.compile(pattern).finditer(text, start, end):
            for new in others:
                yield match.start(), match.end(), new(match.group()) if callable(new) else new
    for match in SYMBOL.finditer(text, start, end):
        # Two others, so that one of them takes the same arguments.
        at = symbols.index(match.group(1))
        for step in (1, -1):
            yield match.start(1), match.end(1), symbols[(at + step) % len(symbols)]
    columns = list(OUT.finditer(text, start, end))
    for column in columns:
        yield column.start(1), column.end(1), "x" + column.group(1)
    for one, two in zip(columns, columns[1:]):
        yield one.start(1), two.end(2), "%s%s%s" % (
            text[two.start(1):two.end(2)], text[one.end(2):two.start(1)], text[one.start(1):one.end(2)])
