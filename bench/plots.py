"""The plots of the report, as SVG, one function each."""

import matplotlib

matplotlib.use('svg')
import matplotlib.pyplot as plt

from generators import INSTANCE, CORE_V4, CORE_V7, DEFAULT, BASELINE, NEXTVAL
from results import published

OURS, PALE, BASELINE_COLOUR, PEER = '#1f6f8b', '#8fbccb', '#8c8c8c', '#d98e5f'
COLOURS = {BASELINE.name: BASELINE_COLOUR, DEFAULT.name: OURS, INSTANCE.name: '#0b3c49', NEXTVAL.name: '#b5651d',
           CORE_V7.name: PEER, CORE_V4.name: '#c9b18c', 'bigint identity': '#b5651d'}
MARKERS = dict(zip(COLOURS, 'Xos^Dvp'))

plt.rcParams.update({
    'svg.hashsalt': 'fast_uuid', 'font.size': 11, 'font.family': 'DejaVu Sans',
    'axes.spines.top': False, 'axes.spines.right': False, 'axes.axisbelow': True,
    'axes.titlesize': 12, 'axes.titleweight': 'bold', 'axes.titlelocation': 'left',
})


def _colour(case):
    if case.startswith('nothing'):
        return BASELINE_COLOUR
    if case in COLOURS:
        return COLOURS[case]
    return OURS if case.startswith('uuidv7_fast') else PEER


def _save(figure, path):
    figure.savefig(path, bbox_inches='tight', metadata={'Date': None})
    plt.close(figure)


def _bars(axes, labels, values, colours, notes, title):
    """Horizontal bars, the first at the top, each with its note at its end."""
    places = range(len(labels))
    axes.barh(places, values, color=colours, height=0.72)
    axes.set_yticks(places, labels)
    axes.tick_params(axis='y', length=0)
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    axes.spines[['bottom', 'left']].set_visible(False)
    axes.set_xlim(0, max(values) * 1.18)
    for place, value, note in zip(places, values, notes):
        axes.text(value + max(values) * 0.012, place, note, va='center')
    axes.set_title(title, pad=10)


def _line(axes, x, y, case, label=None):
    axes.plot(x, y, color=_colour(case), marker=MARKERS.get(case, 'o'), linewidth=2, markersize=6, label=label or case)


def _legend(axes):
    """To the right of the plot, where it covers nothing."""
    axes.legend(frameon=False, fontsize=9.5, loc='center left', bbox_to_anchor=(1.01, 0.5))
    axes.grid(axis='y', color='#e6e6e6')


def _lines(summary, experiment, value, title, xlabel, ylabel):
    """A line for each case over the experiment's parameter; value(case, parameter) is its height."""
    figure, axes = plt.subplots(figsize=(8, 4.4))
    parameters = [int(p) for p in summary.parameters(experiment)]
    for case in summary.cases(experiment):
        _line(axes, parameters, [value(case, p) for p in parameters], case)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.set_ylim(bottom=0)
    axes.set_title(title)
    _legend(axes)
    return figure, axes, parameters


def statements(summary, path):
    """A million values: the plot that opens the README."""
    shown = [BASELINE.name, DEFAULT.name, INSTANCE.name, 'uuidv7_fast(), xorshift128+', 'uuidv7_fast(), getrandom',
             'uuidv7_fast(), urandom', NEXTVAL.name, CORE_V4.name, CORE_V7.name, 'uuid_generate_v7() of pg_uuidv7']
    labels = {DEFAULT.name: 'uuidv7_fast(), default: openssl'}
    shown = [case for case in shown if summary.get('statements', case, 1000000, 'ms')]
    ms = [summary.get('statements', case, 1000000, 'ms') for case in shown]
    notes = [f"{value:,.0f} ms   {summary.get('statements', case, 1000000, 'times the baseline'):.2f}×"
             for case, value in zip(shown, ms)]
    figure, axes = plt.subplots(figsize=(9.5, 0.42 * len(shown) + 0.9))
    _bars(axes, [labels.get(case, case) for case in shown], ms, [_colour(case) for case in shown], notes,
          'A million values: SELECT count(f()) FROM generate_series(1, 1000000)')
    axes.axvline(ms[0], color=BASELINE_COLOUR, linestyle=':', linewidth=1)
    _save(figure, path)


def requests(summary, path):
    figure, axes = plt.subplots(figsize=(9, 4.8))
    hues = {'openssl': OURS, 'OpenSSL': OURS, 'getrandom (vDSO)': '#6a4c93', 'getrandom (system call)': '#c77dba',
            'urandom': PEER, '/dev/urandom': PEER, 'xorshift128+': BASELINE_COLOUR}
    for case in summary.cases('requests'):
        sizes = [int(p) for p in summary.parameters('requests')]
        hue = hues.get(case, hues.get(case.split(' (')[0], 'black'))
        axes.plot(sizes, [summary.get('requests', case, size, 'ns') for size in sizes],
                  color=hue, marker='o', linewidth=2, label=case)
    for source, ns in published().items():
        axes.plot(list(ns), list(ns.values()), color=hues[source], linestyle=':', linewidth=1.4, label=f'{source}, published')
    axes.set(xscale='log', yscale='log', xlabel='bytes per request', ylabel='ns per request')
    axes.set_xticks([16, 64, 256, 1024], ['16', '64', '256', '1024'])
    axes.minorticks_off()
    axes.set_title('The cost of a request to each source')
    _legend(axes)
    _save(figure, path)


