/*
 * watermark.c
 *	  The bound below which a statement sees every row that it ever could:
 *	  doc/internals.md proves it.
 */
#include "postgres.h"

#include "feed.h"
#include "storage/procarray.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

PG_FUNCTION_INFO_V1(feed_check);
PG_FUNCTION_INFO_V1(feed_watermark);

/* Raise an error on a standby. */
void
feed_require_primary(const char *what)
{
	if (RecoveryInProgress())
		FEED_STATE_ERROR(errmsg("cannot execute %s during recovery", what),
						 errhint("Call it on the primary, and let readers here use a stored watermark."));
}

/*
 * Compute a bound: a number below which no transaction can draw any more, and
 * all that have drawn had ended when the snapshot of the mark was taken.
 * Returns the transactions that were running for that snapshot, until the next
 * call.  This backend's own is among them, because for other backends it is
 * running.
 *
 * The sequence is read before the transactions, because those that draw later
 * need not be found.  The snapshot is taken after them, because it must know of
 * all that were found to have ended.  It can fail: *mark is set after it.
 */
static const TransactionId *
compute(FeedOpen *open, FeedMark *mark)
{
	static SnapshotData now = {.snapshot_type = SNAPSHOT_MVCC};
	TransactionId own = GetTopTransactionIdIfAny();
	int64		least;

	feed_sequence_read(open, NULL, NULL);
	FEED_TEST_POINT("sequence_read");
	least = feed_in_flight_least(open);

	/* The server allocates both arrays if xip is missing; subxip may fail. */
	if (now.subxip == NULL)
		now.xip = NULL;
	(void) GetSnapshotData(&now);
	FEED_TEST_POINT("computed");

	/* After a crash the sequence must not give a number again. */
	if (!open->is_logged)
		feed_sequence_log(open);
	XLogFlush(open->lsn);

	mark->bound = Min(least, PG_INT64_MAX - 1) + 1;
	mark->xmax = now.xmax;
	mark->xcnt = now.xcnt;

	/* There is room, as the server does not list this one. */
	Assert(mark->xcnt < (uint32) GetMaxSnapshotXidCount());
	if (TransactionIdIsValid(own) && TransactionIdPrecedes(own, now.xmax))
		now.xip[mark->xcnt++] = own;
	return now.xip;
}

/*
 * Compute a bound, keep it as a mark, and return the greatest one that is right
 * for a snapshot.  If none is, the transaction can only be told so, or in READ
 * COMMITTED get 0, below which there is nothing, as its next statement gets
 * more.
 */
static int64
find_or_compute(FeedOpen *open, Snapshot snapshot)
{
	FeedMark	mark;
	const TransactionId *running = compute(open, &mark);
	int64		found;

	found = feed_marks_exchange(open, &mark, running, snapshot);
	FEED_TEST_POINT("exchanged");
	if (found == 0 && IsolationUsesXactSnapshot())
		FEED_STATE_ERROR(errmsg("no watermark of sequence \"%s\" is old enough for this transaction's snapshot",
								RelationGetRelationName(open->relation)),
						 errhint("Retry the transaction, and call fast_feed.watermark() in its first statement; or use READ COMMITTED."));

	/* The next wait() must not wait for the rows withheld from this statement. */
	if (found < mark.bound)
		pg_atomic_fetch_add_u64(&feed_my_database->ended, 1);
	return found;
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
	Oid			table;			/* the call's arguments */
	NameData	column;			/* empty if it named none */
	Oid			file;			/* of the sequence */
	Oid			sequence;
	int64		bound;
	TransactionId xmax;
	uint32		xcnt;
	TransactionId xip[FLEXIBLE_ARRAY_MEMBER];
} Given;

/* Was this given to a call with these arguments? */
static bool
is_of_call(const Given *given, Oid table, const char *column)
{
	return given->table == table && strcmp(NameStr(given->column), column) == 0;
}

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
 * given for which the same transactions have ended.
 * What was given to an earlier snapshot at this address is dropped, so that
 * there is one per address and call, however many statements there are.
 *
 * Raises an error if the call led to another sequence, or the sequence had
 * another file: it was altered or restarted since, or that was rolled back.
 * For this statement, what was given must stay; for a later one with the same
 * snapshot, after this transaction has restarted the sequence, it must not; and
 * nothing tells one from the other.
 */
