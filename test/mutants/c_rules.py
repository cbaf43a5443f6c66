"""What is changed in a C file."""

import re

from c_parts import parts, skip_to
from mutant import Mutant

# A boundary first, then the opposite.
OPERATORS = {
    "+": ["-"], "-": ["+"], "*": ["/"], "/": ["*"], "%": ["/"],
    "<<": [">>"], ">>": ["<<"], "&": ["|"], "|": ["&"], "^": ["|"],
    "<": ["<=", ">"], "<=": ["<", ">"], ">": [">=", "<"], ">=": [">", "<"],
    "==": [">=", "!="], "!=": [">", "=="],
    "&&": ["||"], "||": ["&&"],
    "+=": ["-="], "-=": ["+="], "*=": ["/="], "/=": ["*="], "|=": ["&="], "&=": ["|="], "^=": ["|="],
    "<<=": [">>="], ">>=": ["<<="], "++": ["--"], "--": ["++"],
}
ALSO_UNARY = frozenset("+-*&")
ASSIGNMENTS = frozenset("= += -= *= /= %= &= |= ^= <<= >>=".split())
OTHER_NAME = {"Max": "Min", "Min": "Max", "true": "false", "false": "true"}

# No values, or nothing that a program does differs by them.
NO_CONSTANTS = frozenset("NULL PG_FUNCTION_ARGS UINT64_FORMAT INT64_FORMAT PG_TRY PG_CATCH PG_END_TRY".split())
NO_RESULTS = frozenset("""likely unlikely UINT64CONST INT64CONST UINT32_C sizeof offsetof lengthof Max Min errcode errmsg
    errmsg_plural errmsg_internal errdetail errdetail_plural errhint errcontext ereport elog StaticAssertStmt
    va_start va_end makeNode""".split())
REPORT_PARTS = frozenset("errcode errdetail errdetail_plural errhint errcontext".split())
FORMATS = re.compile(r"err|elog|ereport|psprintf|.?.?printf|appendStringInfo$")
TYPE_NAME = re.compile(r"(?:u?int\d*|u?int\d+_t|\w+_t|Size|Datum|Oid|bool|long|char|void|double|float|unsigned"
                       r"|[A-Z]\w*[a-z]\w*)$")


def mutants(source):
    for part in parts(source.text):
        for category, start, end, new in PartRules(source.text, part).all():
            yield Mutant(source, category, part.where, start, end, new, part.start, part.end)


