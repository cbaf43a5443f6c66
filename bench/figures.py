"""What bench/quotes.py is written in: which figure stands where, and how many digits
it has."""

import math
from dataclasses import dataclass

from results import COLUMNS, figure


class Unknown(Exception):
    """A figure that cannot be told from the results."""


@dataclass(frozen=True)
class Quote:
    file: str
    template: str       # {} is a figure, a blank is any white space
    figures: tuple      # functions: Summary -> text

    def expected(self, summary):
        texts = [make(summary) for make in self.figures]
        if len(texts) != self.template.count('{}'):
            raise ValueError(f'"{self.template}" has {self.template.count("{}")} places for {len(texts)} figures')
        return texts


def value(what):
    """What is quoted: a key of results.csv, with the column if that is not the median, or
    what the functions below make of it.  As a function: Summary -> number."""
    if callable(what):
        return what

    def get(summary):
        key, column = (what[:-1], what[-1]) if what[-1] in COLUMNS else (what, 'median')
        number = summary.get(*key, column)
        if number is None:
            raise Unknown(f'results.csv has no {column} of {", ".join(map(str, key))}')
        return number
    return get


def scaled(factor):
    return lambda what: lambda summary: value(what)(summary) * factor


seconds = scaled(1 / 1000)          # of ms
megabytes = scaled(1e-6)            # of bytes
millions = scaled(1e-6)             # of values, per second or not


def largest(*keys):
    return lambda summary: max(value(key)(summary) for key in keys)


def difference(what, less):
    return lambda summary: value(what)(summary) - value(less)(summary)


def ratio(what, to):
    """Of two figures of the same table."""
    if not callable(what) and not callable(to) and what[0] != to[0]:
        raise ValueError(f'{what} and {to} are not of the same table')
    return lambda summary: value(what)(summary) / value(to)(summary)


def more(what):
    """Percent by which a ratio is above 1."""
    return lambda summary: (value(what)(summary) - 1) * 100


def less(what):
    """Percent by which a ratio is below 1."""
    return lambda summary: (1 - value(what)(summary)) * 100


def share(part, whole_of):
    """Percent that one figure is of another."""
    return lambda summary: value(part)(summary) / value(whole_of)(summary) * 100


def _text(shape):
    def style(what):
        def made(summary):
            text = shape(value(what)(summary))
            if text.startswith('-'):
                raise Unknown(f'the figure is {text}: the sentence is no longer true')
            return text
        return made
    return style


def two_digits(number):
    rounded = float(f'{number:.1e}')
    if abs(rounded) >= 10 or rounded == 0:
        return f'{rounded:,.0f}'
    # As many decimals as two digits have: 5.0, 0.62, 0.041.
    return f'{rounded:.{1 - int(f"{rounded:e}".split("e")[1])}f}'


about = _text(two_digits)                          # two digits
three = _text(figure)                               # three, as in the report
whole = _text(lambda number: f'{number:,.0f}')      # 1,279
upward = _text(lambda number: f'{math.ceil(number):,}')   # the next whole number
tenths = _text(lambda number: f'{number:,.1f}')     # 12.4
