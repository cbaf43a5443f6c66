// Delivers the rows of a table in the order of their positions, each at least once.

import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

const [table, group, batch] = ['event', 'mail', 100];
const receiver = process.env.RECEIVER;
let stopping = false;

// Replace this. If it throws an error, the same rows come again. A row's payload is text, because
// JSON.parse() changes numbers.
async function deliver(rows) {
  const response = await fetch(receiver, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: `[${rows.map((row) => `{"position":"${row.position}","payload":${row.payload}}`)}]`,
    signal: AbortSignal.timeout(30_000),
    redirect: 'error', // It would be followed by GET, without the rows.
  });
  await response.arrayBuffer(); // Otherwise its connection is not used again.
  if (!response.ok) throw new Error(`the receiver has answered ${response.status}`);
}

// Delivers the rows after the group's position, and returns how many there were.
async function nextBatch(client) {
  await client.query('BEGIN');
  // Another consumer of the group waits here until this one has committed.
  const reader = await client.query(
    'SELECT read_up_to FROM event_reader WHERE name = $1 FOR UPDATE',
    [group],
  );
  const { rows } = await client.query(
    `SELECT position, payload::text FROM ${table} WHERE position > $1` +
      ' AND position < uuidv7_feed_position_watermark() ORDER BY position LIMIT $2',
    [reader.rows[0].read_up_to, batch],
  );
  if (rows.length > 0) {
    await deliver(rows);
    await client.query('UPDATE event_reader SET read_up_to = $1 WHERE name = $2', [
      rows.at(-1).position,
      group,
    ]);
  }
  await client.query('COMMIT');
  return rows.length;
}

// A bigint (type 20) stays a string, whatever the project has set: a Number loses digits.
const types = {
  getTypeParser: (type, format) => (type === 20 ? String : pg.types.getTypeParser(type, format)),
};

async function consume() {
  const client = new pg.Client({ types });
  client.on('error', () => {}); // If the connection is lost between statements, the next one fails.
  try {
    await client.connect();
    // uuidv7_feed_wait() refuses a higher level, and a timeout would end it.
    await client.query(
      "SET default_transaction_isolation = 'read committed'; SET statement_timeout = 0",
    );
    await client.query('INSERT INTO event_reader VALUES ($1, 0) ON CONFLICT DO NOTHING', [group]);
    let seen = 0;
    while (!stopping) {
      if ((await nextBatch(client)) === 0) {
        // Outside of a transaction; for a second at most, because SIGTERM does not end it
        const waited = await client.query("SELECT uuidv7_feed_wait($1, '1 s') AS seen", [seen]);
        seen = waited.rows[0].seen;
      }
    }
  } finally {
    await client.end();
  }
}

if (!receiver) {
  console.error('RECEIVER must be the URL to post to');
  process.exit(1);
}
process.on('SIGTERM', () => {
  stopping = true;
});
while (!stopping) {
  try {
    await consume();
  } catch (error) {
    // Of the connection or the delivery: nothing was stored.
    console.error('The batch is tried again, on a new connection:', error);
    await setTimeout(1000);
  }
}
