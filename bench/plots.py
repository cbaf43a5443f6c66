"""The plots of the report, as SVG on light and dark pages, narrow enough for a telephone.
Whiskers are quartiles."""

from html import escape
from textwrap import fill

import numpy
from matplotlib import rcParams
from matplotlib.figure import Figure

from generators import (BASELINE, CORE_V4, CORE_V7, IDENTITY, KEY, NEXTVAL, PG_UUIDV7)

# Colours that can be seen on both.
OURS, GREY = '#1688a8', '#848d97'
SHORT = {BASELINE.name: 'no-op C function', CORE_V7.name: 'uuidv7(), built in',
         PG_UUIDV7.name: 'pg_uuidv7', 'openssl': 'openssl (default)',
         'getrandom, vDSO': 'getrandom (vDSO)', 'getrandom, system call': 'getrandom (call)'}
# For what Matplotlib draws in black on white.
DARK = ('@media (prefers-color-scheme: dark) { #patch_1 path { fill: #0d1117 !important }'
        ' text { fill: #e6edf3 } [style*="#000000"] { stroke: #e6edf3 !important } }')
WIDTH = 5.42    # inches, of 96 pixels

rcParams.update({
    'svg.fonttype': 'none', 'svg.hashsalt': 'fast_uuid',
    'font.sans-serif': ['DejaVu Sans', 'sans-serif'], 'font.size': 12,
    'figure.constrained_layout.use': True, 'figure.constrained_layout.w_pad': 0.12,
    'figure.constrained_layout.h_pad': 0.1, 'axes.facecolor': 'none',
    'axes.titlesize': 'medium', 'axes.titleweight': 'bold', 'axes.titlelocation': 'left',
})


def bars(axes, summary, experiment, title, labels, metric, shape, unit=1):
    """labels: of each case and parameter; shape: how a figure is written."""
    found = {key: summary.get(experiment, *key, metric) for key in labels}
    found = {key: row for key, row in found.items() if row}
    median, q1, q3 = (numpy.array([row[column] / unit for row in found.values()])
                      for column in ('median', 'q1', 'q3'))
    colours = [OURS if case.startswith('uuidv7_f') else GREY for case, _ in found]
    drawn = axes.barh(range(len(found)), median, 0.7, xerr=[median - q1, q3 - median],
                      color=colours, tick_label=[labels[key] for key in found])
    axes.bar_label(drawn, [shape.format(value) for value in median], padding=5)
    axes.set_title(title)
    axes.set_ymargin(0.01)
    axes.invert_yaxis()
    axes.tick_params(length=0)
    axes.xaxis.set_visible(False)
    axes.spines[:].set_visible(False)


def statements(figure, summary):
    """A million values of each generator: uuidv7_fast() takes little more than a C function
    that does nothing, nextval() longer, the others several times as long."""
    names = [BASELINE.name, KEY.name, 'uuidv7_fast(), getrandom',
             'uuidv7_fast(), urandom', NEXTVAL.name, CORE_V4.name, CORE_V7.name, PG_UUIDV7.name]
    labels = {(name, '1000000'): SHORT.get(name, name) for name in names}
    figure.set_size_inches(WIDTH, 3.6)
    bars(figure.subplots(), summary, 'statements', 'A million values', labels, 'ms', '{:,.0f} ms')


def beside(axes, side, x, labels):
    """labels: heights where lines end, with text, moved apart where one would cover the next."""
    heights, texts = zip(*sorted(labels))
    heights = numpy.log(heights)
    for _ in range(100):
        missing = numpy.maximum(0.7 - numpy.diff(heights), 0) / 2
        heights[:-1] -= missing
        heights[1:] += missing
    for text, height in zip(texts, numpy.exp(heights)):
        axes.annotate(text, (x, height), (10 if side == 'right' else -10, 0), va='center',
                      ha='left' if side == 'right' else 'right', textcoords='offset points',
                      annotation_clip=False)


def requests(figure, summary):
    """Requests to the sources by size: for the 8 bytes of a UUID openssl takes many times as
    long as getrandom by the vDSO, for the 4096 of the buffer less than any other
    cryptographic source."""
    figure.set_size_inches(WIDTH, 4.2)
    axes = figure.subplots()
    axes.loglog()
    sizes = summary.parameters('requests')
    numbers = [int(size) for size in sizes]
    left, right = [], []
    for case in summary.cases('requests'):
        rows = [summary.get('requests', case, size, 'ns') for size in sizes]
        median, q1, q3 = (numpy.array([row[column] for row in rows])
                          for column in ('median', 'q1', 'q3'))
        axes.errorbar(numbers, median, [median - q1, q3 - median], marker='o', linewidth=2,
                      color=OURS if case == 'openssl' else GREY)
        first, last = (f"{float(f'{value:.3g}'):,g}" for value in median[[0, -1]])
        left.append((median[0], f'{SHORT.get(case, case)}  {first}'))
        right.append((median[-1], last))
    beside(axes, 'left', numbers[0], left)
    beside(axes, 'right', numbers[-1], right)
    axes.set_title('Nanoseconds per request by size', pad=16)
    axes.set_xlabel('bytes; both scales are logarithmic')
    axes.set_xticks(numbers, sizes)
    axes.tick_params(length=0, which='both')
    axes.yaxis.set_visible(False)
    axes.spines[:].set_visible(False)


def inserts(figure, summary):
    """A million rows by each key: uuidv7_fast() and bigint take about the same time,
    gen_random_uuid() takes longest and has the largest index."""
    names = [KEY.name, IDENTITY.name, CORE_V7.name, CORE_V4.name]
    labels = {(name, ''): SHORT.get(name, name) for name in names}
    figure.set_size_inches(WIDTH, 4.6)
    above, below = figure.subplots(2)
    bars(above, summary, 'inserts', 'A million rows in one statement', labels, 'ms',
         '{:.2f} s', 1000)
    bars(below, summary, 'inserts', 'The index of the primary key', labels, 'index bytes',
         '{:.1f} MB', 1e6)


ALL = {draw.__name__: draw for draw in (statements, requests, inserts)}


def draw(experiment, summary, machine, directory):
    """Writes the plot, with a line below that says what was measured where; returns what is
    to be seen in it, as its function says."""
    figure = Figure()
    ALL[experiment](figure, summary)
    rounds = min(row['rounds'] for key, row in summary.rows.items() if key[0] == experiment)
    facts = (f"{machine['CPU']} · PostgreSQL {machine['PostgreSQL'].split()[0]}"
             f" · {rounds:.0f} rounds · {machine['Date']}")
    figure.supxlabel(fill(facts, 55), fontsize=10.5)
    path = directory / f'{experiment}.svg'
    figure.savefig(path, metadata=dict.fromkeys(('Creator', 'Date', 'Format', 'Type')))
    seen = ' '.join(ALL[experiment].__doc__.rstrip('.').split())
    head = f'<title>{escape(seen, quote=False)}</title>\n <style>{DARK}</style>\n <defs>'
    svg = path.read_text(encoding='utf-8')
    path.write_text(svg.replace('<defs>', head, 1), encoding='utf-8')
    return seen
