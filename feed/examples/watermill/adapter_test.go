package fastfeed

import (
	"context"
	"fmt"
	"log"
	"math/rand"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/pubsub/tests"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"
)

var (
	ctx  = context.Background()
	pool *pgxpool.Pool
	db   sql.Beginner
)

func TestMain(m *testing.M) {
	// The rest is in PGHOST and its like. A consumer that waits for another has a connection.
	config, err := pgxpool.ParseConfig("pool_max_conns=80")
	if err == nil {
		pool, err = pgxpool.NewWithConfig(ctx, config)
	}
	if err != nil {
		log.Fatal(err)
	}
	db = sql.BeginnerFromPgx(pool)
	os.Exit(m.Run())
}

type adapters struct {
	schema  sql.SchemaAdapter
	offsets sql.OffsetsAdapter
}

var (
	bytea  = sql.DefaultPostgreSQLSchema{GeneratePayloadType: func(string) string { return "BYTEA" }}
	ours   = adapters{Schema{bytea}, Offsets{}}
	theirs = adapters{bytea, sql.DefaultPostgreSQLOffsetsAdapter{}}
)

func (a adapters) publisher(t *testing.T, db sql.ContextExecutor) message.Publisher {
	publisher, err := sql.NewPublisher(db, sql.PublisherConfig{SchemaAdapter: a.schema}, nil)
	require.NoError(t, err)
	return publisher
}

func (a adapters) subscriber(t *testing.T, config sql.SubscriberConfig) *sql.Subscriber {
	config.SchemaAdapter, config.OffsetsAdapter = a.schema, a.offsets
	subscriber, err := sql.NewSubscriber(db, config, nil)
	require.NoError(t, err)
	return subscriber
}

func constructor(t *testing.T, group string) (message.Publisher, message.Subscriber) {
	return ours.publisher(t, db), ours.subscriber(t, sql.SubscriberConfig{
		ConsumerGroup: group, PollInterval: time.Millisecond, ResendInterval: 5 * time.Millisecond})
}

func one(t *testing.T) (message.Publisher, message.Subscriber) { return constructor(t, "test") }

// Watermill's own suite, with what it is told of the default adapters
func TestPubSub(t *testing.T) {
	tests.TestPubSub(t, tests.Features{ConsumerGroups: true, ExactlyOnceDelivery: true,
		GuaranteedOrder: true, Persistent: true}, one, constructor)
}

// What it skips: two tests where delivery is exactly once, one where subscribers share a group
func TestPubSubSkipped(t *testing.T) {
	features := tests.Features{Persistent: true, NewSubscriberReceivesOldMessages: true}
	for name, test := range map[string]func(*testing.T, tests.TestContext, tests.PubSubConstructor){
		"ContinueAfterSubscribeClose": tests.TestContinueAfterSubscribeClose,
		"ConcurrentClose":             tests.TestConcurrentClose,
	} {
		t.Run(name, func(t *testing.T) {
			test(t, tests.TestContext{TestID: tests.NewTestID(), Features: features}, one)
		})
	}
	t.Run("NewSubscriberReceivesOldMessages", func(t *testing.T) {
		tests.TestNewSubscriberReceivesOldMessages(t,
			tests.TestContext{TestID: tests.NewTestID(), Features: features},
			func(t *testing.T) (message.Publisher, message.Subscriber) {
				return constructor(t, watermill.NewUUID())
			})
	})
}

// list has the UUIDs of what consumers have acknowledged.
type list struct {
	sync.Mutex
	uuids   []string
	closing []string // those since a subscriber was closed, which Watermill can deliver again
}

func (l *list) copy() []string {
	l.Lock()
	defer l.Unlock()
	return append([]string{}, l.uuids...)
}

type consumer struct {
	*sql.Subscriber
	*list
	empty chan struct{} // takes each poll that has found nothing, if somebody waits for it
	ended chan struct{}
}

func (c *consumer) HandleError(_ watermill.LoggerAdapter, empty bool, err error) time.Duration {
	if empty {
		select {
		case c.empty <- struct{}{}:
		default:
		}
	} else if err == nil {
		return 0
	}
	return time.Millisecond
}

