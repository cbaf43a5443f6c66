"""Writes report.md and the plots from the results.csv and machine.json of a
directory, and prints the tables: python3 bench/report.py DIRECTORY"""

import re
import sys
from pathlib import Path

import machine
import plots
from generators import CORE_V7, CRYPTOGRAPHIC, DEFAULT, FEED, IDENTITY, NEXTVAL
from results import Summary, figure, two_digits

MILLION = '1000000'


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


def shown(row):
    """A median, in as many digits as its quartiles leave it: two or three."""
    return (two_digits if row['q3'] - row['q1'] > abs(row['median']) / 20 else figure)(row['median'])


def spread(row):
    """Median, and in brackets the quartiles."""
    return f"{figure(row['median'])} ({figure(row['q1'])} to {figure(row['q3'])})"


def whole(row):
    return f"{row['median']:,.0f}"


def megabytes(row):
    return figure(row['median'] / 1e6)


def cell(summary, how, *key):
    row = summary.rows.get(key)
    return how(row) if row else ''


def by_case(first, *columns):
    """A row per case; a column is a head, a parameter, a metric, and how it is shown."""
    def made(summary, experiment):
        return table([first, *(head for head, *_ in columns)],
                     [[case, *(cell(summary, how, experiment, case, parameter, metric) for _, parameter, metric, how in columns)]
                      for case in summary.cases(experiment)])
    return made


def by_parameter(first, metric, how=shown):
    """A row per case, a column per parameter."""
    def made(summary, experiment):
        parameters = summary.parameters(experiment)
        return table([first, *parameters], [[case, *(cell(summary, how, experiment, case, p, metric) for p in parameters)]
                                            for case in summary.cases(experiment)])
    return made


def by_load(*metrics):
    """A row per parameter and case, a column per metric."""
    def made(summary, experiment):
        return table(['load', 'reader', *metrics],
                     [[load, case, *(cell(summary, shown, experiment, case, load, metric) for metric in metrics)]
                      for load in summary.parameters(experiment) for case in summary.cases(experiment)])
    return made


PAIRS = ' Ratios and differences are medians of pairs, each of one round, so they need not be the quotient of the medians shown.'

# Title, note, table.
SECTIONS = {
    'statements': (
        'A million values',
        '`SELECT count(f()) FROM generate_series(1, 1000000)`, server time. Unbuffered: `fast_uuid.buffer_size = 0`.' + PAIRS,
        by_case('generator', ('ms (quartiles)', MILLION, 'ms', spread),
                ('times the baseline', MILLION, 'times the baseline', shown),
                ('ns per value above it', MILLION, 'ns per value above the baseline', shown),
                ('times `uuidv7_fast()`', MILLION, 'times uuidv7_fast()', shown))),
    'requests': (
        'Requests to the sources',
        'One request to a source, without buffering, by `fast_uuid_benchmark()`.',
        by_parameter('ns by bytes per request', 'ns')),
    'bulk': (
        'In bulk',
        'A million values in one call, so that milliseconds are nanoseconds per value.',
        by_case('call', ('ms (quartiles)', MILLION, 'ms', spread))),
    'inserts': (
        'A million rows',
        '`INSERT INTO t (n) SELECT generate_series(1, 1000000)` into an empty table `(id PRIMARY KEY DEFAULT ..., n integer)`, '
        'after a checkpoint. Guarded: with a trigger of `uuidv7_feed_guard()`.' + PAIRS,
        by_case('key', ('ms (quartiles)', 'LOGGED', 'ms', spread), ('times `bigint`', 'LOGGED', 'times bigint identity', shown),
                ('ms, unlogged', 'UNLOGGED', 'ms', shown),
                ('times `bigint`, unlogged', 'UNLOGGED', 'times bigint identity', shown),
                ('WAL, MB', 'LOGGED', 'WAL bytes', megabytes), ('index, MB', 'LOGGED', 'index bytes', megabytes),
                ('leaves full, %', 'LOGGED', 'leaf density, %', shown))),
    'single rows': (
        'One row per transaction',
        'pgbench, prepared, one row per transaction, `synchronous_commit = off`: with it on, the disk is measured.',
        by_parameter('rows per second by clients', 'rows per second')),
    'serializable': (
        'Serializable transactions',
        'Transactions that fail (40001) under SERIALIZABLE, in percent, of eight sessions: each inserts a row into a table with '
        '100,000 rows, and does what the row of this table says. `synchronous_commit = off`.',
        by_parameter('% that fail', 'failed, %')),
    'versions': (
        'Two versions in one index',
        'The index of a primary key with a million ids, inserted by one statement or two.',
        by_case('ids', ('index, MB', MILLION, 'index bytes', megabytes), ('leaves full, %', MILLION, 'leaf density, %', shown))),
    'first call': (
        'First-call cost',
        'Client time of the first statement after connecting, over a Unix socket; then of the same statement again, and of '
        'connecting. One server has preloaded the libraries, the other not.' + PAIRS,
        by_case('statement', ('us, preloaded (quartiles)', 'preloaded', 'us', spread),
                ('times `uuidv7()`', 'preloaded', 'times uuidv7()', shown),
                ('us, not preloaded (quartiles)', 'not preloaded', 'us', spread),
                ('us, the same again', 'preloaded', 'second us', shown),
                ('us to connect, preloaded', 'preloaded', 'connect us', shown),
                ('us to connect, not preloaded', 'not preloaded', 'connect us', shown))),
    'memory': (
        'Memory of a session',
        'Private memory of a server process, kB (`Private_Dirty` of its private mappings in `/proc/PID/smaps`), with the library '
        'preloaded. Before the first call the session has counted a million `now()`.',
        by_parameter('kB', 'kB', whole)),
    'sessions': (
        'From one session to eight',
        'All sessions in total; `SELECT count(f()) FROM generate_series(1, 250000)` over and over.',
        by_parameter('values per second by sessions', 'values per second')),
    'watermark': (
        'The watermark',
        'A transaction that calls `uuidv7_feed_watermark()`, in a PL/pgSQL loop, less one that calls a C function that does '
        'nothing; by the number of sessions with a transaction in flight that has generated a feed id.',
        by_parameter('us by transactions in flight', 'us')),
    'missed': (
        'What a reader misses',
        'Writers insert one row per transaction into a feed, and commit after a random delay of up to 5 ms; a reader '
        'asks again and again for the rows after the last one that it has seen, another for those of them below '
        '`uuidv7_feed_watermark()`, in one statement.',
        by_parameter('% missed by writers', 'rows missed, %')),
    'freshness': (
        'How far the watermark is behind',
        'Microseconds, in the median, and at most in 90 % and 99 % of the statements; 0: not behind. Eight clients insert and '
        'commit single rows of a feed as fast as they can; a reader asks every 10 ms for the rows after its last one '
        'and below `uuidv7_feed_watermark()`: by a prepared statement with a generic plan, or by one that is planned anew, where '
        'the planner calls the function as well; just after a call in a statement of its own, or without one. Where a '
        'transaction has ended between snapshot and call, the bound is that of an earlier call. Behind its start: behind '
        '`statement_timestamp()`; a transaction in flight holds it back too.',
        by_parameter('us', 'us')),
    'woken': (
        'A reader that is woken',
        'One reader asks for the rows after its last one and below `uuidv7_feed_watermark()`, again until there are none; then '
        'it sleeps, is woken by NOTIFY, which each writer sends with its row, or calls `uuidv7_feed_wait()`. Latency: from the '
        'insertion of a row to the statement that delivers it. Of another table: transactions that generate an id and write '
        'nothing. `synchronous_commit = off`, unless it is named.',
        by_load('latency p50, ms', 'latency p99, ms', 'reads per second', 'transactions per second')),
    'upper_bound': (
        'The upper bound',
        'What two sessions write that generate feed ids without a pause, beginning at a checkpoint.',
        by_case('function', *((metric, '2', metric, shown) for metric in ('flushes per second', 'WAL bytes per second')))),
}

