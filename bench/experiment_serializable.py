"""How many transactions fail under SERIALIZABLE that insert a row and read near it,
by the kind of key."""

from generators import CORE_V4, DEFAULT, IDENTITY
from timing import turned

ROWS = 100000
CLIENTS = 8
TENANTS = 1000

V7 = (DEFAULT.name, 'uuid DEFAULT uuidv7_fast()')
SEQUENCE = (IDENTITY, 'bigint GENERATED ALWAYS AS IDENTITY')
V4 = (CORE_V4.name, 'uuid DEFAULT gen_random_uuid()')

INSERT = 'INSERT INTO parent (tenant) VALUES (:tenant) RETURNING id \\gset'
READ_AGAIN = f'{INSERT}\nSELECT * FROM parent WHERE id = :id;'
REFER = f'{INSERT}\nINSERT INTO child VALUES (:tenant, :id);'
LATEST = f'SELECT * FROM parent ORDER BY id DESC LIMIT 10;\n{INSERT}'

# What a transaction does, what its primary key begins with, when its foreign key is
# checked, and the kinds of key.
CASES = [
    ('nothing more; its id by RETURNING', INSERT, '', '', (V7, SEQUENCE, V4)),
    ('reads that row again by its id', READ_AGAIN, '', '', (V7, SEQUENCE, V4)),
    ('inserts another one that refers to it, by a foreign key', REFER, '', '', (V7, SEQUENCE, V4)),
    ('the same, foreign key DEFERRABLE INITIALLY DEFERRED', REFER, '', 'DEFERRABLE INITIALLY DEFERRED', (V7,)),
    ('reads that row again, primary key (tenant, id)',
     READ_AGAIN.replace('WHERE', 'WHERE tenant = :tenant AND'), 'tenant, ', '', (V7,)),
    ('inserts another one that refers to it, primary key (tenant, id)', REFER, 'tenant, ', '', (V7,)),
    ('reads the ten latest rows before', LATEST, '', '', (V7, SEQUENCE)),
    ('reads the ten latest of its tenant before, primary key (tenant, id)',
     LATEST.replace('ORDER', 'WHERE tenant = :tenant ORDER'), 'tenant, ', '', (V7,)),
]


def _fill(connection, key, tenant, deferred):
    kind = key.split()[0]
    connection.execute(f'CREATE TABLE parent (tenant integer, id {key}, PRIMARY KEY ({tenant}id))')
    connection.execute(f'CREATE TABLE child (tenant integer, id {kind},'
                       f' FOREIGN KEY ({tenant}id) REFERENCES parent {deferred})')
    connection.execute(f'INSERT INTO parent (tenant) SELECT n % {TENANTS} FROM generate_series(1, {ROWS}) AS n')
    connection.execute('ANALYZE parent')


def serializable(bench):
    """Percent of the transactions that fail (40001), of eight sessions."""
    cases = [(case, key) for case in CASES for key in case[4]]
    with bench.server.connect() as connection, \
            bench.server.settings({'synchronous_commit': 'off', 'default_transaction_isolation': 'serializable'}):
        for n in bench.rounds('Serializable transactions', short=True):
            for (what, statements, tenant, deferred, _), (name, key) in turned(cases, n):
                _fill(connection, key, tenant, deferred)
                failed = bench.server.pgbench(f'\\set tenant random(1, {TENANTS})\nBEGIN;\n{statements}\nCOMMIT;\n', CLIENTS,
                                              bench.seconds, line=r'number of failed transactions: \d+ \(([\d.]+)%\)')
                bench.record('serializable', what, name, n, 'failed, %', failed)
                connection.execute('DROP TABLE child, parent')
