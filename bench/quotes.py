"""The figures in the documents: in which text each stands, and what it is of
bench/results/results.csv.

A template is the text around, as short as it can be and still stand only once in
the file: {} is a figure, and a blank matches any white space, the end of a line
and the padding of a table too.  A row of a table is a template like any other.

Each figure says how many digits  and of what: a key of results.csv (experiment, case, parameter, metric, and
q1 or q3 if not the median), or what seconds, megabytes, millions, difference,
largest, ratio, more, less and share make of keys."""

from figures import (Quote, about, difference, largest, less, megabytes, millions, more, ratio, seconds, share, tenths,
                     three, upward, whole)
from generators import BASELINE, CLOCK, CORE_V4, CORE_V7, DEFAULT, DURABLE, INSTANCE, INTERPOLATED, NEXTVAL

ARRAY = 'uuidv7_fast_array(1000000)'
SET = 'uuidv7_fast_set(1000000) in a target list'
EMPTY_SET = 'generate_series(1, 1000000) in a target list: no value at all'
IDENTITY = 'bigint identity'
NAIVE = 'id > the last one'
TIMES_IDENTITY = 'times bigint identity'


def _case(generator):
    return getattr(generator, 'name', generator)


def values(generator, metric='ms'):
    """A million values by a generator, or by ours from a source."""
    return 'statements', _case(generator), 1000000, metric


def growth(generator, number):
    return 'growth', _case(generator), number, 'ms'


def above(generator):
    return values(generator, 'ns per value above the baseline')


def rows(key, metric='ms', kind='LOGGED'):
    return 'inserts', _case(key), kind, metric


def first(what, how='preloaded', metric='us'):
    return 'first call', _case(what), how, metric


def bulk(call):
    return 'bulk', call, 1000000, 'ms'


def sessions(generator, clients):
    return 'sessions', _case(generator), clients, 'values per second'


def clock(what, unit='ns'):
    return 'clock', what, '', unit


def slewed(by):
    return largest(*(clock(f'slewed by {sign}{by}: {way} at most') for sign in ('', '-') for way in ('ahead', 'behind')))


def set_lead(what):
    return 'clock lead sets', what, 8, 'us'


def missed(reader, metric='rows missed'):
    return 'missed', reader, 8, metric


def versions(what, metric='index bytes'):
    return 'versions', what, 1000000, metric


def first_memory(generator):
    name = _case(generator)
    return difference(('memory', name, 'after it', 'kB'), ('memory', name, 'before the first call', 'kB'))


def memory_of_a_million(generator):
    name = _case(generator)
    return difference(('memory', name, 'after a million', 'kB'), ('memory', name, 'after it', 'kB'))


def failed(what, *keys):
    return [tenths(('serializable', what, _case(key), 'failed, %')) for key in keys]


def times(generator):
    """The two columns of the table of ratios."""
    return three(values(generator, 'times the baseline')), three(values(generator, 'times uuidv7_fast()'))


def source(name):
    return f'uuidv7_fast(), {name}'


WATERMARK = 'uuidv7_fast_watermark()'
INTERPOLATION = difference(above(CLOCK), above(INTERPOLATED))


def _of(file, *quotes):
    return [Quote(file, template, figures) for template, *figures in quotes]


