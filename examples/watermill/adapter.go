// Package fastuuid orders the messages of Watermill's SQL Pub/Sub by positions of fast_uuid.
package fastuuid

import (
	"cmp"
	"fmt"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
)

// Schema is the default schema, with its settings. Its "offset" is a position of fast_uuid, which
// replaces the transaction id.
type Schema struct{ sql.DefaultPostgreSQLSchema }

func (s Schema) SchemaInitializingQueries(
	p sql.SchemaInitializingQueriesParams,
) ([]sql.Query, error) {
	queries, table := []sql.Query{}, s.MessagesTable(p.Topic)
	if !s.InitializeSchemaWithoutTransaction {
		lock := cmp.Or(s.InitializeSchemaLock, sql.DefaultSchemaInitializationLock("watermill"))
		queries = append(queries, sql.Query{Query: fmt.Sprintf("SELECT pg_advisory_xact_lock(%d)", lock)})
	}
	return append(queries, sql.Query{Query: `CREATE TABLE IF NOT EXISTS ` + table + ` (
		"offset" bigint PRIMARY KEY DEFAULT uuidv7_feed_position(),
		uuid varchar(36) NOT NULL,
		created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
		payload ` + s.PayloadColumnType(p.Topic) + `,
		metadata json)`},
		// A table of the default adapter stays as it was.
		sql.Query{Query: `DO $check$
		BEGIN
			PERFORM uuidv7_feed_position_watermark(); -- fails where it is not preloaded
			IF NOT EXISTS (SELECT FROM pg_attrdef WHERE adrelid = '` + table + `'::regclass
				AND pg_get_expr(adbin, adrelid) LIKE '%uuidv7_feed_position()') THEN
				RAISE '% has offsets from a sequence: migrate it, as README.md of the adapter says',
					'` + table + `'::regclass;
			END IF;
		END $check$`}), nil
}

// InsertQuery and UnmarshalMessage are those of the queue, which has no transaction id either.
func (s Schema) InsertQuery(p sql.InsertQueryParams) (sql.Query, error) {
	queue := sql.PostgreSQLQueueSchema{GenerateMessagesTableName: s.MessagesTable}
	return queue.InsertQuery(p)
}

func (s Schema) UnmarshalMessage(p sql.UnmarshalMessageParams) (sql.Row, error) {
	return sql.PostgreSQLQueueSchema{}.UnmarshalMessage(p)
}

func (s Schema) SelectQuery(p sql.SelectQueryParams) (sql.Query, error) {
	acked, err := p.OffsetsAdapter.NextOffsetQuery(
		sql.NextOffsetQueryParams{Topic: p.Topic, ConsumerGroup: p.ConsumerGroup})
	if err != nil {
		return sql.Query{}, err
	}
	return sql.Query{Query: fmt.Sprintf(`SELECT "offset", uuid, payload, metadata FROM %s
		WHERE "offset" > (%s) AND "offset" < uuidv7_feed_position_watermark()
		ORDER BY "offset" LIMIT %d`,
		s.MessagesTable(p.Topic), acked.Query, cmp.Or(s.SubscribeBatchSize, 100)), Args: acked.Args}, nil
}

// Offsets is the default adapter without the transaction id.
type Offsets struct {
	sql.DefaultPostgreSQLOffsetsAdapter
}

func (a Offsets) SchemaInitializingQueries(
	p sql.OffsetsSchemaInitializingQueriesParams,
) ([]sql.Query, error) {
	return []sql.Query{{Query: `CREATE TABLE IF NOT EXISTS ` + a.MessagesOffsetsTable(p.Topic) + ` (
		consumer_group varchar(255) PRIMARY KEY,
		offset_acked bigint NOT NULL)`}}, nil
}

// BeforeSubscribingQueries inserts the row that NextOffsetQuery locks. It fails with a table of the
// default adapter, where last_processed_transaction_id is NOT NULL.
func (a Offsets) BeforeSubscribingQueries(
	p sql.BeforeSubscribingQueriesParams,
) ([]sql.Query, error) {
	return []sql.Query{{Query: `INSERT INTO ` + a.MessagesOffsetsTable(p.Topic) + `
		(consumer_group, offset_acked) VALUES ($1, 0) ON CONFLICT DO NOTHING`,
		Args: []any{p.ConsumerGroup}}}, nil
}

func (a Offsets) NextOffsetQuery(p sql.NextOffsetQueryParams) (sql.Query, error) {
	return sql.Query{Query: `SELECT offset_acked FROM ` + a.MessagesOffsetsTable(p.Topic) + `
		WHERE consumer_group = $1 FOR UPDATE`, Args: []any{p.ConsumerGroup}}, nil
}

func (a Offsets) AckMessageQuery(p sql.AckMessageQueryParams) (sql.Query, error) {
	return sql.Query{Query: `UPDATE ` + a.MessagesOffsetsTable(p.Topic) + `
		SET offset_acked = $1 WHERE consumer_group = $2`,
		Args: []any{p.LastRow.Offset, p.ConsumerGroup}}, nil
}
