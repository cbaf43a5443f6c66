/*
 * watermark.c
 *	  The bound below which a statement sees every row that it ever could:
 *	  doc/internals/ordering-proof.md proves it.
 *
 *	  Often a transaction ends between a statement's snapshot and its call of
 *	  uuidv7_feed_watermark().  Then what this computes is not right for the
 *	  snapshot, but what an earlier call has computed often is, in whichever
 *	  backend.  So shared memory keeps the recent ones.
 */
#include "postgres.h"

#include "access/transam.h"
#include "access/xact.h"
#include "clock.h"
#include "lib/ilist.h"
#include "feed/feed.h"
#include "storage/procarray.h"
#include "test_point.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/* How long a watermark is kept, less 2 ms for each database that asks. */
#define LASTING_US	UINT64CONST(128000)

/* The transactions that were running for the watermark at this index. */
static TransactionId *
running_for(uint32 watermark)
{
	return (TransactionId *) ((char *) fuuid_shared +
							  FUUID_RUNNING_OFFSET(watermark));
}

/*
 * Is a watermark right for a snapshot?  It is if the snapshot knows of the end
 * of each transaction that had ended for the watermark's own snapshot, that
 * is, was below its xmax and not running.  This holds for all snapshots, also
 * for that of a logical slot, which xmax does not order.
 */
static bool
is_right_for(const Watermark *watermark, const TransactionId *running,
			 Snapshot snapshot)
{
	if (TransactionIdFollows(watermark->xmax, snapshot->xmax))
		return false;
	for (uint32 i = 0; i < snapshot->xcnt; i++)
		if (TransactionIdPrecedes(snapshot->xip[i], watermark->xmax) &&
			bsearch(&snapshot->xip[i], running, watermark->xcnt,
					sizeof(TransactionId), xidComparator) == NULL)
			return false;
	return true;
}

/*
 * Keep a watermark.  A statement must find one that is older than its snapshot,
 * however often others ask.  So a database takes another place only from time
 * to time, the more databases ask the more seldom, and otherwise replaces its
 * newest watermark.  The place is the one that has not been any database's
 * newest for the longest time: a reader that seldom asks finds its own.
 */
static void
keep_watermark(const Watermark *watermark, const TransactionId *running)
{
	Watermark  *kept = fuuid_shared->watermarks;
	Watermark  *place = &kept[0];
	Watermark  *newest = NULL;
	int			asking = 1;		/* databases, with this one */
	int			usable = FUUID_WATERMARKS;
	uint64		since_us = watermark->since_us;

	Assert(LWLockHeldByMeInMode(&fuuid_shared->lock, LW_EXCLUSIVE));
	Assert(watermark->xcnt * sizeof(TransactionId) <= FUUID_RUNNING_SIZE);
	for (int i = 0; i < FUUID_WATERMARKS; i++)
	{
		Watermark  *other = &kept[i];

		if (other->newest && other->database == watermark->database)
			newest = other;
		else if (other->newest && other->since_us + LASTING_US > since_us)
			asking++;
		else if (other->newest)
			usable--;
		if (other->newest == place->newest ?
			other->since_us < place->since_us : place->newest)
			place = other;
	}
	if (newest != NULL &&
		newest->since_us + LASTING_US * asking / usable > since_us)
	{
		place = newest;
		since_us = newest->since_us;
	}
	else if (newest != NULL)
	{
		newest->newest = false;
		newest->since_us = since_us;
	}
	*place = *watermark;
	place->since_us = since_us;
	fuuid_shared->last_watermark = place - kept;
	memcpy(running_for(place - kept), running,
		   watermark->xcnt * sizeof(TransactionId));
}

/*
 * The greatest kept watermark of this database above found_ns that is right
 * for a snapshot; found_ns if none is.  The last ones come first: mostly they
 * are the greatest, and those below one that is right need not be compared.
 */
