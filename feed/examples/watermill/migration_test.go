package fastfeed

import (
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ThreeDotsLabs/watermill-sql/v4/pkg/sql"
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
func TestNotEnabled(t *testing.T) {
	followOld(t, &list{}).stop()
	_, err := pool.Exec(ctx, "DROP TABLE watermill_offsets_orders")
	require.NoError(t, err)
	err = ours.subscriber(t, sql.SubscriberConfig{}).SubscribeInitialize(topic)
	require.ErrorContains(t, err, `"watermill_orders" is not followed`)
}

// A message that was delivered before one with a smaller offset comes again, after that one.
func TestLateCommitThere(t *testing.T) {
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

// So does, on the way back, one that was delivered before one of an older transaction.
func TestLateCommitBack(t *testing.T) {
	followOld(t, &list{}).stop()
	for _, step := range []int{1, 1, 2, 3} { // the first as often as one likes
		migrate(t, step)
	}
	now := ours.follow(t, topic, &list{})
	publish(t, theirs.publisher(t, db), topic, "first")
	early := begin(t, "")
	_, err := early.Exec(ctx, "SELECT pg_current_xact_id()")
	require.NoError(t, err)
	publish(t, theirs.publisher(t, db), topic, "second")
	now.expect(t, "first", "second")
	migrate(t, 4)
	publish(t, theirs.publisher(t, sql.TxFromPgx(early)), topic, "early")
	require.NoError(t, early.Commit(ctx))
	now.stop()
	theirs.follow(t, topic, &list{}).expect(t, "early", "second")
}

// While publishers pause, each step leaves what is unread, and nothing else.
func TestUnread(t *testing.T) {
	old := followOld(t, &list{})
	publish(t, theirs.publisher(t, db), topic, "first")
	old.expect(t, "first")
	old.stop()
	publish(t, theirs.publisher(t, db), topic, "second")
	migrate(t, 1)
	migrate(t, 2)
	now := ours.follow(t, topic, &list{})
	now.expect(t, "second")
	now.stop()
	publish(t, theirs.publisher(t, db), topic, "third")
	migrate(t, 4)
	theirs.follow(t, topic, &list{}).expect(t, "third")
}

// The steps there and back beside publishers, which go on. Each subscriber gets some messages.
func TestMigration(t *testing.T) {
	var before, during, after list
	old := followOld(t, &before)
	stop := theirs.writers(t, topic)
	old.atLeast(t, 300)
	migrate(t, 1)
	_, err := ours.subscriber(t, sql.SubscriberConfig{}).Subscribe(ctx, topic)
	require.ErrorContains(t, err, `column "position"`)
	old.atLeast(t, len(before.copy())+300)
	migrate(t, 2)
	old.stop()
	_, err = theirs.subscriber(t, sql.SubscriberConfig{}).Subscribe(ctx, topic)
	require.ErrorContains(t, err, `column "offset_acked"`)
	now := ours.follow(t, topic, &during)
	now.atLeast(t, 300)
	migrate(t, 3)
	now.atLeast(t, len(during.copy())+300)
	migrate(t, 4)
	now.stop()
	back := theirs.follow(t, topic, &after)
	back.atLeast(t, 300)
	stop()

	all := committed(t, topic)
	had := func() map[string]bool {
		set := map[string]bool{}
		for _, uuid := range slices.Concat(before.copy(), during.copy(), after.copy()) {
			set[uuid] = true
		}
		return set
	}
	require.Eventually(t, func() bool { return len(had()) >= len(all) }, 5*time.Minute, 10*time.Millisecond)
	back.found(t)
	require.Equal(t, len(all), len(had()))
	for _, uuid := range all {
		require.True(t, had()[uuid], uuid)
	}
	// What comes twice comes from two subscribers, and ours has a part without a gap, in order.
	for _, l := range []*list{&before, &during, &after} {
		require.Len(t, slices.Compact(slices.Sorted(slices.Values(l.uuids))), len(l.uuids))
	}
	begin := slices.Index(all, during.uuids[0])
	require.Equal(t, all[begin:begin+len(during.uuids)], during.uuids)
	t.Logf("%d messages, %d of them twice", len(all),
		len(before.uuids)+len(during.uuids)+len(after.uuids)-len(all))
}
