// What readers get after one append has waited for its stream while another overtook it: as
// shipped, and with the lines of README.md (node late.mjs fast_uuid), in an empty database.
import os from 'node:os';
import pg from 'pg';
import { dumbo } from '@event-driven-io/dumbo';
import {
  getPostgreSQLEventStore, readLastMessageGlobalPosition, readMessagesBatch,
} from '@event-driven-io/emmett-postgresql';

const { PGHOST = '/var/run/postgresql', PGPORT = 5432, PGDATABASE } = process.env;
const PGUSER = process.env.PGUSER ?? os.userInfo().username;
const url = `postgresql://${PGUSER}@localhost:${PGPORT}/${PGDATABASE}?host=${PGHOST}`;
const store = getPostgreSQLEventStore(url);
await store.schema.migrate();
const client = new pg.Client(url);
await client.connect();

if (process.argv[2] === 'fast_uuid') {
  await client.query(`ALTER TABLE emt_messages
    ALTER global_position SET DEFAULT uuidv7_feed_position()`);
  // What would be changed upstream, on its way to the server
  const { query } = pg.Client.prototype;
  const edit = (text) => text
    .replace('transaction_id < pg_snapshot_xmin(pg_current_snapshot())',
      'global_position < uuidv7_feed_position_watermark()')
    .replace('ORDER BY transaction_id, global_position',
      `ORDER BY global_position ${/^SELECT global_position\s/.test(text) ? 'DESC' : 'ASC'}`);
  pg.Client.prototype.query = function edited(q, ...rest) {
    return query.call(this, q.text ? { ...q, text: edit(q.text) } : edit(q), ...rest);
  };
}

const append = (stream, name) => store.appendToStream(stream, [{ type: 'Event', data: { name } }]);
await append('a-1', 'first');
await client.query(`BEGIN; SELECT FROM emt_streams WHERE stream_id = 'a-1' FOR UPDATE`);
const late = append('a-1', 'late');
const waiting = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
while (!(await client.query(waiting)).rowCount);
await append('a-2', 'early');
await client.query('ROLLBACK');
await late;

const { rows } = await client.query(`SELECT message_data->>'name' AS name, global_position,
  transaction_id FROM emt_messages ORDER BY global_position`);
console.table(rows);
const { execute } = dumbo({ connectionString: url });
const last = (await readLastMessageGlobalPosition(execute)).currentGlobalPosition;
console.log('readLastMessageGlobalPosition:', rows.find((r) => r.global_position == last).name);
for (const batchSize of [1, 2, 100]) {
  const read = [];
  let after = 0n;
  for (;;) {
    const batch = await readMessagesBatch(execute, { after, batchSize });
    if (!batch.messages.length || read.length > 9) break;
    read.push(...batch.messages.map((m) => m.data.name));
    after = batch.currentGlobalPosition;
  }
  const given = [];
  const consumer = store.consumer({ pulling: { batchSize }, stopWhen: { noMessagesLeft: true } });
  consumer.reactor({
    processorId: `batch-${batchSize}`, startFrom: 'BEGINNING', canHandle: ['Event'],
    eachMessage: (m) => { given.push(m.data.name); },
  });
  await consumer.start();
  console.log(`batches of ${batchSize}:`, read.join(', '), '| a reactor:', given.join(', '));
}
process.exit();
