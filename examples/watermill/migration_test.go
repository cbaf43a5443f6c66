package fastuuid

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/stretchr/testify/require"
)

// migrate runs one of the README's blocks of SQL, and again if the lock was not to be had.
func migrate(t *testing.T, step int) {
	readme, err := os.ReadFile("README.md")
	require.NoError(t, err)
	blocks := regexp.MustCompile("(?s)```sql\n(.*?)\n```").FindAllSubmatch(readme, -1)
	require.Len(t, blocks, 4)
	connection, err := pool.Acquire(ctx)
	require.NoError(t, err)
	defer connection.Release()
	for again := true; again; {
		for _, statement := range strings.SplitAfter(string(blocks[step-1][1]), ";\n") {
			_, err := connection.Exec(ctx, statement)
			var failed *pgconn.PgError
			if again = errors.As(err, &failed) && failed.Code == "55P03"; again {
				_, err = connection.Exec(ctx, "ROLLBACK")
				require.NoError(t, err)
				break
			}
			require.NoError(t, err, statement)
		}
	}
}

const topic = "orders"

// followOld makes the tables anew, as the default adapters have them.
func followOld(t *testing.T, l *list) *consumer {
	_, err := pool.Exec(ctx, "DROP TABLE IF EXISTS watermill_orders, watermill_offsets_orders")
	require.NoError(t, err)
	return theirs.follow(t, topic, l)
}

// Without an offsets table of the default adapter as well, a subscriber would miss late commits.
func TestNotMigrated(t *testing.T) {
	followOld(t, &list{}).stop()
	_, err := pool.Exec(ctx, "DROP TABLE watermill_offsets_orders")
	require.NoError(t, err)
	err = ours.subscriber(t, sql.SubscriberConfig{}).SubscribeInitialize(topic)
	require.ErrorContains(t, err, "watermill_orders has offsets from a sequence")
}

// New offsets are greater than all positions, also those of messages that were deleted.
func TestWayBack(t *testing.T) {
	followOld(t, &list{}).stop()
	for _, step := range []int{1, 1, 2, 3} { // the first as often as one likes
		migrate(t, step)
	}
	publish(t, ours.publisher(t, db), topic, "deleted")
	var deleted, next int64
	err := pool.QueryRow(ctx, `DELETE FROM watermill_orders RETURNING "offset"`).Scan(&deleted)
	require.NoError(t, err)
	migrate(t, 4)
	publish(t, theirs.publisher(t, db), topic, "next")
	require.NoError(t, pool.QueryRow(ctx, `SELECT "offset" FROM watermill_orders`).Scan(&next))
	require.Greater(t, next, deleted)
}

// A message that was delivered before one with an earlier position comes again, after that one.
func TestMigrationLateCommit(t *testing.T) {
	old := followOld(t, &list{})
	publish(t, theirs.publisher(t, db), topic, "first")
	migrate(t, 1)
	early, late := begin(t, ""), begin(t, "")
	_, err := early.Exec(ctx, "SELECT pg_current_xact_id()")
	require.NoError(t, err)
	publish(t, theirs.publisher(t, sql.TxFromPgx(late)), topic, "late")
	publish(t, theirs.publisher(t, sql.TxFromPgx(early)), topic, "early")
	require.NoError(t, early.Commit(ctx))
	old.expect(t, "first", "early")
	migrate(t, 2)
	old.stop()
	require.NoError(t, late.Commit(ctx))
	ours.follow(t, topic, &list{}).expect(t, "late", "early")
}

// The steps beside writers, first of the default adapters, then of both, of ours, and back.
func TestMigration(t *testing.T) {
	before, during, after := &list{}, &list{}, &list{}
	old := followOld(t, before)
	publish(t, theirs.publisher(t, db), topic, "a", "b", "c")
	old.expect(t, "a", "b", "c")
	_, err := ours.subscriber(t, sql.SubscriberConfig{}).Subscribe(ctx, topic)
	require.ErrorContains(t, err, "last_processed_transaction_id")
	err = ours.publisher(t, db).Publish(topic, message.NewMessage("d", nil))
	require.ErrorContains(t, err, "transaction_id")

	stopTheirs := theirs.writers(t, topic)
	old.atLeast(t, 300)
	migrate(t, 1)
	stopOurs := ours.writers(t, topic)
	old.atLeast(t, len(before.copy())+300)
	migrate(t, 2)
	old.stop()
	now := ours.follow(t, topic, during)
	now.atLeast(t, 300)
	stopTheirs()
	migrate(t, 3)
	now.atLeast(t, len(during.copy())+300)
	now.stop()
	migrate(t, 4)
	back := theirs.follow(t, topic, after)
	back.atLeast(t, 300)
	stopOurs()
	stopTheirs = theirs.writers(t, topic)
	back.atLeast(t, len(after.copy())+300)
	stopTheirs()

	// None is missed. Twice come some that the second step lets come again, and what was at hand when
	// a subscriber was closed.
	all := committed(t, topic)
	had := func() map[string]int {
		times := map[string]int{}
		for _, uuid := range slices.Concat(before.copy(), during.copy(), after.copy()) {
			times[uuid]++
		}
		return times
	}
	require.Eventually(t, func() bool { return len(had()) >= len(all) }, time.Minute, time.Millisecond)
	back.found(t)
	times := had()
	require.Len(t, times, len(all))
	for _, uuid := range all {
		require.NotZero(t, times[uuid], uuid)
		if times[uuid] > 1 && !slices.Contains(during.closing, uuid) {
			require.Equal(t, 2, times[uuid], uuid)
			require.True(t, slices.Contains(before.uuids[3:], uuid), uuid)
		}
	}
}
