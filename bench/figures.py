"""Places the figures of bench/results/results.csv into the pages: python3 bench/figures.py [--check]

A page has a mark after each: 143<!--= statements / uuidv7_fast() / ms -->.  A mark
has so many fields of a row (experiment, case, parameter, metric) as no other row
has, and means its median.  It can calculate, from left to right, with such rows and
with numbers: inserts / uuidv7_fast() / LOGGED / ms ÷ 1000.  A figure keeps the number
of its decimals.

--check only compares.  In the pages of MEASURED it also finds figures with a unit
that have no mark: where one was not measured, any other comment after it says so."""

import operator
import re
import sys
from pathlib import Path

from results import Summary

TOP = Path(__file__).resolve().parent.parent
MEASURED = ('README.md', 'doc/performance.md', 'doc/faq.md', 'doc/guide.md')

NUMBER = r'(?<![\w.,^-])\d+(?:,\d{3})*(?:\.\d+)?'
MARK = re.compile(rf'({NUMBER})?<!--=\s(.*?)\s-->', re.DOTALL)
WITH_UNIT = re.compile(rf'{NUMBER}\s*(?:(?:ns|[µμu]s|ms|s|[kMG]i?B|%|×|times)(?!\w)'
                       r'|(?:milli|micro|nano)?seconds?\b|(?:million\s+)?(?:\w+\s+)?per\s+second)')
CODE = re.compile(r'^```.*?^```|`[^`\n]*`', re.MULTILINE | re.DOTALL)
OPERATORS = {'÷': operator.truediv, '×': operator.mul, '−': operator.sub}


def operand(text, rows):
    if re.fullmatch(NUMBER, text):
        return float(text)
    fields = set(text.split(' / '))
    found = [row['median'] for key, row in rows.items() if fields <= set(key)]
    if len(found) != 1:
        raise LookupError(f'{len(found)} rows of results.csv have "{text}"')
    return found[0]


def expected(mark, shape, rows):
    """What a mark stands for, in the shape of the figure that is there."""
    first, *more = re.split(r' ([÷×−]) ', ' '.join(mark.split()))
    value = operand(first, rows)
    for sign, text in zip(more[::2], more[1::2]):
        value = OPERATORS[sign](value, operand(text, rows))
    if value < 0:
        raise LookupError(f'"{mark}" is {value:.6g}: the sentence is no longer true')
    return f'{value:,.{len(shape.partition(".")[2])}f}'


def placed(text, rows, complain):
    """A page with its figures placed."""
    plain = CODE.sub(lambda code: re.sub(r'[^\n]', ' ', code[0]), text)
    for match in reversed(list(MARK.finditer(plain))):
        line = plain.count('\n', 0, match.start()) + 1
        try:
            if not match[1]:
                raise LookupError(f'no figure before the mark "{match[2]}"')
            figure = expected(match[2], match[1], rows)
        except LookupError as reason:
            complain(line, reason)
            continue
        if figure != match[1]:
            text = text[:match.start()] + figure + text[match.end(1):]
            complain(line, f'"{match[1]}" should be "{figure}"', wrong=False)
    return text, plain


def main(check):
    rows = Summary(TOP / 'bench/results/results.csv').rows
    problems = []
    for page in sorted([*TOP.glob('*.md'), *TOP.glob('doc/**/*.md')]):
        name = page.relative_to(TOP).as_posix()

        def complain(line, what, wrong=True):
            if wrong or check:
                problems.append(f'{name}:{line}: {what}')

        before = page.read_bytes().decode('utf-8')     # with the ends of its lines
        after, plain = placed(before, rows, complain)
        if check and name in MEASURED:
            for match in WITH_UNIT.finditer(plain):
                complain(plain.count('\n', 0, match.start()) + 1, f'no mark after "{" ".join(match[0].split())}"')
        if after != before and not check:
            page.write_bytes(after.encode('utf-8'))
    print(*problems, sep='\n', end='\n' if problems else '', file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    if sys.argv[1:] not in ([], ['--check']):
        sys.exit(__doc__)
    sys.exit(main(bool(sys.argv[1:])))
