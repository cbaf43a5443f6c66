"""The plots of the report, as SVG on light and dark pages, narrow enough for a
telephone.  Whiskers are quartiles."""

import math
import re
from html import escape

from generators import BASELINE, CORE_V4, CORE_V7, DEFAULT, DURABLE, IDENTITY, INSTANCE, NEXTVAL
from results import figure

# Colours that can be seen on both.
OURS, GREY, OTHER = '#1688a8', '#848d97', '#d1495b'
COLOURS = {INSTANCE.name: '#6b6fd6', DURABLE.name: '#2f9e6e', NEXTVAL.name: '#b5651d', IDENTITY: '#b5651d',
           BASELINE.name: GREY, 'nothing: SELECT 1': GREY, CORE_V4.name: '#a07d2c',
           'getrandom (vDSO)': '#6b6fd6', 'getrandom (system call)': '#2f9e6e', 'urandom': '#b5651d', 'xorshift128+': GREY}
SHORT = {BASELINE.name: 'no-op C function', 'nothing: SELECT 1': 'SELECT 1', CORE_V7.name: 'uuidv7(), built in',
         'uuid_generate_v7() of pg_uuidv7': 'pg_uuidv7'}
STYLE = """
  text { font: 14px sans-serif; fill: #1f2328 } .title { font-weight: bold } .small { font-size: 12px }
  .paper { fill: #fff; stroke: #999 } .ink { stroke: #1f2328; stroke-width: 1.5 } .grid { stroke: #ddd }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 } .paper { fill: #0d1117; stroke: #666 } .ink { stroke: #e6edf3 } .grid { stroke: #333 }
  }
"""
WIDTH, MARGIN, ROW = 520, 16, 24


def colour(case):
    return COLOURS.get(case, OURS if case.startswith(('uuidv7_fast', 'openssl')) else OTHER)


def short(case):
    return SHORT.get(case, case.replace('uuidv7_fast(), ', '… '))


def text(x, y, what, style='', anchor='start'):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(what, quote=False)}</text>'.replace(
        ' class=""', '').replace(' text-anchor="start"', '')


def whisker(x1, y1, x2, y2):
    return f'<path class="ink" d="M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}"/>'


class Plot:
    """Panels below each other, and what is to be seen in them, in words."""

    def __init__(self, summary, machine, experiment):
        self.summary, self.machine, self.experiment = summary, machine, experiment
        self.parts, self.words, self.y = [], [], MARGIN

    def figures(self, keys, unit):
        """Medians with their quartiles."""
        return [[self.summary.get(self.experiment, *key, column) / unit for column in ('median', 'q1', 'q3')] for key in keys]

    def title(self, title):
        self.y += 8
        self.parts.append(text(MARGIN, self.y, title, 'title'))
        self.words.append(f'{title}:')

    def bars(self, title, rows, shape, unit=1):
        """Rows of a label, the rest of a key of the summary, and a colour."""
        self.title(title)
        figures = self.figures([key for _, key, _ in rows], unit)
        notes = [shape.format(median) for median, *_ in figures]
        left = MARGIN + 8 + 7.6 * max(len(label) for label, *_ in rows)
        scale = (WIDTH - left - 2 * MARGIN - 8 * max(map(len, notes))) / max(1e-9, *(high for *_, high in figures))
        for (label, _, fill), note, (median, low, high) in zip(rows, notes, figures):
            self.y += ROW
            self.parts += [text(left - 8, self.y, label, anchor='end'),
                           f'<rect x="{left:.1f}" y="{self.y - 13}" width="{median * scale:.1f}" height="17" fill="{fill}"/>',
                           whisker(left + low * scale, self.y - 4.5, left + high * scale, self.y - 4.5),
                           text(left + high * scale + 8, self.y, note)]
            self.words.append(f'{label} {note},')
        self.y += 20

    def lines(self, title, series, metric, units, ticks, unit=1, scale=float):
        """Cases and their labels; from the left to the right the parameters, equally far apart."""
        self.title(title)
        self.words.append(units + ':')
        parameters, height, left, right = self.summary.parameters(self.experiment), 260, 52, WIDTH - 178
        top, bottom = self.y + 20, self.y + 20 + height
        x = [left + 20 + i * (right - left - 20) / (len(parameters) - 1) for i in range(len(parameters))]
        figures = {case: self.figures([(case, p, metric) for p in parameters], unit) for case, _ in series}
        ends = [value for rows in figures.values() for _, *quartiles in rows for value in quartiles]
        least, most = scale(min(ticks[0], *ends)), scale(max(ends))

        def y(value):
            return bottom - (scale(value) - least) / (most - least) * height

        for tick in ticks:
            self.parts += [f'<path class="grid" d="M{left} {y(tick):.1f}H{right}"/>',
                           text(left - 6, y(tick) + 5, f'{tick:,}', anchor='end')]
        self.parts += [text(at, bottom + 22, p, anchor='middle') for at, p in zip(x, parameters)]
        below = top - ROW
        for case, label in sorted(series, key=lambda one: -figures[one[0]][-1][0]):
            fill = COLOURS.get(label) or colour(case)
            points = [(at, y(median)) for at, (median, *_) in zip(x, figures[case])]
            drawn = ' '.join(f'{a:.1f},{b:.1f}' for a, b in points)
            # Labels at the ends of the lines, a row apart.
            below = max(below + 18, points[-1][1])
            self.parts += [*(whisker(at, y(low), at, y(high)) for at, (_, low, high) in zip(x, figures[case])),
                           f'<polyline points="{drawn} {right + 10},{points[-1][1]:.1f} {right + 22},{below:.1f}" fill="none"'
                           f' stroke="{fill}" stroke-width="2"/>',
                           *(f'<circle cx="{a:.1f}" cy="{b:.1f}" r="4" fill="{fill}"/>' for a, b in points),
                           text(right + 26, below + 5, label)]
            self.words.append(f'{label} {figure(figures[case][0][0])} to {figure(figures[case][-1][0])},')
        self.y = bottom + 44
        self.parts.append(text(MARGIN, self.y, units))
        self.y += 8

    def write(self, path, seen):
        """With a line that says what was measured where, below."""
        rounds = min(row['rounds'] for key, row in self.summary.rows.items() if key[0] == self.experiment)
        cpu, processors = re.sub(r'\((R|TM)\)| (Processor|CPU)\b', '', self.machine['CPU']).split(', ')[:2]
        version = self.machine['PostgreSQL'].split()[0]
        facts = f"{cpu}, {processors} · PostgreSQL {version} · {rounds:.0f} rounds · {self.machine['Date']}"
        self.parts.append(text(MARGIN, self.y + ROW - 8, facts, 'small'))
        height = self.y + ROW + 4
        path.write_text('\n'.join([
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img"'
            ' aria-labelledby="title desc">', f'<title id="title">{escape(seen, quote=False)}</title>',
            f'<desc id="desc">{escape(" ".join(self.words).rstrip(","), quote=False)}</desc>', f'<style>{STYLE}</style>',
            f'<rect class="paper" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>',
            *self.parts, '</svg>\n']), encoding='utf-8')


