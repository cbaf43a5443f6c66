// Inserts rows with node-postgres; their ids come from DEFAULT uuidv7_fast().

import pg from 'pg';
import { parse, version } from 'uuid';

const client = new pg.Client();
await client.connect();

for (const name of ['first', 'second', 'third']) {
  const { rows } = await client.query(
    'INSERT INTO item (name) VALUES ($1) RETURNING id, uuidv7_fast_timestamp(id) AS server_time',
    [name],
  );
  const { id, server_time } = rows[0]; // a string and a Date

  // The first 48 bits are milliseconds.
  const time = new Date(Buffer.from(parse(id)).readUIntBE(0, 6));

  console.log(
    `${id} version ${version(id)}, time ${time.toISOString()},` +
      ` server ${server_time.toISOString()}, now ${new Date().toISOString()}`,
  );
}

await client.end();
