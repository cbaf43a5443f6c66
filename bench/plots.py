"""The plots of the report, as SVG on light and dark pages, narrow enough for a
telephone.  Whiskers are quartiles."""

import re
from html import escape
from itertools import cycle
from textwrap import fill

import numpy
from matplotlib import rcParams
from matplotlib.figure import Figure

from generators import BASELINE, CORE_V4, CORE_V7, DEFAULT, FEED, IDENTITY, NEXTVAL, POSITION
from results import figure

# Colours that can be seen on both, by how a case begins.
OURS, GREY, OTHER = '#1688a8', '#848d97', '#d1495b'
COLOURS = {FEED.name: '#6b6fd6', POSITION.name: '#2f9e6e', NEXTVAL.name: '#b5651d', IDENTITY: '#b5651d',
           BASELINE.name: GREY, 'nothing': GREY, CORE_V4.name: '#a07d2c', 'uuidv7_fast': OURS, 'id < the watermark': OURS,
           'openssl': OURS, 'getrandom (vDSO)': '#6b6fd6', 'getrandom': '#2f9e6e', 'urandom': '#b5651d', 'xorshift128+': GREY}
SHORT = {BASELINE.name: 'no-op C function', 'nothing: SELECT 1': 'SELECT 1', CORE_V7.name: 'uuidv7(), built in',
         'uuid_generate_v7() of pg_uuidv7': 'pg_uuidv7'}
# For what Matplotlib draws in black on white.
DARK = ('@media (prefers-color-scheme: dark) { #patch_1 path { fill: #0d1117 !important } text { fill: #e6edf3 } '
        '[style*="#000000"] { stroke: #e6edf3 !important } }')
WIDTH = 5.42    # inches, of 96 pixels

rcParams.update({
    'svg.fonttype': 'none', 'svg.hashsalt': 'fast_uuid', 'font.sans-serif': ['DejaVu Sans', 'sans-serif'], 'font.size': 10.5,
    'figure.constrained_layout.use': True, 'figure.constrained_layout.w_pad': 0.12, 'figure.constrained_layout.h_pad': 0.1,
    'axes.facecolor': 'none', 'axes.titlesize': 'medium', 'axes.titleweight': 'bold', 'axes.titlelocation': 'left',
    'axes.spines.top': False, 'axes.spines.right': False, 'grid.color': GREY, 'grid.alpha': 0.3, 'legend.frameon': False,
})


def colour(case):
    return next((hue for start, hue in COLOURS.items() if case.startswith(start)), OTHER)


def short(case):
    return SHORT.get(case, re.sub(r' \((OpenSSL|/dev|seeded).*', '', case.replace('uuidv7_fast(), ', '… ')))


class Plot:
    """A figure, and what is to be seen in it, in words."""

    def __init__(self, experiment, summary):
        self.experiment, self.summary, self.cases = experiment, summary, summary.cases(experiment)
        self.figure, self.words = Figure(), []

    def figures(self, keys, unit):
        """Medians, and how far their quartiles are below and above."""
        median, q1, q3 = (numpy.array([self.summary.get(self.experiment, *key, column) / unit for key in keys])
                          for column in ('median', 'q1', 'q3'))
        return median, [median - q1, q3 - median]

    def bars(self, *panels):
        """Panels below each other: a title, rows of a label and the rest of a key of the summary, how a figure is
        written, and its unit."""
        self.figure.set_size_inches(WIDTH, sum(len(rows) / 4 + 0.5 for _, rows, *_ in panels) + 0.2)
        for axes, (title, rows, shape, unit) in zip(self.figure.subplots(len(panels), squeeze=False).flat, panels):
            labels, keys = zip(*rows)
            medians, whiskers = self.figures(keys, unit)
            notes = [shape.format(median) for median in medians]
            bars = axes.barh(range(len(rows)), medians, 0.7, xerr=whiskers, color=[colour(case) for case, *_ in keys],
                             tick_label=labels)
            axes.bar_label(bars, notes, padding=5)
            axes.set_title(title)
            axes.set_ymargin(0.01)
            axes.invert_yaxis()
            axes.tick_params(length=0)
            axes.xaxis.set_visible(False)
            axes.spines[:].set_visible(False)
            self.words += [f'{title}:', *(f'{label} {note},' for label, note in zip(labels, notes))]

    def lines(self, title, metric, units, unit=1, **scale):
        """From the left to the right the parameters, equally far apart; the legend in the order of the ends."""
        self.figure.set_size_inches(WIDTH, 3.8)
        axes = self.figure.subplots()
        parameters = self.summary.parameters(self.experiment)
        lines = [(case, *self.figures([(case, p, metric) for p in parameters], unit)) for case in self.cases]
        self.words += [f'{title}:', f'{units}:']
        for marker, (case, medians, whiskers) in zip(cycle('os^vDXP*'), sorted(lines, key=lambda line: -line[1][-1])):
            axes.errorbar(parameters, medians, whiskers, color=colour(case), marker=marker, linewidth=2, label=short(case))
            self.words.append(f'{short(case)} {figure(medians[0])} to {figure(medians[-1])},')
        axes.set(title=title, xlabel=units, **scale)
        axes.yaxis.set_major_formatter('{x:,.0f}')
        axes.minorticks_off()
        axes.grid(axis='y')
        axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))


