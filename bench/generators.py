"""What is measured against what: every generator with its settings."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Generator:
    name: str
    call: str
    settings: dict = field(default_factory=dict)


BASELINE = Generator('no-op C function: the baseline', 'fast_uuid_noop()')
DEFAULT = Generator('uuidv7_fast()', 'uuidv7_fast()')
FEED = Generator('uuidv7_feed_id()', 'uuidv7_feed_id()')
POSITION = Generator('uuidv7_feed_position()', 'uuidv7_feed_position()')
NEXTVAL = Generator('nextval()', "nextval('counter')")
CORE_V7 = Generator('uuidv7() of PostgreSQL', 'uuidv7()')
CORE_V4 = Generator('gen_random_uuid()', 'gen_random_uuid()')

IDENTITY = 'bigint identity'
GUARDED = 'uuidv7_feed_id(), guarded'
CRYPTOGRAPHIC = ('getrandom', 'getrandom, system call', 'urandom')


def _source(name, label=None, **settings):
    return Generator(f'uuidv7_fast(), {label or name}', 'uuidv7_fast()', {'fast_uuid.source': name, **settings})


def _extension_function(connection, name, call, extension):
    """The function of another extension, if the server has that."""
    available = connection.execute('SELECT true FROM pg_available_extensions WHERE name = %s', [extension]).fetchone()
    if not available:
        return []
    connection.execute(f'CREATE EXTENSION IF NOT EXISTS "{extension}"')
    return [Generator(name, call)]


def core_v7(connection):
    """uuidv7() where the server has one: from PostgreSQL 18."""
    found = connection.execute("SELECT true FROM pg_proc WHERE oid = to_regprocedure('pg_catalog.uuidv7()')").fetchone()
    return [CORE_V7] if found else []


def all_generators(connection, calls):
    """Every generator this server has, and the calls the user has named."""
    off = {'fast_uuid.vdso': 'off'}
    unbuffered = {'fast_uuid.buffer_size': '0'}
    return [
        BASELINE,
        DEFAULT,
        FEED,
        POSITION,
        Generator('uuidv7_fast(\'getrandom\'): named in the call', "uuidv7_fast('getrandom')"),
        _source('getrandom'),
        _source('getrandom', 'getrandom, system call', **off),
        _source('urandom'),
        _source('xorshift128+'),
        _source('openssl', 'openssl, unbuffered', **unbuffered),
        _source('getrandom', 'getrandom, unbuffered', **unbuffered),
        _source('getrandom', 'getrandom, system call, unbuffered', **off, **unbuffered),
        _source('urandom', 'urandom, unbuffered', **unbuffered),
        _source('xorshift128+', 'xorshift128+, unbuffered', **unbuffered),
        NEXTVAL,
        *core_v7(connection),
        CORE_V4,
        *_extension_function(connection, 'uuid_generate_v7() of pg_uuidv7', 'uuid_generate_v7()', 'pg_uuidv7'),
        *_extension_function(connection, 'uuid_generate_v4() of uuid-ossp', 'uuid_generate_v4()', 'uuid-ossp'),
        *(Generator(call, call) for call in calls),
    ]
