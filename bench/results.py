"""What was measured, and its medians: a table of CSV with a row for each
experiment, case, parameter and metric."""

import csv
import statistics
from collections import defaultdict

from generators import BASELINE, CORE_V7, DEFAULT, IDENTITY

# Figures made from pairs of one round, of which the median is taken afterwards:
# experiment, metric, the case that is compared with, the new metric, how.
PAIRED = [
    ('statements', 'ms', BASELINE.name, 'times the baseline', lambda one, base: one / base),
    ('statements', 'ms', BASELINE.name, 'ns per value above the baseline', lambda one, base: one - base),
    ('statements', 'ms', DEFAULT.name, 'times uuidv7_fast()', lambda one, base: one / base),
    ('inserts', 'ms', IDENTITY, 'times bigint identity', lambda one, base: one / base),
    ('first call', 'us', CORE_V7.name, 'times uuidv7()', lambda one, base: one / base),
    ('first call', 'us from connecting on', CORE_V7.name, 'times uuidv7(), from connecting on',
     lambda one, base: one / base),
]

COLUMNS = ['experiment', 'case', 'parameter', 'metric', 'rounds', 'median', 'min', 'q1', 'q3', 'max']


class Results:
    """Rows of one run.  Round 0 warms up and does not count."""

    def __init__(self):
        self.values = defaultdict(dict)     # (experiment, case, parameter, metric) -> round -> value

    def record(self, experiment, case, parameter, number, metric, value):
        rounds = self.values[experiment, case, str(parameter), metric]
        if number > 0:
            rounds[number] = float(value)

    def _pair(self):
        for experiment, metric, base, name, how in PAIRED:
            for key, rounds in list(self.values.items()):
                if (key[0], key[3]) == (experiment, metric) and (experiment, base, key[2], metric) in self.values:
                    bases = self.values[experiment, base, key[2], metric]
                    self.values[experiment, key[1], key[2], name] = {n: how(v, bases[n]) for n, v in rounds.items()}

    def write(self, path):
        self._pair()
        with open(path, 'w', newline='', encoding='ascii') as file:
            out = csv.writer(file, lineterminator='\n')
            out.writerow(COLUMNS)
            for key, rounds in self.values.items():
                values = sorted(rounds.values())
                q1, median, q3 = statistics.quantiles(values, n=4, method='inclusive') if len(values) > 1 else values * 3
                out.writerow([*key, len(values),
                              *(f'{value:.6g}' for value in (median, values[0], q1, q3, values[-1]))])


def figure(value):
    """Three digits, as people write them."""
    if value is None:
        return ''
    if value == 0:
        return '0'
    if abs(value) >= 100:
        return f'{value:,.0f}'
    return f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'


def two_digits(value):
    rounded = float(f'{value:.1e}')
    if abs(rounded) >= 10 or rounded == 0:
        return f'{rounded:,.0f}'
    # As many decimals as two digits have: 5.0, 0.62, 0.041.
    return f'{rounded:.{1 - int(f"{rounded:e}".split("e")[1])}f}'


class Summary:
    """The table, read again."""

    def __init__(self, path):
        self.rows = {}
        with open(path, newline='', encoding='ascii') as file:
            for row in csv.DictReader(file):
                key = row['experiment'], row['case'], row['parameter'], row['metric']
                self.rows[key] = {name: float(row[name]) for name in COLUMNS[4:]}
        for (experiment, case, parameter, metric), row in list(self.rows.items()):
            if metric == 'rows missed':
                committed = self.get(experiment, case, parameter, 'rows committed')
                self.rows[experiment, case, parameter, 'rows missed, %'] = {
                    name: value if name == 'rounds' else value / committed * 100 for name, value in row.items()}

    def cases(self, experiment, parameter=None):
        """The cases of an experiment, in the order in which they were measured."""
        return list(dict.fromkeys(case for e, case, p, _ in self.rows
                                  if e == experiment and (parameter is None or p == str(parameter))))

    def parameters(self, experiment):
        return list(dict.fromkeys(p for e, _, p, _ in self.rows if e == experiment))

    def get(self, experiment, case, parameter, metric, figure='median'):
        """A figure; None where it was not measured."""
        row = self.rows.get((experiment, case, str(parameter), metric))
        return row and row[figure]