def statements(plot):
    """A million values of each generator: uuidv7_fast() takes little more than a C function that
    does nothing, nextval() longer, the others several times as long."""
    shown = [BASELINE.name, DEFAULT.name, FEED.name, POSITION.name, 'uuidv7_fast(), getrandom', 'uuidv7_fast(), urandom',
             NEXTVAL.name, CORE_V4.name, CORE_V7.name, 'uuid_generate_v7() of pg_uuidv7']
    rows = [(short(case), (case, 1000000, 'ms')) for case in shown if case in plot.cases]
    plot.bars(('A million values', rows, '{:,.0f} ms', 1))


def requests(plot):
    """One request to each source, by its size: of the cryptographic ones getrandom in the vDSO
    is the fastest for a few bytes, OpenSSL for many; /dev/urandom is the slowest."""
    plot.lines('One request to a source', 'ns', 'ns, by bytes per request', yscale='log')


def inserts(plot):
    """A million rows by each key: uuidv7_fast() and bigint take about the same time,
    gen_random_uuid() takes longest and has the largest index."""
    times, sizes = ([(short(case), (case, 'LOGGED', metric)) for case in plot.cases] for metric in ('ms', 'index bytes'))
    plot.bars(('A million rows in one statement', times, '{:.2f} s', 1000),
              ('The index of the primary key', sizes, '{:.1f} MB', 1e6))


def first_call(plot):
    """The first statement of a session by function: it takes longest where it has to load a
    library."""
    rows = [(short(case) if how == 'preloaded' else how, (case, how, 'us'))
            for case in plot.cases if "('" not in case
            for how in ('preloaded', 'not preloaded') if how == 'preloaded' or case in (BASELINE.name, DEFAULT.name)]
    plot.bars(('First statement of a session', rows, '{:,.0f} µs', 1))


def sessions(plot):
    """Values per second of one session to eight: they grow up to the number of processors;
    uuidv7_fast() stays ahead of nextval() and uuidv7()."""
    plot.lines('Several sessions, in total', 'values per second', 'million per second, by sessions at once',
               1e6, ylim=(0, None))


def missed(plot):
    """Rows that a reader misses, in percent: the more writers there are, the more; with the
    watermark none."""
    rows = [(f'{number} writers, {case}', (case, number, 'rows missed, %'))
            for number in plot.summary.parameters('missed') for case in plot.cases]
    plot.bars(('Rows that a reader by id misses', rows, '{:.0f} %', 1))


ALL = {make.__name__.replace('_', ' '): make for make in (statements, requests, inserts, first_call, sessions, missed)}


def draw(experiment, summary, machine, path):
    """Writes the plot, with a line below that says what was measured where; returns what is to
    be seen in it, as its function says."""
    plot = Plot(experiment, summary)
    ALL[experiment](plot)
    rounds = min(row['rounds'] for key, row in summary.rows.items() if key[0] == experiment)
    cpu, processors = re.sub(r'\((R|TM)\)| (Processor|CPU)\b', '', machine['CPU']).split(', ')[:2]
    facts = f"{cpu}, {processors} · PostgreSQL {machine['PostgreSQL'].split()[0]} · {rounds:.0f} rounds · {machine['Date']}"
    plot.figure.supxlabel(fill(facts, 70), fontsize=9)
    plot.figure.savefig(path, metadata=dict.fromkeys(('Creator', 'Date', 'Format', 'Type')))
    seen, words = ' '.join(ALL[experiment].__doc__.rstrip('.').split()), ' '.join(plot.words).rstrip(',')
    head = f'<title>{escape(seen, quote=False)}</title>\n <desc>{escape(words, quote=False)}</desc>\n <style>{DARK}</style>\n'
    path.write_text(path.read_text(encoding='utf-8').replace('<defs>', f'{head} <defs>', 1), encoding='utf-8')
    return seen
