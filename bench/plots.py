"""The plots of the report, as SVG, one function each: narrow enough for a telephone.
Whiskers are quartiles."""

import re
import textwrap

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt

from generators import INSTANCE, CORE_V4, CORE_V7, DEFAULT, DURABLE, BASELINE, NEXTVAL

OURS, DARK, GREY, PEER, BROWN = '#1f6f8b', '#0b3c49', '#8c8c8c', '#d98e5f', '#b5651d'
COLOURS = {BASELINE.name: GREY, DEFAULT.name: OURS, INSTANCE.name: DARK, DURABLE.name: '#5f9ea0', NEXTVAL.name: BROWN,
           CORE_V7.name: PEER, CORE_V4.name: '#c9b18c', 'bigint identity': BROWN}
MARKERS = dict(zip(COLOURS, 'Xos^DvPp'))
SHORT = {BASELINE.name: 'no-op C function', 'nothing: SELECT 1': 'SELECT 1', 'uuid_generate_v7() of pg_uuidv7': 'pg_uuidv7',
         CORE_V7.name: 'uuidv7(), built in'}

WIDTH = 6.4         # inches
WHISKERS = {'ecolor': '#333333', 'elinewidth': 1.2, 'capsize': 2.5}

plt.rcParams.update({
    'svg.hashsalt': 'fast_uuid', 'font.size': 12, 'font.family': 'DejaVu Sans', 'figure.facecolor': 'white',
    'savefig.facecolor': 'white', 'figure.constrained_layout.use': True, 'figure.constrained_layout.w_pad': 0.1,
    'figure.constrained_layout.h_pad': 0.08, 'axes.spines.top': False,
    'axes.spines.right': False, 'axes.axisbelow': True, 'axes.titlesize': 13, 'axes.titleweight': 'bold',
    'axes.titlelocation': 'left', 'legend.fontsize': 11, 'legend.frameon': False,
})


def _colour(case):
    if case.startswith('nothing'):
        return GREY
    return COLOURS.get(case, OURS if case.startswith('uuidv7_fast') else PEER)


def _short(case):
    return SHORT.get(case, case.replace('uuidv7_fast(), ', '… '))


class _Series:
    """Medians with their quartiles, each in a unit."""

    def __init__(self, summary, keys, unit=1):
        self.values = [summary.get(*key) / unit for key in keys]
        q1, q3 = ([summary.get(*key, figure) / unit for key in keys] for figure in ('q1', 'q3'))
        self.whiskers = [[value - low for value, low in zip(self.values, q1)],
                         [high - value for value, high in zip(self.values, q3)]]
        self.ends = q3


def _save(figure, path, summary, machine, experiment):
    """With a line that says what was measured where, below."""
    rounds = min(row['rounds'] for key, row in summary.rows.items() if key[0] == experiment)
    cpu, processors = re.sub(r'\((R|TM)\)| (Processor|CPU)\b', '', machine['CPU']).split(', ')[:2]
    facts = [f'{cpu}, {processors}', f"PostgreSQL {machine['PostgreSQL'].split()[0]}", f'{rounds:.0f} rounds', machine.get('Date')]
    figure.supxlabel('\n'.join(textwrap.wrap(' · '.join(filter(None, facts)), 66)), fontsize=10, color='#555555')
    # The labels of the ticks are as wide as they will be only after a first time.
    figure.draw_without_rendering()
    figure.savefig(path, metadata={'Date': None})
    plt.close(figure)


def _bars(axes, labels, series, colours, notes, title):
    """Horizontal bars, the first at the top, each with its note at its end."""
    places = range(len(labels))
    axes.barh(places, series.values, color=colours, height=0.72, xerr=series.whiskers, error_kw=dict(WHISKERS))
    axes.set_yticks(places, labels)
    axes.tick_params(axis='y', length=0)
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    axes.spines[['bottom', 'left']].set_visible(False)
    widest = max(max(series.ends), 1e-9)
    axes.set_xlim(0, widest * (1.08 + 0.042 * max(map(len, notes))))
    for place, end, note in zip(places, series.ends, notes):
        axes.text(end + widest * 0.025, place, note, va='center')
    axes.set_title(title)


def _line(axes, x, series, colour, marker='o', label=None, **style):
    axes.errorbar(x, series.values, yerr=series.whiskers, color=colour, marker=marker, linewidth=2, markersize=6,
                  label=label, **{**WHISKERS, 'ecolor': colour}, **style)


def _finish(figure, axes, title, xlabel, ylabel):
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.set_title(title)
    axes.grid(axis='y', color='#e6e6e6')
    below = -0.72 / figure.get_size_inches()[1] - 0.05
    axes.legend(loc='upper center', bbox_to_anchor=(0.46, below), ncols=2, columnspacing=1)


def statements(summary, machine, path):
    """A million values: the plot that opens the README."""
    shown = [BASELINE.name, DEFAULT.name, INSTANCE.name, 'uuidv7_fast(), xorshift128+', 'uuidv7_fast(), getrandom',
             'uuidv7_fast(), urandom', NEXTVAL.name, CORE_V4.name, CORE_V7.name, 'uuid_generate_v7() of pg_uuidv7']
    shown = [case for case in shown if summary.get('statements', case, 1000000, 'ms')]
    series = _Series(summary, [('statements', case, 1000000, 'ms') for case in shown])
    figure, axes = plt.subplots(figsize=(WIDTH, 0.36 * len(shown) + 1))
    _bars(axes, [_short(case) for case in shown], series, [_colour(case) for case in shown],
          [f'{value:,.0f} ms' for value in series.values], 'A million values')
    axes.axvline(series.values[0], color=GREY, linestyle=':', linewidth=1)
    _save(figure, path, summary, machine, 'statements')


