// Package fastfeed reads the messages of Watermill's SQL Pub/Sub below fast_feed's watermark.
package fastfeed

import (
	"cmp"
	"fmt"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
)

// Schema is the default schema, with its settings. It writes the same rows, and reads them by
// "offset" alone.
type Schema struct{ sql.DefaultPostgreSQLSchema }

func (s Schema) SchemaInitializingQueries(
	p sql.SchemaInitializingQueriesParams,
) ([]sql.Query, error) {
	queries, err := s.DefaultPostgreSQLSchema.SchemaInitializingQueries(p)
	if err != nil {
		return nil, err
	}
	// The last one creates the table. One of the default adapter can be large, and has readers: its
	// owner enables it.
	queries[len(queries)-1] = sql.Query{Query: fmt.Sprintf(`DO $$
		BEGIN
			IF to_regclass('%[1]s') IS NULL THEN
				CREATE TABLE %[1]s (
					"offset" bigserial PRIMARY KEY,
					uuid varchar(36) NOT NULL,
					created_at timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP,
					payload %[2]s,
					metadata json,
					transaction_id xid8 NOT NULL);
				PERFORM fast_feed.enable('%[1]s', 'offset');
			END IF;
			PERFORM fast_feed.watermark('%[1]s'); -- fails if the table is not enabled
		END $$`, s.MessagesTable(p.Topic), s.PayloadColumnType(p.Topic))}
	return queries, nil
}

func (s Schema) SelectQuery(p sql.SelectQueryParams) (sql.Query, error) {
	acked, err := p.OffsetsAdapter.NextOffsetQuery(
		sql.NextOffsetQueryParams{Topic: p.Topic, ConsumerGroup: p.ConsumerGroup})
	if err != nil {
		return sql.Query{}, err
	}
	return sql.Query{Query: fmt.Sprintf(`SELECT "offset", uuid, payload, metadata FROM %[1]s
		WHERE "offset" > (%[2]s) AND "offset" < fast_feed.watermark('%[1]s')
		ORDER BY "offset" LIMIT %[3]d`,
		s.MessagesTable(p.Topic), acked.Query, cmp.Or(s.SubscribeBatchSize, 100)), Args: acked.Args}, nil
}

// UnmarshalMessage is that of the queue, which has no transaction id either.
func (s Schema) UnmarshalMessage(p sql.UnmarshalMessageParams) (sql.Row, error) {
	return sql.PostgreSQLQueueSchema{}.UnmarshalMessage(p)
}

// Offsets is the default adapter with one number for each consumer group. Its column has another
// name, so that subscribers of the default adapters fail where these run, and the other way round.
type Offsets struct {
	sql.DefaultPostgreSQLOffsetsAdapter
}

func (a Offsets) SchemaInitializingQueries(
	p sql.OffsetsSchemaInitializingQueriesParams,
) ([]sql.Query, error) {
	return []sql.Query{{Query: `CREATE TABLE IF NOT EXISTS ` + a.MessagesOffsetsTable(p.Topic) + ` (
		consumer_group varchar(255) PRIMARY KEY,
		position bigint NOT NULL)`}}, nil
}

// BeforeSubscribingQueries inserts the row that NextOffsetQuery locks.
func (a Offsets) BeforeSubscribingQueries(
	p sql.BeforeSubscribingQueriesParams,
) ([]sql.Query, error) {
	return []sql.Query{{Query: `INSERT INTO ` + a.MessagesOffsetsTable(p.Topic) + `
		(consumer_group, position) VALUES ($1, 0) ON CONFLICT DO NOTHING`,
		Args: []any{p.ConsumerGroup}}}, nil
}

func (a Offsets) NextOffsetQuery(p sql.NextOffsetQueryParams) (sql.Query, error) {
	return sql.Query{Query: `SELECT position FROM ` + a.MessagesOffsetsTable(p.Topic) + `
		WHERE consumer_group = $1 FOR UPDATE`, Args: []any{p.ConsumerGroup}}, nil
}

func (a Offsets) AckMessageQuery(p sql.AckMessageQueryParams) (sql.Query, error) {
	return sql.Query{Query: `UPDATE ` + a.MessagesOffsetsTable(p.Topic) + `
		SET position = $1 WHERE consumer_group = $2`,
		Args: []any{p.LastRow.Offset, p.ConsumerGroup}}, nil
}