class PartRules:
    def __init__(self, text, part):
        self.text = text
        self.part = part
        self.toks = part.toks
        self.first = part.first
        self.last = part.last
        if part.kind == "declaration":
            # Only what stands after the names: their types and sizes are left alone.
            self.first = skip_to(self.toks, part.first, "=", ";") + 1

    def all(self):
        if self.part.kind != "macro" and self.text[self.part.start:self.part.end].find("\n#") >= 0:
            return                      # two builds in one statement
        yield from self.delete()
        if self.first < self.last:
            yield from self.conditions()
            for i in range(self.first, self.last):
                yield from self.constant(i)
                yield from self.operator(i)
                yield from self.call(i)

    def source_of(self, first, last):
        return self.text[self.toks[first].start:self.toks[last - 1].end]

    def replace(self, category, first, last, new):
        return category, self.toks[first].start, self.toks[last - 1].end, new

    # Statements

    def delete(self):
        part = self.part
        if part.kind in ("expression", "jump") or (part.kind == "return" and not part.final):
            yield "delete", part.start, part.end, ""

    # Conditions

    def conditions(self):
        part = self.part
        if part.kind == "condition":
            yield from self.force(self.first, self.last, loop=part.owner != "if")
        elif part.kind == "return" and part.returns_bool and self.last - self.first > 2:
            yield from self.force(self.first + 1, self.last)
        for i in range(self.first, self.last):
            text = self.toks[i].text
            if text == "?":
                yield from self.force(self.operand_start(i, "?"), i)
            elif text in ("&&", "||"):
                first = self.operand_start(i, text)
                if self.toks[first - 1].text != text:
                    yield self.neutral(first, i, text)
                yield self.neutral(i + 1, self.operand_end(i, text), text)

    def force(self, first, last, loop=False):
        """What is asked is still evaluated."""
        condition = self.source_of(first, last)
        yield self.replace("condition", first, last, "(%s) && 0" % condition)
        if not loop:
            yield self.replace("condition", first, last, "(%s) || 1" % condition)
            yield self.replace("condition", first, last, "!(%s)" % condition)

    def neutral(self, first, last, operator):
        """An operand of && or || that does not decide."""
        form = "((%s) || 1)" if operator == "&&" else "((%s) && 0)"
        return self.replace("condition", first, last, form % self.source_of(first, last))

    def ends_operand(self, tok, operator):
        return tok.text in ASSIGNMENTS or tok.text in (",", ";", "?", ":", "return", "||") or tok.text == operator

    def operand_start(self, i, operator):
        i -= 1
        while i > self.first and not self.ends_operand(self.toks[i - 1], operator):
            if self.toks[i].text in ")]}":
                i = self.toks[i].match
                if i <= self.first or self.ends_operand(self.toks[i - 1], operator):
                    break
            if self.toks[i - 1].text in ("(", "[", "{"):
                break
            i -= 1
        return max(i, self.first)

    def operand_end(self, i, operator):
        i += 1
        while i < self.last and not self.ends_operand(self.toks[i], operator):
            if self.toks[i].text in "([{":
                i = self.toks[i].match
            elif self.toks[i].text in ")]}":
                break
            i += 1
        return min(i, self.last)

    # Constants

    def constant(self, i):
        toks = self.toks
        tok = toks[i]
        before = toks[i - 1].text if i > self.first else ""
        after = toks[i + 1] if i + 1 < self.last else None
        if tok.kind == "number":
            for number in other_numbers(tok.text):
                yield self.replace("constant", i, i + 1, number)
        elif tok.kind == "char":
            yield self.replace("constant", i, i + 1, "'x'" if tok.text != "'x'" else "'y'")
        elif tok.kind == "string":
            if not before.startswith('"') and not (i > self.first and toks[i - 1].kind == "string"):
                yield self.replace("string", i, i + 1, '"x' + tok.text[1:])
        elif tok.text in OTHER_NAME:
            category = "constant" if tok.text in ("true", "false") else "operator"
            yield self.replace(category, i, i + 1, OTHER_NAME[tok.text])
        elif tok.kind == "name" and re.match(r"[A-Z][A-Z0-9_]{2,}$", tok.text) and tok.text not in NO_CONSTANTS:
            if before in (".", "->", "##", "#") or \
                    (after is not None and (after.text in ("(", "##") or after.kind in ("name", "string"))):
                return
            yield self.replace("constant", i, i + 1, "(%s + 1)" % tok.text)

    # Operators

    def operator(self, i):
        text = self.toks[i].text
        binary = i > self.first and self.ends_value(i - 1)
        if text in OPERATORS and not (text in ALSO_UNARY and not binary):
            if not (text == "*" and self.toks[i + 1].text in (")", ",", "*")):
                for other in OPERATORS[text]:
                    yield self.replace("operator", i, i + 1, other)
                if text == "|":
                    yield from self.without_flag(i)
        elif text in ("!", "~") or (text == "-" and not binary):
            yield self.replace("operator", i, i + 1, "")

    def ends_value(self, i):
        """Does a value end with this token, so that the next is a binary operator?"""
        tok = self.toks[i]
        if tok.text == ")":
            return not self.is_cast(tok.match, i)
        return tok.kind in ("name", "number", "string", "char") or tok.text == "]"

    def is_cast(self, opening, closing):
        inside = [t.text for t in self.toks[opening + 1:closing]]
        if opening > self.first and self.toks[opening - 1].kind == "name":
            return False
        while inside and inside[-1] == "*":
            inside.pop()
        return bool(inside) and all(TYPE_NAME.match(t) or t in ("struct", "const", "unsigned") for t in inside)

    def without_flag(self, i):
        """a | b becomes a, and b, where they are plain names or numbers."""
        toks = self.toks
        plain = ("name", "number")
        if i + 1 < self.last and toks[i + 1].kind in plain and \
                (i + 2 == self.last or toks[i + 2].text in ("|", ")", ",", ";")):
            yield self.replace("operator", i, i + 2, "")
        if i - 1 >= self.first and toks[i - 1].kind in plain and \
                (i - 1 == self.first or toks[i - 2].text in ("(", ",", "=", "return")):
            yield self.replace("operator", i - 1, i + 1, "")

    # Calls

    def call(self, i):
        toks = self.toks
        if toks[i].kind != "name" or i + 1 >= self.last or toks[i + 1].text != "(" or toks[i + 1].match is None:
            return
        name = toks[i].text
        close = toks[i + 1].match
        if close >= self.last:
            return
        yield from self.exchanged(name, i + 2, close)
        if self.part.kind in ("macro", "initial"):
            return
        if name in REPORT_PARTS:
            yield self.replace("result", i, close + 1, "0")
        elif name not in NO_RESULTS:
            yield from self.dropped(i, close + 1)

    def exchanged(self, name, first, close):
        """Each two arguments that are neighbours."""
        toks = self.toks
        ranges = []
        while first < close:
            end = min(skip_to(toks, first, ","), close)
            ranges.append((first, end))
            first = end + 1
        if FORMATS.match(name):
            while ranges and not any(t.kind == "string" for t in toks[ranges[0][0]:ranges[0][1]]):
                ranges.pop(0)
            ranges = ranges[1:]
        for (a, b), (c, d) in zip(ranges, ranges[1:]):
            if a < b and c < d and self.source_of(a, b) != self.source_of(c, d):
                between = self.text[toks[b - 1].end:toks[c].start]
                yield self.replace("argument", a, d, self.source_of(c, d) + between + self.source_of(a, b))

    def dropped(self, first, last):
        """The call is made, and its result is not used."""
        toks = self.toks
        part = self.part
        call = self.source_of(first, last)
        if first == self.first and last == self.last and part.kind in ("expression", "other"):
            return
        if first > self.first and toks[first - 1].text == ")" and \
                [t.text for t in toks[first - 3:first - 1]] == ["(", "void"]:
            return
        if part.kind == "expression" and last == self.last and first - 2 >= self.first and toks[first - 1].text == "=" \
                and toks[self.first].kind == "name":
            yield self.replace("result", self.first, last, "(void) " + call)
            return
        yield self.replace("result", first, last, "((void) %s, (typeof(%s)) 0)" % (call, call))


def other_numbers(text):
    match = re.match(r"(0[xX][0-9a-fA-F]+|\d+)([uUlL]*)$", text)
    if match is None:
        match = re.match(r"(\d+)\.(\d+)$", text)
        return ["%d.%s" % (int(match.group(1)) + 1, match.group(2))] if match else []
    digits, suffix = match.groups()
    is_hex = digits[:2] in ("0x", "0X")
    value = int(digits, 16) if is_hex else int(digits)
    form = "0x%x%s" if is_hex else "%d%s"
    return [form % (other, suffix) for other in ([1] if value == 0 else [value + 1, value - 1])]