def statements(plot):
    """A million values of each generator: uuidv7_fast() takes little more than a C function that
    does nothing, nextval() longer, the others several times as long."""
    shown = [BASELINE.name, DEFAULT.name, INSTANCE.name, DURABLE.name, 'uuidv7_fast(), getrandom', 'uuidv7_fast(), urandom',
             NEXTVAL.name, CORE_V4.name, CORE_V7.name, 'uuid_generate_v7() of pg_uuidv7']
    cases = plot.summary.cases('statements')
    plot.bars('A million values', [(short(case), (case, 1000000, 'ms'), colour(case)) for case in shown if case in cases],
              '{:,.0f} ms')


def requests(plot):
    """One request to each source, by its size: of the cryptographic ones getrandom in the vDSO
    is the fastest for a few bytes, OpenSSL for many; /dev/urandom is the slowest."""
    cases = plot.summary.cases('requests')
    plot.lines('One request to a source', [(case, re.sub(r' \((?!vDSO|system).*', '', case)) for case in cases], 'ns',
               'ns, by bytes per request', (10, 100, 1000), scale=math.log10)


def inserts(plot):
    """A million rows by each key: uuidv7_fast() and bigint take about the same time,
    gen_random_uuid() takes longest and has the largest index."""
    for title, metric, unit, shape in (('A million rows in one statement', 'ms', 1000, '{:.2f} s'),
                                       ('The index of the primary key', 'index bytes', 1e6, '{:.1f} MB')):
        plot.bars(title, [(short(case), (case, 'LOGGED', metric), colour(case)) for case in plot.summary.cases('inserts')],
                  shape, unit)


def first_call(plot):
    """The first statement of a session by function: it takes longest where it has to load a
    library."""
    rows = [(short(case) if how == 'preloaded' else how, (case, how, 'us'), colour(case))
            for case in plot.summary.cases('first call') if "('" not in case
            for how in ('preloaded', 'not preloaded') if how == 'preloaded' or case in (BASELINE.name, DEFAULT.name)]
    plot.bars('First statement of a session', rows, '{:,.0f} µs')


def sessions(plot):
    """Values per second of one session to eight: they grow up to the number of processors;
    uuidv7_fast() stays ahead of nextval() and uuidv7()."""
    plot.lines('Several sessions, in total', [(case, short(case)) for case in plot.summary.cases('sessions')],
               'values per second', 'million per second, by sessions at once', (0, 5, 10), 1e6)


def missed(plot):
    """Rows that a reader misses, in percent: the more writers there are, the more; with the
    watermark none."""
    plot.bars('Rows that a reader by id misses',
              [(f'{number} writers, {case}', (case, number, 'rows missed, %'), OURS if 'watermark' in case else OTHER)
               for number in plot.summary.parameters('missed') for case in plot.summary.cases('missed')], '{:.0f} %')


ALL = {make.__name__.replace('_', ' '): make for make in (statements, requests, inserts, first_call, sessions, missed)}


def draw(experiment, summary, machine, path):
    """Writes the plot; returns what is to be seen in it, as its function says."""
    plot = Plot(summary, machine, experiment)
    ALL[experiment](plot)
    seen = ' '.join(ALL[experiment].__doc__.rstrip('.').split())
    plot.write(path, seen)
    return seen
