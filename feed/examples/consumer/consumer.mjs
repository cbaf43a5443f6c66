// Delivers the rows of a table in the order of their numbers, each at least once.

import { setTimeout } from 'node:timers/promises';
import pg from 'pg';

const [name, batch] = ['mail', 100];
const receiver = process.env.RECEIVER ?? 'http://127.0.0.1:8080/';

const positionOf = 'SELECT position FROM event_consumer WHERE name = $1';
// Payloads are text, because JSON.parse() changes numbers.
const read = `
  SELECT id, payload::text FROM event
   WHERE id > $1 AND id < fast_feed.watermark('event') ORDER BY id LIMIT $2`;
// Not where somebody has changed the position meanwhile.
const store = 'UPDATE event_consumer SET position = $1 WHERE name = $2 AND position = $3';

let stopping = false;
let said;

// Replace this. If it throws an error, the same rows come again.
async function deliver(place, rows) {
  const objects = rows.map((row) => `{"id":${row.id},"payload":${row.payload}}`);
  const response = await fetch(receiver, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json' },
    body: `{"place":"${place}","rows":[${objects}]}`,
    signal: AbortSignal.timeout(30_000),
    redirect: 'manual', // By itself it is followed by GET, without the rows.
  });
  await response.arrayBuffer(); // Otherwise its connection stays open, and keeps Node running.
  if (!response.ok) throw new Error(`the receiver has answered ${response.status}`);
}

async function consume() {
  const client = new pg.Client();
  client.on('error', () => {}); // If the connection is lost between statements, the next one fails.
  const ask = async (...query) => (await client.query(...query)).rows;
  try {
    await client.connect();
    const [{ place }] = await ask('SELECT event_consume($1) AS place', [name]);
    let seen = 0;
    while (!stopping) {
      const [{ position }] = await ask(positionOf, [name]);
      const rows = await ask(read, [position, batch]);
      if (rows.length > 0) {
        await deliver(place, rows);
        await ask(store, [rows.at(-1).id, name, position]);
      }
      say('at work');
      if (rows.length < batch) {
        // For a second at most, because SIGTERM does not end it
        [{ seen }] = await ask("SELECT fast_feed.wait($1, '1 s') AS seen", [seen]);
      }
    }
  } finally {
    await client.end();
  }
}

// Not again each second.
function say(line) {
  if (line !== said) console.error(`${name}: ${line}`);
  said = line;
}

process.on('SIGTERM', () => {
  stopping = true;
});
while (!stopping) {
  try {
    await consume();
  } catch (error) {
    // Of the connection or the delivery: the position is as it was.
    const why = [error.message, error.code, error.cause?.message, error.cause?.code];
    say(`tries again each second: ${why.filter(Boolean).join(', ').split('\n')[0]}`);
    await setTimeout(1000);
  }
}
