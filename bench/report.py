"""Writes report.md and the plots from the results.csv and machine.json of a
directory, and prints the tables: python3 bench/report.py DIRECTORY"""

import re
import sys
from pathlib import Path

import machine
import plots
from generators import CORE_V7, CRYPTOGRAPHIC, DEFAULT, DURABLE, NEXTVAL
from results import Summary, figure, two_digits

MILLION = '1000000'
TITLES = {
    'statements': 'A million values',
    'requests': 'Requests to the sources',
    'bulk': 'In bulk',
    'inserts': 'A million rows',
    'single rows': 'One row per transaction',
    'serializable': 'Serializable transactions',
    'versions': 'Two versions in one index',
    'first call': 'First-call cost',
    'memory': 'Memory of a session',
    'growth': 'From a thousand values to ten million',
    'sessions': 'From one session to eight',
    'clock lead': 'Ahead of the clock',
    'clock lead sets': 'Sets and arrays, ahead of the clock',
    'watermark': 'The watermark',
    'missed': 'What a reader misses',
    'freshness': 'How far the watermark is behind',
    'woken': 'A reader that is woken',
    'upper_bound': 'The upper bound of durable order',
    'clock': 'Two clocks',
}
NOTES = {
    'statements': '`SELECT count(f()) FROM generate_series(1, 1000000)`, server time. Unbuffered: `fast_uuid.buffer_size = 0`.',
    'requests': 'One request to a source, without buffering, by `fast_uuid_benchmark()`.',
    'bulk': 'A million values in one call.',
    'inserts': '`INSERT INTO t (n) SELECT generate_series(1, 1000000)` into an empty table `(id PRIMARY KEY DEFAULT ..., '
               'n integer)`, after a checkpoint.',
    'single rows': 'pgbench, prepared, one row per transaction, `synchronous_commit = off`: with it on, the disk is measured.',
    'serializable': 'Transactions that fail (40001) under SERIALIZABLE, in percent, of eight sessions: each inserts a row '
                    'into a table with 100,000 rows, and does what the row of this table says. `synchronous_commit = off`.',
    'versions': 'The index of a primary key with a million ids, inserted by one statement or two.',
    'first call': 'Client time of the first statement after connecting, over a Unix socket; then of the same statement '
                   'again, and of connecting. One server has preloaded the libraries, the other not.',
    'memory': 'Private memory of a server process, kB (`Private_Dirty` of its private mappings in `/proc/PID/smaps`), with the '
              'library preloaded. Before the first call the session has counted a million `now()`.',
    'growth': 'Server time of a statement, by the number of values in it.',
    'sessions': 'All sessions in total; `SELECT count(f()) FROM generate_series(1, 250000)` over and over.',
    'clock lead': 'The time in the last value less the clock just after it, on a server whose `RAND_bytes` has been replaced '
                  'by one that costs nothing (`bench/fast_random.c`), the same for every generator. 0: not ahead.',
    'clock lead sets': 'How far rows are ahead of the clock at most, microseconds. Sets: `SELECT uuidv7_fast_set(100000), ...`, '
                       'several in one target list. Arrays: the last elements of `uuidv7_fast_array(100000)`, in several '
                       'sessions at once under instance order.',
    'watermark': 'A call of `uuidv7_fast_watermark()` in a PL/pgSQL loop, less one of a C function that does nothing; by the '
                 'number of sessions with a transaction in flight that has generated under instance order.',
    'missed': 'Writers insert one row per transaction under instance order, and commit after a random delay of up to 5 ms; a '
              'reader asks again and again for the rows after the last one that it has seen, another for those of them below '
              '`uuidv7_fast_watermark()`, in one statement.',
    'freshness': 'Microseconds, in the median, and at most in 90 % and 99 % of the statements; 0: not behind. Eight clients '
                 'insert and commit single rows under instance order as fast as they can; a reader asks every 10 ms for the '
                 'rows after its last one and below `uuidv7_fast_watermark()`: by a prepared statement with a generic plan, or '
                 'by one that is planned anew, where the planner calls the function as well; just after a call in a statement '
                 'of its own, or without one. Where a transaction has ended between snapshot and call, the bound is that of an '
                 'earlier call. Behind its start: behind `statement_timestamp()`; a transaction in flight holds it back too.',
    'woken': 'One reader asks for the rows after its last one and below `uuidv7_fast_watermark()`, again until there are none; then it '
             'sleeps, is woken by NOTIFY, which each writer sends with its row, or calls `uuidv7_fast_wait()`. Latency: from the '
             'insertion of a row to the statement that delivers it. Of another table: transactions that generate an id and '
             'write nothing. `synchronous_commit = off`, unless it is named.',
    'upper_bound': 'What two sessions write that generate under durable order without a pause, beginning at a checkpoint.',
    'clock': 'Linked with no server. The interpolated clock is the one of `bench/interpolated_clock.h`, which is not part '
             'of the extension; the simulated cases drive it with a counter and a clock made up for the purpose.',
}