QUOTES = [
    *_of('README.md',
         ('are inserted in {} s, {} times as fast as with `gen_random_uuid()`',
          about(seconds(rows(DEFAULT))), about(ratio(rows(CORE_V4), rows(DEFAULT)))),
         ('Of the difference {} % is faster generation',
          whole(share(difference(values(CORE_V4), values(DEFAULT)), difference(rows(CORE_V4), rows(DEFAULT))))),
         ('on request across sessions, restarts and promotion | {} | {} |', whole(values(DEFAULT)), whole(rows(DEFAULT))),
         ('| 245 ns | per session | {} | {} |', whole(values(CORE_V7)), whole(rows(CORE_V7))),
         ('| millisecond | no | {} | |', whole(values('uuid_generate_v7() of pg_uuidv7'))),
         ('| `gen_random_uuid()` | none | no | {} | {} |', whole(values(CORE_V4)), whole(rows(CORE_V4))),
         ('| across sessions, restarts and promotion | {} | {} |', whole(values(NEXTVAL)), whole(rows(IDENTITY)))),

    *_of('doc/performance.md',
         # One UUID
         ('takes {} ms if `f` is a C function', whole(values(BASELINE))),
         ('`uuidv7_fast()` adds {} ns to each call.', three(above(DEFAULT))),
         ('{} ns are one reading of the clock and the layout', three(above(CLOCK))),
         ('| `uuidv7_fast()`, default settings | {} | {} |', *times(DEFAULT)),
         ('| the same under instance order | {} | {} |', *times(INSTANCE)),
         ('| the same under durable order | {} | {} |', *times(DURABLE)),
         ('| `xorshift128+` | {} | {} |', *times(source('xorshift128+'))),
         ('| `getrandom` | {} | {} |', *times(source('getrandom'))),
         ('| `getrandom` by system call | {} | {} |', *times(source('getrandom, system call'))),
         ('| `urandom` | {} | {} |', *times(source('urandom'))),
         ('| `openssl`, unbuffered | {} | {} |', *times(source('openssl, unbuffered'))),
         ('| `getrandom`, unbuffered | {} | {} |', *times(source('getrandom, unbuffered'))),
         ('| `urandom`, unbuffered | {} | {} |', *times(source('urandom, unbuffered'))),
         ('| `nextval()` | {} | {} |', *times(NEXTVAL)),
         ('| `uuidv7()` of PostgreSQL 18 | {} | {} |', *times(CORE_V7)),
         ('| `gen_random_uuid()` | {} | {} |', *times(CORE_V4)),
         ('{} s for ten million in one statement, {} ms for one million.',
          about(seconds(growth(DEFAULT, 10000000))), whole(growth(DEFAULT, 1000000))),
         # Rows
         ('a million rows by default takes {} times as long', about(rows(DEFAULT, TIMES_IDENTITY))),
         ('in an unlogged table {} times;', about(rows(DEFAULT, TIMES_IDENTITY, 'UNLOGGED'))),
         ('with `uuidv7()` {} and {} times.',
          three(rows(CORE_V7, TIMES_IDENTITY)), three(rows(CORE_V7, TIMES_IDENTITY, 'UNLOGGED'))),
         ('({} against {} MB,',
          whole(megabytes(rows(DEFAULT, 'WAL bytes'))), whole(megabytes(rows(IDENTITY, 'WAL bytes')))),
         ('MB, {} against {} MB)',
          three(megabytes(rows(DEFAULT, 'index bytes'))), three(megabytes(rows(IDENTITY, 'index bytes')))),
         ('its leaves are {} % full, those of `gen_random_uuid()` {} %.',
          whole(rows(DEFAULT, 'leaf density, %')), whole(rows(CORE_V4, 'leaf density, %'))),
         # First-call cost
         ('of a session takes {} µs with the library preloaded, against {} µs with', whole(first(DEFAULT)), whole(first(CORE_V7))),
         ('a C function that does nothing takes {} µs.', whole(first(BASELINE))),
         ('Without preloading it takes {} µs,', whole(first(DEFAULT, 'not preloaded'))),
         ('Connecting takes {} ms besides', about(seconds(first(DEFAULT, metric='connect us')))),
         # Bulk
         ('`uuidv7_fast_array(1000000)` takes {} ns per UUID', about(bulk(ARRAY))),
         ('in a target list takes {} ns per row, of which {} are', about(bulk(SET)), about(bulk(EMPTY_SET))),
         # Several sessions
         ('two sessions on two processors generated {} times as many UUIDs as one',
          three(ratio(sessions(DEFAULT, 2), sessions(DEFAULT, 1)))),
         ('generate {} million per second ({} to {} million in single rounds), under session order {} million.',
          tenths(millions(sessions(INSTANCE, 2))),
          *(tenths(millions((*sessions(INSTANCE, 2), column))) for column in ('min', 'max')),
          tenths(millions(sessions(DEFAULT, 2)))),
         # The time in the UUID
         ('ahead of the clock, by {} s after ten million calls',
          about(millions(('clock lead', CORE_V7.name, 10000000, 'us')))),
         ('at once on these two processors, were ahead by {} µs at most', whole(set_lead('arrays in as many sessions'))),
         # Memory
         ('The first call adds {} kB to the private memory of a session that has preloaded the library, and a million further'
          ' calls add {} kB.', whole(first_memory(DEFAULT)), whole(memory_of_a_million(DEFAULT))),
         ('With `uuidv7()` the first call adds {} kB', whole(first_memory(CORE_V7))),
         # Readers
         ('it missed {} % of {} rows', whole(share(missed(NAIVE), missed(NAIVE, 'rows committed'))),
          whole(missed(NAIVE, 'rows committed'))),
         ('missed {}. [Design notes]', whole(missed('id < the watermark')))),

    *_of('doc/guide.md',
         ('its id by `RETURNING` | {} % | {} % | {} % |', *failed('nothing more; its id by RETURNING', DEFAULT, IDENTITY, CORE_V4)),
         ('| reads that row again by its id | {} % | {} % | {} % |',
          *failed('reads that row again by its id', DEFAULT, IDENTITY, CORE_V4)),
         ('refers to it, by a foreign key | {} % | {} % | {} % |',
          *failed('inserts another one that refers to it, by a foreign key', DEFAULT, IDENTITY, CORE_V4)),
         ('`DEFERRABLE INITIALLY DEFERRED` | {} % |', *failed('the same, foreign key DEFERRABLE INITIALLY DEFERRED', DEFAULT)),
         ('primary key `(tenant, id)`, 1000 tenants | {} % |', *failed('reads that row again, primary key (tenant, id)', DEFAULT)),
         ('refers to it, the same primary key | {} % |',
          *failed('inserts another one that refers to it, primary key (tenant, id)', DEFAULT)),
         ('| reads the ten latest rows before | {} % | {} % |', *failed('reads the ten latest rows before', DEFAULT, IDENTITY)),
         ('of its tenant before, the same primary key | {} % |',
          *failed('reads the ten latest of its tenant before, primary key (tenant, id)', DEFAULT))),

    *_of('doc/internals/design-notes.md',
         ('| a reading, ns, in a loop outside the server | {} | {} |',
          three(clock('clock_gettime(CLOCK_REALTIME)', 'ns per reading')), three(clock('interpolated', 'ns per reading'))),
         ('| a generator that does nothing else, times the baseline | {} | {} |',
          three(values(CLOCK, 'times the baseline')), three(values(INTERPOLATED, 'times the baseline'))),
         ('away from the clock on this machine at most, ns | 0 | {} |',
          whole(largest(*(clock(f'{way} on this machine at most') for way in ('ahead of the clock', 'behind it'))))),
         ('slewed by 500 ppm | 0 | {} |', whole(slewed('500 ppm (ntpd)'))),
         ('as the kernel can (10 %) | 0 | {} |', whole(slewed("100000 ppm (the kernel's limit)"))),
         ('It would save {} ns per UUID, that is {} % of [a statement',
          three(INTERPOLATION), whole(share(INTERPOLATION, values(DEFAULT)))),
         ('and about {} % of an insertion', whole(share(INTERPOLATION, rows(DEFAULT))))),

    *_of('doc/faq.md',
         ('with a million ids takes {} % of the time', whole(share(values(DEFAULT), values(CORE_V7)))),
         ('then receives 500,000 of version 7 takes {} MB, at {} %;',
          three(megabytes(versions('500,000 of version 4, then as many of version 7'))),
          whole(versions('500,000 of version 4, then as many of version 7', 'leaf density, %'))),
         ('one of a million of version 4 takes {} MB, at {} %, of version 7 {} MB.',
          three(megabytes(versions('a million of version 4'))), whole(versions('a million of version 4', 'leaf density, %')),
          three(megabytes(versions('a million of version 7'))))),

    *_of('doc/operations.md', ('| memory of a session | {} kB after the first call', whole(first_memory(DEFAULT)))),

    *_of('doc/ordering.md',
         ('A statement that only generates UUIDs takes {} % longer', whole(more(values(INSTANCE, 'times uuidv7_fast()')))),
         ('two WAL flushes per second, of {} bytes per second',
          whole(('upper_bound', DURABLE.name, 2, 'WAL bytes per second')))),
]

# In these each figure with a unit is a quote's, or has a reason here.
COVERED = ['README.md', 'doc/performance.md', 'doc/faq.md', 'doc/guide.md']

ALLOWED = [
    ('README.md', '245 ns', "the step of uuidv7()'s 12 bits, by its code"),
    ('doc/performance.md', '245 ns', "the step of uuidv7()'s 12 bits, by its code"),
    ('doc/performance.md', 'advances by 1 ns', 'the step of uuidv7_fast(), by its code'),
    ('doc/performance.md', '16 MB of memory', 'a million times 16 bytes'),
    ('doc/performance.md', 'after up to 5 ms', 'the delay that the experiment gives its writers'),
    ('doc/guide.md', '245 ns', "the step of uuidv7()'s 12 bits, by its code"),
]
