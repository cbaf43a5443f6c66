"""The tokens of a C file, with their places, and its directives."""

import re

KEYWORDS = frozenset("""
    auto break case char const continue default do double else enum extern float for goto if inline int
    long register restrict return short signed sizeof static struct switch typedef union unsigned void
    volatile while _Alignof _Noreturn offsetof typeof __typeof__""".split())

TOKEN = re.compile(r"""
    (?P<skip>\s+|/\*.*?\*/|//[^\n]*|\\\n)
  | (?P<string>"(?:\\.|[^"\\])*")
  | (?P<char>'(?:\\.|[^'\\])*')
  | (?P<number>\.?\d(?:[eEpP][+-]|[\w.])*)
  | (?P<name>[A-Za-z_]\w*)
  | (?P<punct><<=|>>=|\.\.\.|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\#\#|.)
""", re.VERBOSE | re.DOTALL)

# To the end of its last line; comments in it may go over lines, too.
DIRECTIVE = re.compile(r"^[ \t]*\#(?:/\*.*?\*/|\\\n|[^\n])*", re.MULTILINE | re.DOTALL)
DEFINE = re.compile(r"[ \t]*\#[ \t]*define[ \t]+(\w+)(\([^)]*\))?")

OPENING = {"(": ")", "[": "]", "{": "}"}


class Token:
    __slots__ = ("kind", "text", "start", "end", "match")

    def __init__(self, kind, text, start):
        self.kind = kind
        self.text = text
        self.start = start
        self.end = start + len(text)
        self.match = None  # index of the other bracket

    def __repr__(self):
        return self.text


def tokens(text, start=0, end=None):
    """Of this range, without comments; brackets know their partners."""
    found = []
    open_brackets = []
    end = len(text) if end is None else end
    while start < end:
        match = TOKEN.match(text, start, end)
        start = match.end()
        if match.lastgroup == "skip":
            continue
        kind = match.lastgroup
        if kind == "name" and match.group() in KEYWORDS:
            kind = "keyword"
        found.append(Token(kind, match.group(), match.start()))
        if found[-1].text in OPENING:
            open_brackets.append(len(found) - 1)
        elif found[-1].text in OPENING.values():
            while open_brackets:
                other = open_brackets.pop()
                if OPENING[found[other].text] == found[-1].text:
                    found[other].match = len(found) - 1
                    found[-1].match = other
                    break
    return found


def blank(text):
    """White space of the same length and lines."""
    return re.sub(r"[^\n]", " ", text)


def without_directives(text):
    """The text with blanks in place of its directives, and those: (start, text)."""
    comments = re.compile(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    # A line in a comment that begins with # is none.
    bare = comments.sub(lambda m: blank(m.group()) if m.group()[0] == "/" else m.group(), text)
    found = [(m.start(), text[m.start():m.end()]) for m in DIRECTIVE.finditer(bare)]
    for start, directive in found:
        text = text[:start] + blank(directive) + text[start + len(directive):]
    return text, found
