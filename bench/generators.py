"""What is measured against what."""

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Generator:
    name: str
    call: str
    settings: dict = field(default_factory=dict)
    column: str = ''    # of a table that has it as its key


BASELINE = Generator('no-op C function: the baseline', 'fast_uuid_noop()')
KEY = Generator('uuidv7_fast()', 'uuidv7_fast()', column='uuid DEFAULT uuidv7_fast()')
NEXTVAL = Generator('nextval()', "nextval('counter')")
IDENTITY = Generator('bigint identity', '', column='bigint GENERATED ALWAYS AS IDENTITY')
CORE_V7 = Generator('uuidv7() of PostgreSQL', 'uuidv7()',
                    column='uuid DEFAULT pg_catalog.uuidv7()')
CORE_V4 = Generator('gen_random_uuid()', 'gen_random_uuid()',
                    column='uuid DEFAULT gen_random_uuid()')
PG_UUIDV7 = Generator('uuid_generate_v7() of pg_uuidv7', 'uuid_generate_v7()')


def from_source(what, **settings):
    return Generator(f'uuidv7_fast(), {what}', 'uuidv7_fast()',
                     {f'fast_uuid.{name}': value for name, value in settings.items()})


SOURCES = [
    from_source('getrandom', source='getrandom'),
    from_source('getrandom, system call', source='getrandom', vdso='off'),
    from_source('urandom', source='urandom'),
    from_source('xorshift128+', source='xorshift128+'),
    from_source('openssl, unbuffered', source='openssl', buffer_size='0'),
    from_source('getrandom, unbuffered', source='getrandom', buffer_size='0'),
    from_source('urandom, unbuffered', source='urandom', buffer_size='0'),
    from_source('xorshift128+, unbuffered', source='xorshift128+', buffer_size='0'),
]


def available(connection, *generators):
    """Those of them that this server has."""
    missing = [] if connection.info.server_version >= 180000 else [CORE_V7]
    if connection.execute(
            "SELECT true FROM pg_available_extensions WHERE name = 'pg_uuidv7'").fetchone():
        connection.execute('CREATE EXTENSION IF NOT EXISTS pg_uuidv7')
    else:
        missing.append(PG_UUIDV7)
    return [one for one in generators if one not in missing]