// follow starts a consumer; those of one group share the list.
func (a adapters) follow(t *testing.T, topic string, l *list) *consumer {
	c := &consumer{list: l, empty: make(chan struct{}), ended: make(chan struct{})}
	c.Subscriber = a.subscriber(t, sql.SubscriberConfig{BackoffManager: c})
	require.NoError(t, c.SubscribeInitialize(topic))
	messages, err := c.Subscribe(ctx, topic)
	require.NoError(t, err)
	go func() {
		defer close(c.ended)
		for m := range messages {
			l.Lock()
			l.uuids = append(l.uuids, m.UUID)
			l.Unlock()
			m.Ack()
		}
	}()
	t.Cleanup(c.stop)
	return c
}

func (c *consumer) stop() {
	n := len(c.copy())
	c.Close()
	<-c.ended
	c.closing = append(c.closing, c.copy()[max(0, n-1):]...)
}

// found has what was delivered until a poll that began after the call found nothing.
func (c *consumer) found(t *testing.T) []string {
	for range 2 { // the first can have begun before
		select {
		case <-c.empty:
		case <-time.After(5 * time.Minute):
			require.Fail(t, "the consumer does not poll")
		}
	}
	return c.copy()
}

func (c *consumer) atLeast(t *testing.T, n int) {
	enough := func() bool { return len(c.copy()) >= n }
	require.Eventually(t, enough, 5*time.Minute, time.Millisecond, "%d messages", n)
}

// expect waits for these, and for more.
func (c *consumer) expect(t *testing.T, want ...string) {
	c.atLeast(t, len(want))
	require.Equal(t, want, c.found(t))
}

func publish(t *testing.T, publisher message.Publisher, topic string, uuids ...string) {
	for _, uuid := range uuids {
		require.NoError(t, publisher.Publish(topic, message.NewMessage(uuid, nil)))
	}
}

func begin(t *testing.T, database string) pgx.Tx {
	config, err := pgx.ParseConfig("")
	require.NoError(t, err)
	if database != "" {
		config.Database = database
	}
	connection, err := pgx.ConnectConfig(ctx, config)
	require.NoError(t, err)
	t.Cleanup(func() { connection.Close(ctx) })
	tx, err := connection.Begin(ctx)
	require.NoError(t, err)
	return tx
}

// A transaction that has written, but used no number of this topic, holds nothing back.
func TestForeignTransaction(t *testing.T) {
	for name, test := range map[string]struct{ database, statement string }{
		"other table":    {"", "CREATE TABLE other ()"},
		"other database": {"postgres", "CREATE TABLE other ()"},
		"other topic":    {"", "INSERT INTO watermill_other (uuid, transaction_id) VALUES ('', '1')"},
	} {
		t.Run(name, func(t *testing.T) {
			ours.follow(t, "other", &list{}).stop()
			for _, a := range []adapters{theirs, ours} {
				topic := watermill.NewShortUUID()
				c := a.follow(t, topic, &list{})
				foreign := begin(t, test.database)
				_, err := foreign.Exec(ctx, test.statement)
				require.NoError(t, err)
				publish(t, a.publisher(t, db), topic, "first", "second")
				if _, isOurs := a.schema.(Schema); isOurs {
					c.expect(t, "first", "second")
				} else {
					require.Empty(t, c.found(t))
				}
				require.NoError(t, foreign.Rollback(ctx))
			}
		})
	}
}

// One with a number of the topic holds back what comes after it, until it ends.
func TestLateCommit(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(tx pgx.Tx) error
		then []string
	}{
		"commit":   {func(tx pgx.Tx) error { return tx.Commit(ctx) }, []string{"late", "after"}},
		"rollback": {func(tx pgx.Tx) error { return tx.Rollback(ctx) }, []string{"after"}},
	} {
		t.Run(name, func(t *testing.T) {
			topic := watermill.NewShortUUID()
			c := ours.follow(t, topic, &list{})
			publisher := ours.publisher(t, db)
			publish(t, publisher, topic, "before")
			c.expect(t, "before")
			tx := begin(t, "")
			publish(t, ours.publisher(t, sql.TxFromPgx(tx)), topic, "late")

			publish(t, publisher, topic, "after")
			require.Equal(t, []string{"before"}, c.found(t))
			require.NoError(t, test.end(tx))
			c.expect(t, append([]string{"before"}, test.then...)...)
		})
	}
}

