/*
 * read.c
 *	  The SQL-callable functions for readers: the watermark, and waiting for the
 *	  end of a transaction that has feed ids.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "compat.h"
#include "functions/arguments.h"
#include "feed/feed.h"
#include "test_point.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(uuidv7_feed_watermark);
PG_FUNCTION_INFO_V1(uuidv7_feed_position_watermark);
PG_FUNCTION_INFO_V1(uuidv7_feed_wait);

/*
 * Each wake-up takes some microseconds of the backend that commits.  So in the
 * mean a session calls once per millisecond, and up to a hundred sessions of a
 * database together ten times; what comes sooner sleeps first.  After a time
 * without calls some are free: rows that come seldom need not come evenly.
 */
#define CALL_US			1000
#define SHARED_CALL_US	100
#define FREE_US			10000
#define SLEEP_MAX_US	10000
#define WAIT_EVENT		FUUID_WAIT_EVENT("FastUuidWait")

static void
require_primary(const char *what)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot %s during recovery", what),
				 errhint("Call it on the primary.")));
}

/* The watermark of the calling statement; 0 if there is none. */
static uint64
watermark_ns(const char *what)
{
	fuuid_require_session(what);
	if (!ActiveSnapshotSet())
		elog(ERROR, "cannot %s without a snapshot", what);
	require_primary(what);
	fuuid_in_flight_join();
	return fuuid_watermark_for(GetActiveSnapshot());
}

/*
 * The watermark: every row of this database with a smaller feed id, generated
 * by the transaction that inserted it, is visible to the calling statement, or
 * will never be visible to any.
 */
Datum
uuidv7_feed_watermark(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return fuuid_uuid_of_ns(watermark_ns("execute uuidv7_feed_watermark()"), 0);
}

/* The same bound for positions. */
Datum
uuidv7_feed_position_watermark(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return fuuid_bigint_of_ns(
		watermark_ns("execute uuidv7_feed_position_watermark()"));
}

/* Not where later statements of the transaction could miss what ended. */
static void
require_waitable(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("uuidv7_feed_wait() requires isolation level READ COMMITTED"),
				 errdetail("Later statements of the transaction would not see what is committed during the wait.")));
	if (fuuid_in_flight_published_ns != FUUID_NOTHING_PUBLISHED)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot execute uuidv7_feed_wait() in a transaction that has generated feed ids"),
				 errdetail("The transaction holds the watermark back."),
				 errhint("End the transaction first.")));

	/* Also where what held it back has ended, and changed no snapshot. */
	if (fuuid_watermark_is_given())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot execute uuidv7_feed_wait() in a transaction that has asked for the watermark"),
				 errdetail("Later statements of the transaction could be given the same watermark again."),
				 errhint("End the transaction first.")));
}

/* When a timeout that begins now is over; its days are the calendar's. */
static uint64
end_of_timeout(Datum timeout)
{
	TimestampTz now = GetCurrentTimestamp();
	Datum		end_datum = DirectFunctionCall2(timestamptz_pl_interval,
												TimestampTzGetDatum(now),
												timeout);
	TimestampTz end = DatumGetTimestampTz(end_datum);

	return end <= now ? 0 :
		fuuid_clock_monotonic_us() + ((uint64) end - (uint64) now);
}

/* When the next call is due, if the one before was due then. */
static uint64
next_due(uint64 due_us, uint64 now_us, uint64 call_us)
{
	due_us = Max(due_us + FREE_US, now_us) - FREE_US + call_us;
	return Min(due_us, now_us + SLEEP_MAX_US);
}

/*
 * Sleep until this call is due (the "virtual scheduling" of ITU-T I.371), but
 * not beyond the timeout; then it does not count, or short timeouts would keep
 * others waiting.  Nobody wakes this backend: it is in no list yet.
 */
static void
sleep_until_due(WaitGroup *group, uint64 end_us)
{
	static uint64 own_due_us = 0;
	uint64		now_us = fuuid_clock_monotonic_us();
	uint64		seen = pg_atomic_read_u64(&group->due_us);
	uint64		due_us = Max(next_due(seen, now_us, SHARED_CALL_US),
							 next_due(own_due_us, now_us, CALL_US));

	for (; now_us < Min(due_us, end_us); now_us = fuuid_clock_monotonic_us())
		fuuid_clock_sleep(Min(due_us, end_us) - now_us, WAIT_EVENT);
	if (now_us < due_us)
		return;
	own_due_us = next_due(own_due_us, now_us, CALL_US);
	do
		due_us = next_due(seen, now_us, SHARED_CALL_US);
	while (!pg_atomic_compare_exchange_u64(&group->due_us, &seen, due_us));
}

/*
 * Return the number of transactions with feed ids that have ended.  While that
 * is "seen", wait for the next one, until the timeout is over.  It begins anew,
 * at random, when the server starts.  A row that a later statement does not
 * read because a transaction is in flight, or holds the watermark back, waits
 * for the end of one that is not counted yet.
 */
Datum
uuidv7_feed_wait(PG_FUNCTION_ARGS)
{
	WaitGroup  *group;
	uint64		ended;
	uint64		end_us;
	uint64		now_us;

	fuuid_require_session("execute uuidv7_feed_wait()");
	fuuid_require_argument(fcinfo, 0, "seen");
	fuuid_require_argument(fcinfo, 1, "timeout");
	require_primary("execute uuidv7_feed_wait()");
	require_waitable();
	fuuid_in_flight_join();
	end_us = end_of_timeout(PG_GETARG_DATUM(1));
	group = fuuid_in_flight_wait_group;
	sleep_until_due(group, end_us);
	FUUID_TEST_POINT("wait_due");

	/* Where this ends by an error, the server does what cancels the sleep. */
	ConditionVariablePrepareToSleep(&group->ended_cv);
	FUUID_TEST_POINT("wait_listed");
	while ((ended = pg_atomic_read_u64(&group->ended)) ==
		   (uint64) PG_GETARG_INT64(0) &&
		   (now_us = fuuid_clock_monotonic_us()) < end_us)
	{
		uint64		ms = (end_us - now_us) / FUUID_US_PER_MS + 1;

		(void) ConditionVariableTimedSleep(&group->ended_cv,
										   Min(ms, INT_MAX), WAIT_EVENT);
	}
	(void) ConditionVariableCancelSleep();

	/* After the number was read: those counted must not hold it back. */
	fuuid_watermark_after_wait();
	PG_RETURN_INT64((int64) ended);
}
