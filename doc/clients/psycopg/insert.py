# Inserts rows with psycopg; their ids come from DEFAULT uuidv7_fast().

from datetime import datetime, timedelta, timezone

import psycopg

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)

with psycopg.connect() as connection:
    for name in ("first", "second", "third"):
        # id is a uuid.UUID
        id, server_time = connection.execute(
            "INSERT INTO item (name) VALUES (%s) RETURNING id, uuidv7_fast_timestamp(id)", [name]
        ).fetchone()

        # The first 48 bits are milliseconds. Python 3.14 and later: id.time
        time = EPOCH + timedelta(milliseconds=id.int >> 80)

        print(f"{id} version {id.version}, time {time}, server {server_time}, now {datetime.now(timezone.utc)}")