def inserts(summary, path):
    cases = summary.cases('inserts')
    panels = [('ms', 'LOGGED', 1000, 's', 'Time', '{:.2f}'), ('WAL bytes', 'LOGGED', 1e6, 'MB', 'WAL', '{:,.0f}'),
              ('index bytes', 'LOGGED', 1e6, 'MB', 'Index', '{:,.0f}')]
    figure, all_axes = plt.subplots(1, 3, figsize=(12, 2.9), sharey=True)
    for axes, (metric, parameter, unit, name, title, shape) in zip(all_axes, panels):
        values = [summary.get('inserts', case, parameter, metric) / unit for case in cases]
        notes = [shape.format(value) + ' ' + name for value in values]
        if metric == 'index bytes':
            notes = [f"{note}, {summary.get('inserts', case, parameter, 'leaf density, %'):.0f} % full"
                     for note, case in zip(notes, cases)]
        _bars(axes, cases, values, [_colour(case) for case in cases], notes, title)
        axes.set_xlim(0, max(values) * 1.45)
        # the panels share their axis: each call has turned it round
        axes.set_ylim(len(cases) - 0.5, -0.5)
    figure.suptitle('A million rows in one statement, the primary key by default', x=0.02, ha='left', y=1.06,
                    fontweight='bold')
    _save(figure, path)


def single_rows(summary, path):
    cases = summary.cases('single rows')
    clients = summary.parameters('single rows')
    figure, axes = plt.subplots(figsize=(9, 3.8))
    width = 0.8 / len(cases)
    for i, case in enumerate(cases):
        values = [summary.get('single rows', case, c, 'rows per second') / 1000 for c in clients]
        axes.bar([place + i * width for place in range(len(clients))], values, width * 0.92,
                 color=_colour(case), label=case)
    axes.set_xticks([place + 0.4 - width / 2 for place in range(len(clients))],
                    [f'{c} client' + ('s' if c != '1' else '') for c in clients])
    axes.tick_params(axis='x', length=0)
    axes.set_ylabel('thousand rows per second')
    axes.set_title('One row per transaction (pgbench, synchronous_commit = off)')
    _legend(axes)
    _save(figure, path)


def first_call(summary, path):
    cases = summary.cases('first call')
    figure, axes = plt.subplots(figsize=(9, 4.4))
    for offset, how, strong in ((-0.19, 'preloaded', 1.0), (0.19, 'not preloaded', 0.45)):
        values = [summary.get('first call', case, how, 'us') for case in cases]
        places = [place + offset for place in range(len(cases))]
        axes.barh(places, values, 0.36, color=[_colour(case) for case in cases], alpha=strong)
        for place, value in zip(places, values):
            axes.text(value + 15, place, f'{value:,.0f} µs' + ('' if strong == 1 else ', not preloaded'),
                      va='center', fontsize=9)
    axes.set_yticks(range(len(cases)), cases)
    axes.tick_params(axis='y', length=0)
    axes.invert_yaxis()
    axes.xaxis.set_visible(False)
    axes.spines[['bottom', 'left']].set_visible(False)
    axes.set_title('The first statement of a new session')
    _save(figure, path)


def growth(summary, path):
    figure, axes, _ = _lines(
        summary, 'growth', lambda case, n: summary.get('growth', case, n, 'ms') * 1e6 / n,
        'How the cost grows with the number of values', 'values in one statement', 'ns per value, with the statement')
    axes.set_xscale('log')
    _save(figure, path)


def sessions(summary, path):
    figure, axes, clients = _lines(
        summary, 'sessions', lambda case, n: summary.get('sessions', case, n, 'values per second') / 1e6,
        'Throughput by the number of sessions', 'sessions at once', 'million values per second, in total')
    axes.set_xticks(clients)
    _save(figure, path)


def clock_lead(summary, path):
    figure, axes = plt.subplots(figsize=(8, 3.6))
    counts = [int(p) for p in summary.parameters('clock lead')]
    for case in summary.cases('clock lead'):
        if case != INSTANCE.name:
            values = [0] + [summary.get('clock lead', case, n, 'us') / 1e6 for n in counts]
            _line(axes, [0] + [n / 1e6 for n in counts], values, case)
            axes.text(counts[-1] / 1e6 + 0.2, values[-1], f'{case}: {values[-1]:.2f} s', va='center')
    axes.set(xlabel='million values, as fast as possible', ylabel='seconds ahead of the clock')
    axes.grid(axis='y', color='#e6e6e6')
    axes.set_title('How far the embedded time is ahead of the clock, with a fast random source')
    _save(figure, path)


ALL = [statements, requests, inserts, single_rows, first_call, growth, sessions, clock_lead]