static Given *
find_given(Snapshot snapshot, const FeedOpen *open, Oid table, const char *column)
{
	const FeedSequence *sequence = &open->sequence;
	slist_mutable_iter i;
	Given	   *found = NULL;

	slist_foreach_modify(i, &given_list)
	{
		Given	   *given = slist_container(Given, node, i.cur);
		bool		is_here = given->snapshot == snapshot;
		bool		is_call = is_of_call(given, table, column);
		bool		is_sequence = given->sequence == sequence->relid;

		/* Not a savepoint's, after which it would still be listed. */
		Assert(GetMemoryChunkContext(given) == TopTransactionContext);

		/* Without any, snapshot->xip can be NULL. */
		if (given->xmax == snapshot->xmax && given->xcnt == snapshot->xcnt &&
			(given->xcnt == 0 ||
			 memcmp(given->xip, snapshot->xip,
					given->xcnt * sizeof(TransactionId)) == 0))
		{
			if (is_sequence ? given->file != sequence->file : is_call)
				FEED_STATE_ERROR(errmsg("sequence \"%s\" was altered or restarted during this transaction",
										RelationGetRelationName(open->relation)),
								 errhint("Retry the transaction; if it has altered the sequence itself, commit that first."));
			if (is_sequence)
				found = given;
			if (is_sequence && is_call && is_here)
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

/* Forget at the end of the transaction what it was given, and that it has asked. */
static void
remember(void)
{
	static MemoryContextCallback at_end = {.func = forget_at_end};

	if (!forgets_at_end)
		MemoryContextRegisterResetCallback(TopTransactionContext, &at_end);
	forgets_at_end = true;
}

/*
 * The watermark of an open sequence for a snapshot; it stays the same.  The
 * column is what the call has named, or empty.
 */
static int64
watermark_for(Snapshot snapshot, FeedOpen *open, Oid table, const char *column)
{
	Size		xip_size = snapshot->xcnt * sizeof(TransactionId);
	Given	   *found = find_given(snapshot, open, table, column);
	Given	   *given;
	int64		bound;

	if (found != NULL && found->snapshot == snapshot &&
		is_of_call(found, table, column))
		return found->bound;
	bound = found != NULL ? found->bound : find_or_compute(open, snapshot);
	given = MemoryContextAlloc(TopTransactionContext,
							   offsetof(Given, xip) + xip_size);
	given->snapshot = snapshot;
	given->table = table;
	namestrcpy(&given->column, column);
	given->sequence = open->sequence.relid;
	given->file = open->sequence.file;
	given->xmax = snapshot->xmax;
	given->xcnt = snapshot->xcnt;
	if (xip_size > 0)
		memcpy(given->xip, snapshot->xip, xip_size);
	given->bound = bound;
	remember();
	slist_push_head(&given_list, &given->node);
	return bound;
}

/* Has this transaction been given a watermark, or enabled a table? */
bool
feed_watermark_is_given(void)
{
	return forgets_at_end;
}

/*
 * Open the sequence of the column by which a table is followed, for the snapshot
 * of the calling statement.  Raises an error where there can be no watermark.
 */
static void
open_followed(FunctionCallInfo fcinfo, const char *column, FeedOpen *open,
			  Snapshot *snapshot)
{
	feed_require_primary("fast_feed.watermark()");
	if (!ActiveSnapshotSet())
		elog(ERROR, "fast_feed.watermark() requires a snapshot");
	*snapshot = GetActiveSnapshot();

	/* A snapshot of a time of recovery lists no running transactions. */
	if ((*snapshot)->snapshot_type != SNAPSHOT_MVCC ||
		(*snapshot)->takenDuringRecovery)
		FEED_STATE_ERROR(errmsg("fast_feed.watermark() cannot use a snapshot taken during recovery"),
						 errhint("Begin another transaction."));
	feed_in_flight_join();
	feed_sequence_open(open,
					   feed_followed(PG_GETARG_OID(0), column,
									 get_func_namespace(fcinfo->flinfo->fn_oid),
									 *snapshot));
}

/*
 * The watermark of a table that is followed, for the calling statement: every
 * row of it with a smaller number is visible to the statement, or will never be
 * visible to any.  The column need be named only where two are followed.
 */
Datum
feed_watermark(PG_FUNCTION_ARGS)
{
	const char *column = PG_ARGISNULL(1) ? NULL : NameStr(*PG_GETARG_NAME(1));
	Snapshot	snapshot;
	FeedOpen	open;
	int64		result;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	open_followed(fcinfo, column, &open, &snapshot);
	result = watermark_for(snapshot, &open, PG_GETARG_OID(0),
						   column != NULL ? column : "");
	feed_sequence_close(&open);
	PG_RETURN_INT64(result);
}

/*
 * Raise an error unless a table has a watermark, and keep a first mark.  Nothing
 * is given: enable() is no reader, and its transaction may alter the sequence.
 */
Datum
feed_check(PG_FUNCTION_ARGS)
{
	Snapshot	snapshot;
	FeedOpen	open;

	open_followed(fcinfo, NameStr(*PG_GETARG_NAME(1)), &open, &snapshot);
	remember();
	(void) find_or_compute(&open, snapshot);
	feed_sequence_close(&open);
	PG_RETURN_VOID();
}
