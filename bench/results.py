"""What was measured: a table of CSV with a row for each experiment, case, parameter and
metric."""

import csv
import statistics
from collections import defaultdict

KEY = ['experiment', 'case', 'parameter', 'metric']
FIGURES = ['rounds', 'median', 'q1', 'q3']


def quartiles(values):
    """The lower one, the median, the upper one."""
    if len(values) == 1:
        values = values * 2
    return statistics.quantiles(values, n=4, method='inclusive')


class Results:
    """Rows of one run.  Round 0 warms up and does not count."""

    def __init__(self):
        self.values = defaultdict(list)

    def record(self, experiment, case, parameter, number, metric, value):
        values = self.values[experiment, case, str(parameter), metric]
        if number > 0:
            values.append(float(value))

    def write(self, path):
        with open(path, 'w', newline='', encoding='ascii') as file:
            out = csv.writer(file, lineterminator='\n')
            out.writerow(KEY + FIGURES)
            for key, values in self.values.items():
                q1, median, q3 = (f'{value:.6g}' for value in quartiles(values))
                out.writerow([*key, len(values), median, q1, q3])


class Summary:
    """The table, read again."""

    def __init__(self, path):
        self.rows = {}
        with open(path, newline='', encoding='ascii') as file:
            for row in csv.DictReader(file):
                key = tuple(row[name] for name in KEY)
                self.rows[key] = {name: float(row[name]) for name in FIGURES}

    def get(self, experiment, case, parameter, metric):
        """The figures; None where it was not measured."""
        return self.rows.get((experiment, case, parameter, metric))

    def cases(self, experiment):
        """In the order in which they were measured, as are parameters."""
        return list(dict.fromkeys(case for e, case, _, _ in self.rows if e == experiment))

    def parameters(self, experiment):
        return list(dict.fromkeys(p for e, _, p, _ in self.rows if e == experiment))
