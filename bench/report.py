"""Writes report.md and its plots from the results.csv and machine.json of a directory:
python3 bench/report.py DIRECTORY [NEWER], where NEWER is that of a run, on the same machine, of
single experiments, which take the place of those in DIRECTORY."""

import json
import operator
import sys
from dataclasses import dataclass
from pathlib import Path

import plots
from generators import BASELINE, CORE_V7, IDENTITY, KEY
from results import Summary


def figure(value):
    """Three digits, as people write them."""
    value = float(f'{value:.3g}')
    if abs(value) >= 100 or value == 0:
        return f'{value:,.0f}'
    return f'{value:.1f}' if abs(value) >= 10 else f'{value:.2f}'


@dataclass
class Column:
    """Medians: of one parameter and one metric, in a unit, or compared with another."""

    head: str
    metric: str
    parameter: str = ''
    unit: float = 1
    quartiles: bool = False
    base: str = ''          # a case
    over: str = ''          # or a parameter
    compare: callable = operator.truediv

    def cell(self, summary, experiment, case):
        row = summary.get(experiment, case, self.parameter, self.metric)
        if not row:
            return ''
        if self.base or self.over:
            base = summary.get(experiment, self.base or case, self.over or self.parameter,
                               self.metric)
            return figure(self.compare(row['median'], base['median'])) if base else ''
        text = figure(row['median'] / self.unit)
        if self.quartiles:
            text += f" ({figure(row['q1'] / self.unit)} to {figure(row['q3'] / self.unit)})"
        return text


@dataclass
class Section:
    title: str
    note: str
    head: str               # of the cases
    columns: list = None    # or else of this metric one per parameter
    metric: str = ''