# Those whose ratios and differences are taken within each round.
PAIRS = ('statements', 'inserts', 'first call')
PAIRS_NOTE = ('Ratios and differences are medians of pairs, each of one round, so they need not be the quotient of the medians '
              'shown.')


def table(head, rows):
    lines = ['| ' + ' | '.join(head) + ' |', '| --- ' + '| ---: ' * (len(head) - 1) + '|']
    lines += ['| ' + ' | '.join(row) + ' |' for row in rows]
    return '\n'.join(lines)


def aligned(made):
    """A table, for a terminal."""
    rows = [[cell.strip() for cell in line.strip('|').split('|')] for line in re.sub('[`*]', '', made).splitlines()]
    rows = rows[:1] + rows[2:]
    widths = [max(map(len, column)) for column in zip(*rows)]
    return '\n'.join('  '.join([row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))])
                     for row in rows)


def shown(summary, *key):
    """A median, in as many digits as its quartiles leave it: two or three."""
    median, q1, q3 = (summary.get(*key, column) for column in ('median', 'q1', 'q3'))
    if median is None:
        return ''
    return (two_digits if q3 - q1 > abs(median) / 20 else figure)(median)


def spread(summary, *key):
    """Median, and in brackets the quartiles."""
    if summary.get(*key) is None:
        return ''
    return f"{figure(summary.get(*key))} ({figure(summary.get(*key, 'q1'))} to {figure(summary.get(*key, 'q3'))})"


def statements(summary):
    return table(['generator', 'ms (quartiles)', 'times the baseline', 'ns per value above it', 'times `uuidv7_fast()`'], [
        [case, spread(summary, 'statements', case, MILLION, 'ms'),
         *(shown(summary, 'statements', case, MILLION, metric)
           for metric in ('times the baseline', 'ns per value above the baseline', 'times uuidv7_fast()'))]
        for case in summary.cases('statements')])


def by_parameter(experiment, metric, unit, label=str, digits=None):
    """A table with a column for each parameter."""
    def cell(summary, *key):
        return digits(summary.get(*key)) if digits and summary.get(*key) is not None else shown(summary, *key)

    def made(summary):
        parameters = summary.parameters(experiment)
        return table([unit, *(label(p) for p in parameters)], [
            [case, *(cell(summary, experiment, case, p, metric) for p in parameters)]
            for case in summary.cases(experiment)])
    return made


def requests(summary):
    sizes = summary.parameters('requests')
    return table(['ns by bytes per request', *sizes], [
        *([case, *(shown(summary, 'requests', case, size, 'ns') for size in sizes)]
          for case in summary.cases('requests'))])


def bulk(summary):
    return table(['call', 'ms (quartiles)', 'ns per value'], [
        [f'`{case}`', spread(summary, 'bulk', case, MILLION, 'ms'), shown(summary, 'bulk', case, MILLION, 'ms')]
        for case in summary.cases('bulk')])