static uint64
find_watermark(Snapshot snapshot, uint64 found_ns)
{
	for (uint32 n = FUUID_WATERMARKS; n > 0; n--)
	{
		uint32		i = (fuuid_shared->last_watermark + n) % FUUID_WATERMARKS;
		const Watermark *other = &fuuid_shared->watermarks[i];

		if (other->ns > found_ns && other->database == MyDatabaseId &&
			is_right_for(other, running_for(i), snapshot))
			found_ns = other->ns;
	}
	return found_ns;
}

/*
 * Compute a watermark: a nanosecond below which no transaction of this
 * database can generate any more, and all that have generated had ended when
 * the snapshot of the watermark was taken.  It follows the clock unless a
 * transaction holds it back.  *running, which the first call allocates, becomes
 * the transactions that were running for the snapshot, sorted.  This backend's
 * own is among them, because for other backends it is running.
 *
 * last_ns is read before the transactions, because those of later UUIDs need
 * not be found.  The snapshot is taken after them, because it must know of all
 * that were found to have ended.  It can fail: *watermark is set after it.
 */
static void
compute_watermark(Watermark *watermark, TransactionId **running)
{
	static SnapshotData now = {.snapshot_type = SNAPSHOT_MVCC};
	TransactionId own = GetTopTransactionIdIfAny();
	int			held_back_by;
	uint64		ns;

	if (*running == NULL)
		*running = MemoryContextAlloc(TopMemoryContext, FUUID_RUNNING_SIZE);
	ns = fuuid_feed_advance_to(fuuid_clock_read());
	FUUID_TEST_POINT("watermark");
	ns = fuuid_in_flight_first(ns + 1, &held_back_by);

	/* The server allocates both arrays if xip is missing; subxip may fail. */
	if (now.subxip == NULL)
		now.xip = NULL;
	(void) GetSnapshotData(&now);
	FUUID_TEST_POINT("watermark_computed");

	watermark->ns = ns;
	watermark->since_us = fuuid_clock_monotonic_us();
	watermark->database = MyDatabaseId;
	watermark->newest = true;
	watermark->xmax = now.xmax;
	watermark->xcnt = now.xcnt;
	memcpy(*running, now.xip, now.xcnt * sizeof(TransactionId));
	if (TransactionIdIsValid(own) && TransactionIdPrecedes(own, now.xmax))
		(*running)[watermark->xcnt++] = own;
	qsort(*running, watermark->xcnt, sizeof(TransactionId), xidComparator);
}

/*
 * The watermark of this backend's latest wait.  In shared memory another one
 * may replace it that is not right for the statement after the wait.
 */
static Watermark of_wait = {0};
static TransactionId *of_wait_running = NULL;

/*
 * Compute a watermark, and keep it.  Returns the greatest that is right for a
 * snapshot, or 0, which no UUID is below, if none is.
 */
static uint64
find_or_compute(Snapshot snapshot)
{
	static TransactionId *running = NULL;
	Watermark	computed;
	uint64		found_ns = 0;

	compute_watermark(&computed, &running);
	if (is_right_for(&computed, running, snapshot))
		found_ns = computed.ns;
	if (of_wait.ns > found_ns &&
		is_right_for(&of_wait, of_wait_running, snapshot))
		found_ns = of_wait.ns;
	LWLockAcquire(&fuuid_shared->lock, LW_EXCLUSIVE);

	/* Before one is replaced. */
	found_ns = find_watermark(snapshot, found_ns);
	keep_watermark(&computed, running);
	LWLockRelease(&fuuid_shared->lock);
	Assert(found_ns <= pg_atomic_read_u64(&fuuid_shared->last_ns) + 1);
	return found_ns;
}

/* Compute a watermark, right for each snapshot that is taken later. */
void
fuuid_watermark_after_wait(void)
{
	compute_watermark(&of_wait, &of_wait_running);
	LWLockAcquire(&fuuid_shared->lock, LW_EXCLUSIVE);
	keep_watermark(&of_wait, of_wait_running);
	LWLockRelease(&fuuid_shared->lock);
}

