"""Places the figures of bench/results/results.csv into the documents, at the texts
that bench/quotes.py lists: python3 bench/quoted.py [--check]

--check only compares, and names each text that is missing or differs, and each
figure with a unit that no text of the list has.  Needs nothing but Python."""

import re
import sys
from pathlib import Path

import quotes
from figures import Unknown
from results import Summary

TOP = Path(__file__).resolve().parent.parent

NUMBER = r'\d+(?:,\d{3})*(?:\.\d+)?'
SLOT = rf'(?<![\d.,])({NUMBER})(?!\d|[.,]\d)'
UNIT = r'(?:ns|[µμu]s|ms|s|(?:milli|micro|nano)?seconds?|minutes?|kB|MB|GB|[KMG]iB|GB/s|%|times|×|million(?:\s+\w+)?\s+per\s+second|\w+\s+per\s+second)(?![\w/])'
WITH_UNIT = re.compile(rf'(?<![\w.,^])({NUMBER})(?:\*\*|&nbsp;)?\s*{UNIT}')
CODE = re.compile(r'^```.*?^```|`[^`\n]*`', re.MULTILINE | re.DOTALL)


def find(template, text, slot=SLOT):
    """Where a text has a template: a blank is any white space, {} a number.  The ends
    are those of words and numbers."""
    words = [slot.join(re.escape(part) for part in word.split('{}')) for word in template.split()]
    return list(re.finditer(r'(?<![\w.])' + r'\s+'.join(words) + r'(?!\w)', text))


def line(text, place):
    return text.count('\n', 0, place) + 1


def placed(text, listed, summary):
    """The text of a file with the figures of its quotes, their places in it, and what is wrong."""
    problems, changes, slots = [], [], []
    for quote in listed:
        found = find(quote.template, text)
        try:
            expected = quote.expected(summary)
        except Unknown as reason:
            problems.append(f'{quote.file}: "{quote.template}": {reason}')
            expected = None
        if len(found) != 1:
            wanted = quote.template.format(*expected) if expected else quote.template
            where = ', '.join(str(line(text, match.start())) for match in found)
            problems.append(f'{quote.file}: ' + (f'the text stands in several places (lines {where})' if found
                                                 else 'there is no such text') + f': "{wanted}"')
            continue
        for group in range(1, found[0].re.groups + 1):
            if found[0].span(group) in slots:
                problems.append(f'{quote.file}:{line(text, found[0].start(group))}: two quotes have one figure: "{quote.template}"')
            slots.append(found[0].span(group))
            if expected and found[0][group] != expected[group - 1]:
                changes.append((*found[0].span(group), expected[group - 1]))
    for start, end, new in sorted(changes, reverse=True):
        text = text[:start] + new + text[end:]
    return text, changes, slots, problems


def uncovered(file, text, slots, allowed):
    """The figures with a unit that are no quote's and that nothing allows."""
    spans = [match.span() for words in allowed for match in find(words, text)]
    plain = CODE.sub(lambda match: re.sub(r'[^\n]', ' ', match[0]), text)
    return [f'{file}:{line(text, match.start())}: no quote has "{" ".join(match[0].split())}"'
            for match in WITH_UNIT.finditer(plain)
            if match.span(1) not in slots and not any(a <= match.start() and match.end() <= b for a, b in spans)]


def main(check):
    summary = Summary(TOP / 'bench/results/results.csv')
    problems = []
    for file in dict.fromkeys([quote.file for quote in quotes.QUOTES] + quotes.COVERED):
        # As it is, with the ends of its lines.
        before = (TOP / file).read_bytes().decode('utf-8')
        after, changes, slots, wrong = placed(before, [q for q in quotes.QUOTES if q.file == file], summary)
        problems += wrong
        if not check:
            if after != before:
                (TOP / file).write_bytes(after.encode('utf-8'))
            continue
        problems += [f'{file}:{line(before, start)}: "{before[start:end]}" should be "{new}"' for start, end, new in changes]
        allowed = [words for where, words, _ in quotes.ALLOWED if where == file]
        problems += [f'{file}: nothing to allow: "{words}"' for words in allowed if not find(words, before)]
        if file in quotes.COVERED:
            problems += uncovered(file, before, slots, allowed)
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == '__main__':
    if sys.argv[1:] not in ([], ['--check']):
        sys.exit(__doc__)
    sys.exit(main(bool(sys.argv[1:])))