MILLION = '1000000'
LATENCIES = ('latency p50, ms', 'latency p99, ms', 'reads per second', 'transactions per second')
SECTIONS = {
    'statements': Section(
        'A million values',
        '`SELECT count(f()) FROM generate_series(1, 1000000)`.'
        ' `uuidv7_fast()` alone: `openssl`, buffered, as by default.'
        ' Unbuffered: `fast_uuid.buffer_size = 0`.', 'generator', [
            Column('ms (quartiles)', 'ms', MILLION, quartiles=True),
            Column('times the baseline', 'ms', MILLION, base=BASELINE.name),
            Column('ns per value above it', 'ms', MILLION, base=BASELINE.name,
                   compare=operator.sub),
            Column('times `uuidv7_fast()`', 'ms', MILLION, base=KEY.name)]),
    'requests': Section(
        'Requests to the sources',
        'By `fast_uuid_benchmark()`, which buffers nothing. A UUID takes 8 bytes; the default'
        ' buffer fetches 4096 at a time.',
        'ns per request by bytes', metric='ns'),
    'bulk': Section(
        'In bulk',
        'A million values in one call, so that milliseconds are nanoseconds per value.',
        'call', [Column('ms (quartiles)', 'ms', MILLION, quartiles=True)]),
    'inserts': Section(
        'A million rows',
        '`INSERT INTO t (n) SELECT generate_series(1, 1000000)` into an empty table'
        ' `(id PRIMARY KEY DEFAULT ..., n integer)`, after a checkpoint. Then single rows: one'
        ' per transaction, by two clients of pgbench in pipelines of 20, `synchronous_commit ='
        ' off`; with it on, the disk is measured.', 'key', [
            Column('ms (quartiles)', 'ms', quartiles=True),
            Column('times `bigint`', 'ms', base=IDENTITY.name),
            Column('WAL, MB', 'WAL bytes', unit=1e6),
            Column('index, MB', 'index bytes', unit=1e6),
            Column('leaves full, %', 'leaf density, %'),
            Column('single rows per second', 'rows per second')]),
    'first call': Section(
        'First-call cost',
        'Client time of the first statement after connecting, over a Unix socket, and of'
        ' connecting. One server has preloaded the libraries, the other not.', 'statement', [
            Column('us, preloaded (quartiles)', 'us', 'preloaded', quartiles=True),
            Column('times `uuidv7()`', 'us', 'preloaded', base=CORE_V7.name),
            Column('us, not preloaded (quartiles)', 'us', 'not preloaded', quartiles=True),
            Column('us to connect', 'connect us', 'preloaded')]),
    'sessions': Section(
        'From one session to eight',
        'All sessions in total;'
        ' `SELECT count(f()) FROM generate_series(1, 250000)` over and over.',
        'values per second by sessions', metric='values per second'),
    'missed': Section(
        'fast_feed: what a reader misses',
        'Writers insert one row per transaction, and commit after a random delay of'
        ' up to 5 ms; a reader asks again and again for the rows after the last one that it has'
        ' seen, another for those of them below `fast_feed.watermark()`, in one statement.',
        '% missed by writers', metric='rows missed, %'),
    'woken': Section(
        'fast_feed: a reader that is woken',
        'One reader asks for the rows after its last one and below `fast_feed.watermark()`,'
        ' again until there are none; then it sleeps, is woken by NOTIFY, which each writer'
        ' sends with its row, or calls `fast_feed.wait()`. Latency: from the insertion of a'
        ' row to the statement that delivers it. `synchronous_commit = off`, unless it is'
        ' named.', 'reader'),
    'caught up': Section(
        'fast_feed: a reader that catches up',
        'One reader that is 500,000 rows of 100 bytes behind reads them in batches, by psycopg'
        ' over a Unix socket, with its position in the client, or by the function `outbox_next()`'
        ' of the recipes, which commits each batch with the position.',
        'rows per second by rows in a batch', metric='rows per second'),
    'feed writes': Section(
        'fast_feed: rows',
        f'300,000 rows into an empty table `(id bigint PRIMARY KEY, n integer)`, by `INSERT ... SELECT`'
        ' and by COPY, after a checkpoint; then single rows, one per transaction, which clients of'
        ' pgbench send in pipelines of 20, `synchronous_commit = off`. Ratios are of the same'
        ' round. A default that is volatile, or a BEFORE ROW trigger, turns off the batches in'
        ' which COPY inserts; that of an identity column is exempt.', 'numbers by', [
            Column('ms by a statement', 'time', 'rows by a statement'),
            Column('ms by COPY', 'time', 'rows by COPY'),
            Column('us a row, 2 clients', 'time', 'single rows, 2 clients'),
            *(Column(f'times identity, {what} (quartiles)', 'times identity', what, quartiles=True)
              for what in ('rows by a statement', 'rows by COPY', 'single rows, 2 clients',
                           'single rows, 8 clients'))]),
    'feed watermark': Section(
        'fast_feed: the watermark',
        "A transaction that calls `fast_feed.watermark()`, in a PL/pgSQL loop, less one that calls"
        ' `pg_relation_filenode()`; beside other sessions, whose transaction has used the sequence'
        ' and is open, so that snapshots list it, has ended, or is prepared.',
        'us beside transactions', metric='us'),
    'feed waiters': Section(
        'fast_feed: beside waiters',
        'Single rows by four clients, `synchronous_commit = off`, beside sessions that wait in a'
        ' loop, in the same database or another one; times as many as beside none, in the same'
        ' round.', 'times as many by waiters', metric='times as many as beside none'),
    'appends': Section(
        'Event stores: appends',
        'Stores as shipped, and as `feed/examples` puts them on fast_feed. Every'
        ' load begins with an empty store in a new database, with the indexes that belong to it,'
        ' and has no reader. Writers append one message per transaction, each to a stream of its'
        ' own, all to one category or topic. The program is the same either way: in Python with'
        ' a process per writer for eventsourcing and, with psycopg, for message-db; in Go for'
        ' Watermill. `synchronous_commit = off`; with it on, locks that are held until the commit'
        ' would also wait for the disk. The pause of 2 ms before the commit, as of a client'
        ' elsewhere, is made by a deferred trigger. p99: of all but the first append of a writer,'
        ' which connects.',
        'store', [
            *(Column(f'per second, {kind} (quartiles)', 'per second', kind, quartiles=True)
              for kind in ('as shipped', 'on fast_feed')),
            Column('times as shipped', 'per second', 'on fast_feed', over='as shipped'),
            *(Column(f'p99, {kind}, ms', 'p99, ms', kind)
              for kind in ('as shipped', 'on fast_feed')),
            Column('times as shipped', 'p99, ms', 'on fast_feed', over='as shipped')]),
    'lost': Section(
        'Event stores: what readers get',
        'Eight writers, whose transactions end after a random delay of up to 10 ms, one in ten'
        ' with a rollback, and a reader, which goes on until it finds nothing after they have'
        ' ended. Inverted: delivered after a message whose append began when this one had been'
        ' committed. Functions: with `POSTGRES_ENABLE_DB_FUNCTIONS=y`.', 'store', [
            Column('messages', 'messages'),
            Column('missed of 10,000 (quartiles)', 'missed of 10,000', quartiles=True),
            Column('twice', 'twice of 10,000'),
            Column('inverted', 'inverted of 10,000')]),
    'held back': Section(
        'Event stores: what a transaction holds back',
        'One writer appends 100 messages in 2 s, while a transaction is open that has inserted a'
        ' row of another table, in this database or in another one; also with a number of the'
        " store's sequence, or of another feed. Messages that the reader is given before that"
        ' transaction ends.',
        '% delivered by what is open', metric='delivered, %'),
}