// writers publish until they are stopped. Their transactions commit out of order, also that of
// their ids, and a quarter of them rolls back.
func (a adapters) writers(t *testing.T, topic string) (stop func()) {
	writing, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	var ended atomic.Int64
	for writer := range 4 {
		group.Add(1)
		go func() {
			defer group.Done()
			for writing.Err() == nil {
				err := a.write(topic, func() {
					if writer == 0 || rand.Intn(4) > 0 {
						return
					}
					// Others can wait for a lock that waits for this one.
					n, until := ended.Load()+rand.Int63n(20), time.Now().Add(100*time.Millisecond)
					for ended.Load() < n && time.Now().Before(until) {
						time.Sleep(time.Millisecond)
					}
				})
				if err != nil {
					t.Error(err)
					return
				}
				ended.Add(1)
			}
		}()
	}
	stop = func() {
		cancel()
		group.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// write is one transaction, with a pause after it has its id, and after each message.
func (a adapters) write(topic string, pause func()) error {
	tx, err := pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(ctx)
	if _, err = tx.Exec(ctx, "SELECT pg_current_xact_id()"); err != nil {
		return err
	}
	config := sql.PublisherConfig{SchemaAdapter: a.schema}
	publisher, err := sql.NewPublisher(sql.TxFromPgx(tx), config, nil)
	if err != nil {
		return err
	}
	for range 1 + rand.Intn(3) {
		pause()
		err := publisher.Publish(topic, message.NewMessage(watermill.NewUUID(), nil))
		if err != nil {
			return err
		}
	}
	pause()
	if rand.Intn(4) == 0 {
		return nil
	}
	return tx.Commit(ctx)
}

// committed has the UUIDs in the order of the offsets.
func committed(t *testing.T, topic string) []string {
	table := bytea.MessagesTable(topic)
	rows, err := pool.Query(ctx, `SELECT uuid FROM `+table+` ORDER BY "offset"`)
	require.NoError(t, err)
	uuids, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return uuids
}

// Of what is committed, consumers of a group get each message, in the order of the offsets. Twice
// comes only what was at hand when a subscriber was closed, which Watermill can take for not
// acknowledged.
func TestNoneMissed(t *testing.T) {
	topic, got := watermill.NewShortUUID(), &list{}
	first := ours.follow(t, topic, got)
	second := ours.follow(t, topic, got)
	stop := ours.writers(t, topic)
	first.atLeast(t, 500)
	second.stop()
	third := ours.follow(t, topic, got)
	first.atLeast(t, 1000)
	first.stop()
	third.atLeast(t, 1500)
	stop()

	want := committed(t, topic)
	third.atLeast(t, len(want))
	delivered := third.found(t)
	seen := map[string]bool{}
	delivered = slices.DeleteFunc(delivered, func(uuid string) bool {
		again := seen[uuid]
		require.False(t, again && !slices.Contains(got.closing, uuid), "%s comes twice", uuid)
		seen[uuid] = true
		return again
	})
	i := 0
	for i < len(want) && i < len(delivered) && want[i] == delivered[i] {
		i++
	}
	require.Equal(t, want[i:], delivered[i:], "after %d", i)
}

// The condition is one of the index, which also has the order.
func TestIndexCondition(t *testing.T) {
	topic := watermill.NewShortUUID()
	ours.follow(t, topic, &list{}).stop()
	table := bytea.MessagesTable(topic)
	for _, query := range []string{
		`INSERT INTO ` + table + ` (uuid, transaction_id)
			SELECT n, pg_current_xact_id() FROM generate_series(1, 10000) AS n`,
		`ANALYZE ` + table,
	} {
		_, err := pool.Exec(ctx, query)
		require.NoError(t, err)
	}
	query, err := ours.schema.SelectQuery(
		sql.SelectQueryParams{Topic: topic, OffsetsAdapter: ours.offsets})
	require.NoError(t, err)
	rows, err := pool.Query(ctx, "EXPLAIN (COSTS OFF) "+query.Query, query.Args...)
	require.NoError(t, err)
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	plan := fmt.Sprint(lines)
	require.Regexp(t, `Index Cond: \(\("offset" > .*\) AND \("offset" < fast_feed\.watermark`, plan)
	require.NotRegexp(t, "Sort|Filter", plan)
}
