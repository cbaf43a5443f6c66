"""The parts of a C file in which something can be changed: functions, their
statements and conditions, definitions of macros, initial values."""

import re

from c_tokens import DEFINE, tokens, without_directives

TYPE_WORDS = frozenset("const struct union enum unsigned signed long short int char void double float static "
                       "extern register volatile".split())


class Part:
    """What is mutated together: tokens[first:last] of one of these kinds.

    expression  a statement that is an expression
    declaration of variables, with initial values
    return, jump
    condition   of if, while, for, do; "owner" says of which
    other       another expression in the head of for or switch; a case's
    initial     an initial value outside of functions
    macro       the body of a macro
    """

    def __init__(self, kind, where, toks, first, last, owner=None, final=False, returns_bool=False):
        self.kind = kind
        self.where = where              # the function, or what stands for it
        self.toks = toks
        self.first = first
        self.last = last
        self.owner = owner
        self.final = final              # the last statement of its function
        self.returns_bool = returns_bool

    @property
    def start(self):
        return self.toks[self.first].start

    @property
    def end(self):
        return self.toks[self.last - 1].end


def parts(text):
    """All parts of a file."""
    code, directives = without_directives(text)
    found = []
    for start, directive in directives:
        match = DEFINE.match(directive)
        if match:
            toks = tokens(text, start + match.end(), start + len(directive))
            if toks:
                found.append(Part("macro", "#define " + match.group(1), toks, 0, len(toks)))
    toks = tokens(code)
    i = 0
    begin = 0                           # of the declaration at hand
    while i < len(toks):
        if toks[i].text in "([" and toks[i].match is not None:
            i = toks[i].match + 1
        elif toks[i].text == "{":
            end = toks[i].match
            name = function_name(toks, begin, i)
            if name is not None:
                is_bool = "bool" in [t.text for t in toks[begin:i] if t.start < toks[name].start]
                Body(toks, toks[name].text, is_bool, found).block(i, True)
                begin = end + 1
            elif any(t.text == "enum" for t in toks[begin:i]):
                found.extend(enumerators(toks, begin, i))
            i = end + 1
        elif toks[i].text == "=":
            end = skip_to(toks, i, ";")
            names = [t.text for t in toks[begin:i] if t.kind == "name"]
            found.append(Part("initial", names[-1], toks, i + 1, end))
            i = end
        elif toks[i].text == ";":
            i += 1
            begin = i
        else:
            i += 1
    return found


def skip_to(toks, i, *ends):
    """The index of the first of these, or of the bracket that ends all."""
    while i < len(toks) and toks[i].text not in ends:
        if toks[i].text in "([{" and toks[i].match is not None:
            i = toks[i].match
        elif toks[i].text in ")]}":
            break
        i += 1
    return i


def function_name(toks, begin, brace):
    """The index of the name of the function whose body begins here; or None."""
    i = brace - 1
    while i > begin and toks[i].text == ")":
        i = toks[i].match - 1           # before the parentheses
        if not re.match(r"pg_attribute|__attribute__", toks[i].text):
            return i
        i -= 1
    return None


def enumerators(toks, begin, brace):
    """The numbers in an enum."""
    for i in range(brace + 1, toks[brace].match):
        if toks[i].text == "=":
            yield Part("initial", toks[i - 1].text, toks, i + 1, skip_to(toks, i, ","))


class Body:
    """Walks through the statements of one function."""

    def __init__(self, toks, where, returns_bool, found):
        self.toks = toks
        self.where = where
        self.returns_bool = returns_bool
        self.found = found

    def add(self, kind, first, last, owner=None, final=False):
        if first < last:
            self.found.append(Part(kind, self.where, self.toks, first, last, owner, final, self.returns_bool))

    def block(self, brace, final=False):
        end = self.toks[brace].match
        i = brace + 1
        while i < end:
            i = self.statement(i, final, end)
        return end + 1

    def head(self, i, kind, owner):
        """The parentheses after a word; returns what follows them."""
        close = self.toks[i + 1].match
        self.add(kind, i + 2, close, owner)
        return close + 1

    def statement(self, i, final, end):
        toks = self.toks
        text = toks[i].text
        if text == "{":
            return self.block(i, final)
        if text == ";":
            return i + 1
        if text in ("if", "while"):
            i = self.statement(self.head(i, "condition", text), False, end)
            if text == "if" and i < end and toks[i].text == "else":
                i = self.statement(i + 1, False, end)
            return i
        if text == "switch":
            return self.statement(self.head(i, "other", text), False, end)
        if text == "do":
            i = self.statement(i + 1, False, end)
            return self.head(i, "condition", "do") + 1
        if text == "for":
            return self.for_loop(i, end)
        if text == "case":
            colon = skip_to(toks, i, ":")
            self.add("other", i + 1, colon, "case")
            return colon + 1
        if i + 1 < end and toks[i + 1].text == ":":
            return i + 2                # default, or a label
        if toks[i].kind == "name" and toks[i + 1].text == "(":
            after = toks[i + 1].match + 1
            if after < end and (toks[after].text == "{" or toks[after].kind in ("name", "keyword")):
                return self.statement(after, False, end)    # foreach() and the like
        return self.simple(i, final, end)

    def for_loop(self, i, end):
        toks = self.toks
        close = toks[i + 1].match
        first = i + 2
        second = skip_to(toks, first, ";")
        third = skip_to(toks, second + 1, ";")
        self.add("declaration" if self.is_declaration(first) else "other", first, second, "for")
        self.add("condition", second + 1, third, "for")
        self.add("other", third + 1, close, "for")
        return self.statement(close + 1, False, end)

    def simple(self, i, final, end):
        last = skip_to(self.toks, i, ";")
        text = self.toks[i].text
        if text == "return":
            self.add("return", i, last, None, final and last + 1 == end)
        elif text in ("break", "continue", "goto"):
            self.add("jump", i, last)
        elif self.is_declaration(i):
            self.add("declaration", i, last)
        else:
            self.add("expression", i, last)
        return last + 1

    def is_declaration(self, i):
        toks = self.toks
        if toks[i].text in TYPE_WORDS:
            return True
        if toks[i].kind != "name":
            return False
        stars = i + 1
        while toks[stars].text in ("*", "const"):
            stars += 1
        return toks[stars].kind == "name" and toks[stars + 1].text in ("=", ";", "[", ",", "pg_attribute_unused")
