/*
 * wait.c
 *	  Waiting for the end of a transaction that has drawn numbers.
 */
#include "postgres.h"

#include "compat.h"
#include "feed.h"
#include "utils/fmgrprotos.h"

PG_FUNCTION_INFO_V1(feed_wait);

/*
 * Each wake-up takes some microseconds of the backend that commits.  So calls are
 * limited to one per millisecond and session, and ten per millisecond and
 * database; those that come sooner sleep first.  After a time without calls a
 * short burst is allowed.
 */
#define CALL_US			1000
#define SHARED_CALL_US	100
#define FREE_US			10000
#define SLEEP_MAX_US	10000
#define WAIT_EVENT		FEED_WAIT_EVENT("FastFeedWait")

/*
 * Why a transaction would wait in vain: its snapshot does not move, it holds
 * the watermark back itself, or it could be given the same one again.
 */
static const char *
why_in_vain(void)
{
	if (IsolationUsesXactSnapshot())
		return "The transaction's isolation level is not READ COMMITTED.";
	if (feed_in_flight_has_published())
		return "The transaction has drawn numbers, and so holds back the watermark itself.";
	return feed_watermark_is_given() ? "The transaction has already called fast_feed.watermark()." : NULL;
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
		feed_monotonic_us() + ((uint64) end - (uint64) now);
}

/* When the next call is due, given when the one before was. */
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
sleep_until_due(uint64 end_us, uint32 event)
{
	static uint64 own_due_us = 0;
	pg_atomic_uint64 *due = &feed_my_database->due_us;
	uint64		now_us = feed_monotonic_us();
	uint64		seen = pg_atomic_read_u64(due);
	uint64		due_us = Max(next_due(seen, now_us, SHARED_CALL_US),
							 next_due(own_due_us, now_us, CALL_US));

	for (; now_us < Min(due_us, end_us); now_us = feed_monotonic_us())
	{
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (Min(due_us, end_us) - now_us) / 1000 + 1, event);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (now_us < due_us)
		return;
	own_due_us = next_due(own_due_us, now_us, CALL_US);
	do
		due_us = next_due(seen, now_us, SHARED_CALL_US);
	while (!pg_atomic_compare_exchange_u64(due, &seen, due_us));
}

/*
 * Return a number that has changed since "seen" if a later statement can have
 * more rows than one that was executed when it was "seen"; else wait for that,
 * until the timeout is over.  It counts the transactions of this database that
 * have published and ended, and the statements that were given less than there
 * was.  It begins anew, at random, when the server starts.
 */
Datum
feed_wait(PG_FUNCTION_ARGS)
{
	static uint32 event = 0;
	uint64		ended;
	uint64		end_us;
	uint64		now_us;
	const char *why = why_in_vain();

	/* Called in a loop, it must not return at once each time. */
	if (PG_ARGISNULL(0) || PG_ARGISNULL(1))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("arguments of fast_feed.wait() must not be null"),
				 errhint("Begin with 0, and hand back what was returned.")));
	feed_require_primary("fast_feed.wait()");
	if (why != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("fast_feed.wait() cannot be used in this transaction"),
				 errdetail_internal("%s", why),
				 errhint("Call it in a transaction of its own.")));
	feed_in_flight_join();
	if (event == 0)
		event = WAIT_EVENT;
	end_us = end_of_timeout(PG_GETARG_DATUM(1));
	sleep_until_due(end_us, event);
	FEED_TEST_POINT("wait_due");

	/* Where this ends by an error, the server does what cancels the sleep. */
	ConditionVariablePrepareToSleep(&feed_my_database->ended_cv);
	FEED_TEST_POINT("wait_listed");
	while ((ended = pg_atomic_read_u64(&feed_my_database->ended)) ==
		   (uint64) PG_GETARG_INT64(0) &&
		   (now_us = feed_monotonic_us()) < end_us)
	{
		uint64		ms = (end_us - now_us) / 1000 + 1;

		(void) ConditionVariableTimedSleep(&feed_my_database->ended_cv,
										   Min(ms, INT_MAX), event);
	}
	(void) ConditionVariableCancelSleep();
	PG_RETURN_INT64((int64) ended);
}