def inserts(summary):
    return table(['key', 'ms (quartiles)', 'times `bigint`', 'ms, unlogged', 'times `bigint`, unlogged',
                  'WAL, MB', 'index, MB', 'leaves full, %'], [
        [case, spread(summary, 'inserts', case, 'LOGGED', 'ms'),
         shown(summary, 'inserts', case, 'LOGGED', 'times bigint identity'),
         shown(summary, 'inserts', case, 'UNLOGGED', 'ms'),
         shown(summary, 'inserts', case, 'UNLOGGED', 'times bigint identity'),
         figure(summary.get('inserts', case, 'LOGGED', 'WAL bytes') / 1e6),
         figure(summary.get('inserts', case, 'LOGGED', 'index bytes') / 1e6),
         shown(summary, 'inserts', case, 'LOGGED', 'leaf density, %')]
        for case in summary.cases('inserts')])


def first_call(summary):
    return table(['statement', 'us, preloaded (quartiles)', 'times `uuidv7()`', 'us, not preloaded (quartiles)',
                  'us, the same again', 'us to connect, preloaded', 'us to connect, not preloaded'], [
        [case, spread(summary, 'first call', case, 'preloaded', 'us'),
         shown(summary, 'first call', case, 'preloaded', 'times uuidv7()'),
         spread(summary, 'first call', case, 'not preloaded', 'us'),
         shown(summary, 'first call', case, 'preloaded', 'second us'),
         shown(summary, 'first call', case, 'preloaded', 'connect us'),
         shown(summary, 'first call', case, 'not preloaded', 'connect us')]
        for case in summary.cases('first call')])


def upper_bound(summary):
    metrics = ('flushes per second', 'WAL bytes per second')
    return table(['order', *metrics], [
        [case, *(shown(summary, 'upper_bound', case, 2, metric) for metric in metrics)]
        for case in summary.cases('upper_bound')])


def woken(summary):
    metrics = ('latency p50, ms', 'latency p99, ms', 'reads per second', 'transactions per second')
    return table(['load', 'reader', *metrics], [
        [load, case, *(shown(summary, 'woken', case, load, metric) for metric in metrics)]
        for load in summary.parameters('woken') for case in summary.cases('woken')])


def versions(summary):
    return table(['ids', 'index, MB', 'leaves full, %'], [
        [case, figure(summary.get('versions', case, MILLION, 'index bytes') / 1e6),
         shown(summary, 'versions', case, MILLION, 'leaf density, %')]
        for case in summary.cases('versions')])


def missed(summary):
    return table(['reader', 'writers', 'rows committed', 'rows missed', 'at most'], [
        [case, number, *(f"{summary.get('missed', case, number, metric, column):,.0f}" for metric, column in (
            ('rows committed', 'median'), ('rows missed', 'median'), ('rows missed', 'max')))]
        for case in summary.cases('missed') for number in summary.parameters('missed')])


def program(name):
    def made(summary):
        return table(['what', 'figure', 'unit'], [
            [case, figure(row['median']), unit]
            for (experiment, case, _, unit), row in summary.rows.items() if experiment == name])
    return made


def thousands(parameter):
    return f'{int(parameter):,}'


TABLES = {
    'statements': statements,
    'requests': requests,
    'bulk': bulk,
    'inserts': inserts,
    'single rows': by_parameter('single rows', 'rows per second', 'rows per second by clients'),
    'serializable': by_parameter('serializable', 'failed, %', '% that fail'),
    'versions': versions,
    'first call': first_call,
    'memory': by_parameter('memory', 'kB', 'kB', digits=lambda kb: f'{kb:,.0f}'),
    'growth': by_parameter('growth', 'ms', 'ms by values', thousands),
    'sessions': by_parameter('sessions', 'values per second', 'values per second by sessions'),
    'clock lead': by_parameter('clock lead', 'us', 'us by values generated', thousands),
    'clock lead sets': by_parameter('clock lead sets', 'us', 'us by sets, or sessions'),
    'watermark': by_parameter('watermark', 'us', 'us by transactions in flight'),
    'missed': missed,
    'freshness': by_parameter('freshness', 'us', 'us'),
    'woken': woken,
    'upper_bound': upper_bound,
    'clock': program('clock'),
}