/*
 * The watermark that a snapshot of this transaction has been given.  All calls
 * in a statement must have the same result: with two, the greater of two rows
 * could be below one of them, while the smaller is not below the other.
 */
typedef struct Given
{
	slist_node	node;
	Snapshot	snapshot;
	uint64		ns;
	TransactionId xmax;
	uint32		xcnt;
	TransactionId xip[FLEXIBLE_ARRAY_MEMBER];
} Given;

static slist_head given_list = SLIST_STATIC_INIT(given_list);

/* At the end of the transaction its memory is gone. */
static bool forgets_at_end = false;

static void
forget_at_end(void *arg pg_attribute_unused())
{
	slist_init(&given_list);
	forgets_at_end = false;
}

/*
 * Find what a snapshot was given, at its address, or else what another one was
 * given for which the same transactions have ended: both see the same rows.
 * What was given to an earlier snapshot at this address is dropped, so that
 * there is one per address, however many statements the transaction has.
 */
static Given *
find_given(Snapshot snapshot)
{
	slist_mutable_iter i;
	Given	   *found = NULL;

	slist_foreach_modify(i, &given_list)
	{
		Given	   *given = slist_container(Given, node, i.cur);
		bool		is_here = given->snapshot == snapshot;

		/* Not a savepoint's, after which it would still be listed. */
		Assert(GetMemoryChunkContext(given) == TopTransactionContext);

		/* Without any, snapshot->xip can be NULL. */
		if (given->xmax == snapshot->xmax && given->xcnt == snapshot->xcnt &&
			(given->xcnt == 0 ||
			 memcmp(given->xip, snapshot->xip,
					given->xcnt * sizeof(TransactionId)) == 0))
		{
			found = given;
			if (is_here)
				break;
		}
		else if (is_here)
		{
			slist_delete_current(&i);
			pfree(given);
		}
	}
	return found;
}

/*
 * The greatest watermark that is right for a snapshot, computed now or by an
 * earlier call; 0 if none is.  It stays the same for this snapshot.
 */
uint64
fuuid_watermark_for(Snapshot snapshot)
{
	static MemoryContextCallback at_end = {.func = forget_at_end};
	Size		xip_size = snapshot->xcnt * sizeof(TransactionId);
	Given	   *found;
	Given	   *given;

	/* A snapshot of a time of recovery lists no running transactions. */
	if (snapshot->snapshot_type != SNAPSHOT_MVCC ||
		snapshot->takenDuringRecovery)
		return 0;
	found = find_given(snapshot);
	if (found != NULL && found->snapshot == snapshot)
		return found->ns;

	given = MemoryContextAlloc(TopTransactionContext,
							   offsetof(Given, xip) + xip_size);
	given->snapshot = snapshot;
	given->xmax = snapshot->xmax;
	given->xcnt = snapshot->xcnt;
	if (xip_size > 0)
		memcpy(given->xip, snapshot->xip, xip_size);
	given->ns = found != NULL ? found->ns : find_or_compute(snapshot);
	if (!forgets_at_end)
		MemoryContextRegisterResetCallback(TopTransactionContext, &at_end);
	forgets_at_end = true;
	slist_push_head(&given_list, &given->node);
	return given->ns;
}

/* Has a snapshot of this transaction been given a watermark? */
bool
fuuid_watermark_is_given(void)
{
	return !slist_is_empty(&given_list);
}

/* Forget all watermarks, at a reset.  The caller holds the lock. */
void
fuuid_watermark_forget(void)
{
	Assert(LWLockHeldByMeInMode(&fuuid_shared->lock, LW_EXCLUSIVE));
	memset(fuuid_shared->watermarks, 0, sizeof(fuuid_shared->watermarks));
	of_wait.ns = 0;
	slist_init(&given_list);
}
