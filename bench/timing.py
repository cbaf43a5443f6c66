"""What the experiments share: statements that the server times itself, and turns."""

MILLION = 1000000


def time_ms(connection, statement, settings):
    """Milliseconds of a statement in the server, under settings."""
    for name, value in settings.items():
        connection.execute(f"SET {name} = '{value}'")
    ms = connection.execute('SELECT pg_temp.bench_ms(%s)', [statement]).fetchone()[0]
    for name in settings:
        connection.execute(f'RESET {name}')
    return float(ms)


def connect(server):
    connection = server.connect()
    connection.execute("""
        CREATE FUNCTION pg_temp.bench_ms(statement text) RETURNS numeric LANGUAGE plpgsql AS $$
        DECLARE
          started timestamptz := clock_timestamp();
        BEGIN
          EXECUTE statement;
          RETURN extract(epoch FROM clock_timestamp() - started) * 1000;
        END $$""")
    return connection


def turned(cases, n):
    """The cases from another one on in each round: none always follows the same."""
    cases = list(cases)
    n %= len(cases)
    return cases[n:] + cases[:n]


def count(call, values=MILLION):
    return f'SELECT count({call}) FROM generate_series(1, {values})'