def table(head, rows):
    lines = [head, ['---'] + ['---:'] * (len(head) - 1), *rows]
    return '\n'.join('| ' + ' | '.join(line) + ' |' for line in lines)


def tables(summary, experiment, section):
    """One; of a reader that is woken one for each load."""
    cases, parameters = summary.cases(experiment), summary.parameters(experiment)
    if experiment == 'woken':
        groups = {load: [Column(metric, metric, load) for metric in LATENCIES]
                  for load in parameters}
    elif section.columns:
        groups = {section.head: section.columns}
    else:
        groups = {section.head: [Column(p, section.metric, p) for p in parameters]}
    for head, columns in groups.items():
        yield table([head, *(column.head for column in columns)],
                    [[case, *(column.cell(summary, experiment, case) for column in columns)]
                     for case in cases])


def take_over(directory, newer):
    """The rows of the newer run, and its date, instead of those of its experiments."""
    old, new = (json.loads((d / 'machine.json').read_text(encoding='ascii'))
                for d in (directory, newer))
    if any(old.get(name) != value for name, value in new.items() if name != 'Date'):
        sys.exit('not the same machine, server or number of rounds: measure all again')
    head, *rows = (newer / 'results.csv').read_text(encoding='utf-8').splitlines(keepends=True)
    again = {row.split(',')[0] for row in rows}
    _, *kept = (directory / 'results.csv').read_text(encoding='utf-8').splitlines(keepends=True)
    kept = [row for row in kept if row.split(',')[0] not in again]
    (directory / 'results.csv').write_text(''.join([head, *rows, *kept]), encoding='utf-8')
    titles = ', '.join(section.title for name, section in SECTIONS.items() if name in again)
    old[titles] = f"measured on {new['Date']}"
    (directory / 'machine.json').write_text(json.dumps(old, indent=2) + '\n', encoding='ascii')


def main(directory, newer=None):
    if newer:
        take_over(directory, newer)
    summary = Summary(directory / 'results.csv')
    machine = json.loads((directory / 'machine.json').read_text(encoding='ascii'))
    parts = ['# fast_uuid, measured',
             'Written by `script/bench`. All figures of a day are medians of one run, in three digits;'
             ' [Performance](../../doc/performance.md) explains them.',
             table(['', 'of this run'], [[name, value] for name, value in machine.items()])]
    for experiment, section in SECTIONS.items():
        if summary.cases(experiment):
            parts += [f'## {section.title}', section.note]
            if experiment in plots.ALL:
                again = [said.split()[-1] for names, said in machine.items()
                         if section.title in names.split(', ')]
                seen = plots.draw(experiment, summary,
                                  {**machine, 'Date': [machine['Date'], *again][-1]}, directory)
                parts.append(f'![{seen}]({experiment}.svg)')
            parts += tables(summary, experiment, section)
    report = '\n\n'.join(parts) + '\n'
    (directory / 'report.md').write_text(report, encoding='utf-8')
    print(report)


if __name__ == '__main__':
    main(*map(Path, sys.argv[1:]))