def requests(summary, machine, path):
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2))
    hues = {'openssl': OURS, 'getrandom (vDSO)': '#6a4c93', 'getrandom (system call)': '#c77dba', 'urandom': PEER,
            'xorshift128+': GREY}
    sizes = [int(size) for size in summary.parameters('requests')]
    for case in summary.cases('requests'):
        name = case if case in hues else case.split(' (')[0]
        _line(axes, sizes, _Series(summary, [('requests', case, size, 'ns') for size in sizes]), hues.get(name, 'black'),
              label=name)
    axes.set(xscale='log', yscale='log')
    axes.set_xticks(sizes, map(str, sizes))
    axes.set_yticks([10, 100, 1000], ['10', '100', '1000'])
    axes.minorticks_off()
    _finish(figure, axes, 'A request to each source', 'bytes per request', 'ns')
    _save(figure, path, summary, machine, 'requests')


def inserts(summary, machine, path):
    cases = summary.cases('inserts')
    figure, panels = plt.subplots(2, 1, figsize=(WIDTH, 0.66 * len(cases) + 1.9))
    for axes, metric, unit, title, shape in zip(panels, ('ms', 'index bytes'), (1000, 1e6),
                                                ('A million rows in one statement', 'The index of the primary key'),
                                                ('{:.2f} s', '{:.1f} MB')):
        series = _Series(summary, [('inserts', case, 'LOGGED', metric) for case in cases], unit)
        _bars(axes, [_short(case) for case in cases], series, [_colour(case) for case in cases],
              [shape.format(value) for value in series.values], title)
    _save(figure, path, summary, machine, 'inserts')


def first_call(summary, machine, path):
    cases = summary.cases('first call')
    figure, axes = plt.subplots(figsize=(WIDTH, 0.6 * len(cases) + 1))
    labels, keys, colours = [], [], []
    for case in cases:
        for how in ('preloaded', 'not preloaded'):
            labels.append(_short(case) if how == 'preloaded' else '')
            keys.append(('first call', case, how, 'us'))
            colours.append(_colour(case) if how == 'preloaded' else '#d4d4d4')
    series = _Series(summary, keys)
    _bars(axes, labels, series, colours, [f'{value:,.0f} µs' for value in series.values],
          'First statement of a session\n(grey: library not preloaded)')
    _save(figure, path, summary, machine, 'first call')


def sessions(summary, machine, path):
    figure, axes = plt.subplots(figsize=(WIDTH, 5.2))
    numbers = [int(number) for number in summary.parameters('sessions')]
    for case in summary.cases('sessions'):
        series = _Series(summary, [('sessions', case, n, 'values per second') for n in numbers], 1e6)
        _line(axes, numbers, series, _colour(case), MARKERS.get(case, 'o'), _short(case))
    axes.set_ylim(0, axes.get_ylim()[1] * 1.1)
    axes.set_xticks(numbers)
    processors = re.search(r'(\d+) processors?', machine['CPU'])
    if processors:
        axes.axvline(int(processors[1]), color='#555555', linestyle='--', linewidth=1)
        axes.text(int(processors[1]) + 0.1, axes.get_ylim()[1], f'{processors[1]} processors', va='top', fontsize=10)
    _finish(figure, axes, 'Several sessions, in total', 'sessions at once', 'million per second')
    _save(figure, path, summary, machine, 'sessions')


def clock_lead(summary, machine, path):
    figure, axes = plt.subplots(figsize=(WIDTH, 4.2))
    counts = [int(count) for count in summary.parameters('clock lead')]
    for case in summary.cases('clock lead'):
        if case != INSTANCE.name:
            series = _Series(summary, [('clock lead', case, n, 'us') for n in counts], 1e6)
            _line(axes, [n / 1e6 for n in counts], series, _colour(case), MARKERS.get(case, 'o'), _short(case))
    axes.set_ylim(bottom=0)
    _finish(figure, axes, 'Ahead of the clock: a simulation,\nRAND_bytes replaced by one without cost', 'million values',
            'seconds')
    _save(figure, path, summary, machine, 'clock lead')


def clock_lead_sets(summary, machine, path):
    figure, axes = plt.subplots(figsize=(WIDTH, 4.6))
    numbers = [int(number) for number in summary.parameters('clock lead sets')]
    for case, colour, marker in zip(summary.cases('clock lead sets'), (OURS, DARK, PEER), 'osv'):
        series = _Series(summary, [('clock lead sets', case, n, 'us') for n in numbers], 1000)
        _line(axes, numbers, series, colour, marker, case)
    axes.set_ylim(bottom=0)
    axes.set_xticks(numbers)
    _finish(figure, axes, 'Sets and arrays ahead of the clock', 'sets, or sessions with arrays', 'ms, at most')
    _save(figure, path, summary, machine, 'clock lead sets')


def missed(summary, machine, path):
    cases, writers = summary.cases('missed'), summary.parameters('missed')
    keys = [('missed', case, number) for number in writers for case in cases]
    series = _Series(summary, [(*key, 'rows missed') for key in keys])
    figure, axes = plt.subplots(figsize=(WIDTH, 0.4 * len(keys) + 1))
    _bars(axes, [f'{number} writers, {case}' for _, case, number in keys], series,
          [PEER if case == cases[0] else OURS for _, case, _ in keys],
          [f"{value:,.0f} of {summary.get(*key, 'rows committed'):,.0f}" for value, key in zip(series.values, keys)],
          'Rows that a reader by id misses')
    _save(figure, path, summary, machine, 'missed')


ALL = [statements, requests, inserts, first_call, sessions, clock_lead, clock_lead_sets, missed]