def goals(summary):
    """What the project wants to hold, and what this run says of it."""
    core = summary.get('statements', CORE_V7.name, MILLION, 'times uuidv7_fast()')
    strong = [summary.get('statements', f'uuidv7_fast(), {source}', MILLION, 'ms') for source in CRYPTOGRAPHIC]
    slowest = max(strong + [summary.get('statements', DEFAULT.name, MILLION, 'ms')])
    yes = {True: 'yes', False: '**no**'}
    rows = [
        ('default settings, times the baseline', 'at most 1.25',
         summary.get('statements', DEFAULT.name, MILLION, 'times the baseline'), lambda v: v <= 1.25),
        ('`nextval()`, times default settings', 'at least 2.1',
         summary.get('statements', NEXTVAL.name, MILLION, 'times uuidv7_fast()'), lambda v: v >= 2.1),
        ('a million rows, times `bigint` identity', 'at most 0.92',
         summary.get('inserts', DEFAULT.name, 'LOGGED', 'times bigint identity'), lambda v: v <= 0.92),
        ('a million rows, times `bigint` identity, unlogged', 'at most 0.92',
         summary.get('inserts', DEFAULT.name, 'UNLOGGED', 'times bigint identity'), lambda v: v <= 0.92),
        ('bulk, ns per value', 'at most 12',
         summary.get('bulk', 'uuidv7_fast_array(1000000)', MILLION, 'ms'), lambda v: v <= 12),
        ('ahead of the clock after ten million values, us', '0',
         summary.get('clock lead', DEFAULT.name, 10000000, 'us', 'max'), lambda v: v == 0),
    ]
    durable = summary.get('statements', DURABLE.name, MILLION, 'times instance order')
    if durable:
        rows.append(('durable order, times instance order', 'at most 1.02', durable, lambda v: v <= 1.02))
    if core:
        rows[1:1] = [
            ('`uuidv7()` of PostgreSQL, times default settings', 'at least 4.3', core, lambda v: v >= 4.3),
            ('the same, times the slowest strong source', 'above 1',
             summary.get('statements', CORE_V7.name, MILLION, 'ms') / slowest, lambda v: v > 1)]
        rows += [
            ('first call with preloading, from connecting on, times that of `uuidv7()`', 'at most 1.10',
             summary.get('first call', DEFAULT.name, 'preloaded', 'times uuidv7(), from connecting on'),
             lambda v: v <= 1.10),
            ('the same, the first statement alone', 'at most 1.10',
             summary.get('first call', DEFAULT.name, 'preloaded', 'times uuidv7()'), lambda v: v <= 1.10)]
    return table(['goal', 'wanted', 'measured', 'reached'],
                 [[what, wanted, figure(value), yes[holds(value)]] for what, wanted, value, holds in rows])


def main(directory):
    summary = Summary(directory / 'results.csv')
    described = machine.read(directory / 'machine.json')
    measured = [name for name in TABLES if summary.cases(name)]
    parts = ['# fast_uuid, measured',
             'Written by `script/bench`. All figures are medians of one run; '
             '[Performance](../../doc/performance.md) explains them.',
             table(['', 'of this run'], [[name, value] for name, value in described.items()])]
    drawn = {plot.__name__.replace('_', ' '): plot for plot in plots.ALL}
    for name in measured:
        parts += [f'## {TITLES[name]}', NOTES[name] + (f' {PAIRS_NOTE}' if name in PAIRS else '')]
        if name in drawn:
            path = directory / f"{name.replace(' ', '_')}.svg"
            drawn[name](summary, described, path)
            parts.append(f'![{TITLES[name]}]({path.name})')
        parts.append(TABLES[name](summary))
    if {'statements', 'inserts', 'bulk', 'clock lead', 'first call'} <= set(measured):
        parts += ['## Goals', goals(summary)]
    (directory / 'report.md').write_text('\n\n'.join(parts) + '\n', encoding='utf-8')
    for part in parts:
        if part.startswith('## '):
            print(f'\n{part[3:]}\n')
        elif part.startswith('|'):
            print(aligned(part))


if __name__ == '__main__':
    main(Path(sys.argv[1]))