# What the project wants to hold: at least or at most so much, of which key.
TIMES = ('statements', CORE_V7.name, MILLION, 'times uuidv7_fast()')
GOALS = [
    ('default settings, times the baseline', 'at most', 1.25, ('statements', DEFAULT.name, MILLION, 'times the baseline')),
    ('`uuidv7()` of PostgreSQL, times default settings', 'at least', 4.3, TIMES),
    *((f'the same, times {source}', 'at least', 1, TIMES, ('statements', f'uuidv7_fast(), {source}', *TIMES[2:]))
      for source in CRYPTOGRAPHIC),
    ('`nextval()`, times default settings', 'at least', 2.1, ('statements', NEXTVAL.name, *TIMES[2:])),
    ('a million rows, times `bigint` identity', 'at most', 0.92, ('inserts', DEFAULT.name, 'LOGGED', f'times {IDENTITY}')),
    ('a million rows, times `bigint` identity, unlogged', 'at most', 0.92,
     ('inserts', DEFAULT.name, 'UNLOGGED', f'times {IDENTITY}')),
    ('bulk, ns per value', 'at most', 12, ('bulk', 'uuidv7_fast_array(1000000)', MILLION, 'ms')),
    ('`uuidv7_feed_id()`, times default settings', 'at most', 1.06, ('statements', FEED.name, *TIMES[2:])),
    ('first call with preloading, from connecting on, times that of `uuidv7()`', 'at most', 1.1,
     ('first call', DEFAULT.name, 'preloaded', 'times uuidv7(), from connecting on')),
    ('the same, the first statement alone', 'at most', 1.1, ('first call', DEFAULT.name, 'preloaded', 'times uuidv7()')),
]


def goals(summary):
    rows = []
    for what, wanted, limit, *keys in GOALS:
        figures = [summary.get(*key) for key in keys]
        if None not in figures:
            value = figures[0] / figures[1] if figures[1:] else figures[0]
            reached = value <= limit if wanted == 'at most' else value >= limit
            rows.append([what, f'{wanted} {limit}', figure(value), 'yes' if reached else '**no**'])
    return table(['goal', 'wanted', 'measured', 'reached'], rows) if rows else ''


def main(directory):
    summary = Summary(directory / 'results.csv')
    described = machine.read(directory / 'machine.json')
    parts = ['# fast_uuid, measured',
             'Written by `script/bench`. All figures are medians of one run; '
             '[Performance](../../doc/performance.md) explains them.',
             table(['', 'of this run'], [[name, value] for name, value in described.items()])]
    for name, (title, note, made) in SECTIONS.items():
        if summary.cases(name):
            parts += [f'## {title}', note]
            if name in plots.ALL:
                path = directory / f"{name.replace(' ', '_')}.svg"
                parts.append(f'![{plots.draw(name, summary, described, path)}]({path.name})')
            parts.append(made(summary, name))
    if goals(summary):
        parts += ['## Goals', goals(summary)]
    (directory / 'report.md').write_text('\n\n'.join(parts) + '\n', encoding='utf-8')
    for part in parts:
        if part.startswith('## '):
            print(f'\n{part[3:]}\n')
        elif part.startswith('|'):
            print(aligned(part))


if __name__ == '__main__':
    main(Path(sys.argv[1]))
