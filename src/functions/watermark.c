/*
 * watermark.c
 *	  The SQL-callable functions for readers: the watermark, and waiting for the
 *	  end of a transaction that has UUIDs of instance or durable order.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "compat.h"
#include "fmgr.h"
#include "functions/arguments.h"
#include "ordering/in_flight.h"
#include "ordering/shared.h"
#include "ordering/watermark.h"
#include "require_session.h"
#include "storage/latch.h"
#include "test_point.h"
#include "utils/fmgrprotos.h"
#include "utils/snapmgr.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_watermark);
PG_FUNCTION_INFO_V1(uuidv7_fast_wait);

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
				 errmsg("cannot execute %s during recovery", what),
				 errhint("Call it on the primary.")));
}

/*
 * uuidv7_fast_watermark() returns uuid
 *
 * Return a bound.  Every row of this database with a smaller id, generated
 * under instance or durable order by the transaction that inserted it, is
 * visible to the calling statement, or will never be visible to any.
 */
Datum
uuidv7_fast_watermark(PG_FUNCTION_ARGS pg_attribute_unused())
{
	pg_uuid_t  *uuid;
	uint64		ns;

	fuuid_require_session("execute uuidv7_fast_watermark()");
	require_primary("uuidv7_fast_watermark()");
	if (!ActiveSnapshotSet())
		elog(ERROR, "uuidv7_fast_watermark() requires a snapshot");
	fuuid_in_flight_join(false);

	ns = fuuid_watermark_for(GetActiveSnapshot());
	uuid = palloc(sizeof(pg_uuid_t));
	fuuid_uuid_encode_ns(uuid->data, ns, 0);
	return UUIDPGetDatum(uuid);
}

/*
 * Raise an error in a transaction whose later statements could miss what is
 * waited for.
 */
static void
require_waitable(void)
{
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("uuidv7_fast_wait() requires isolation level READ COMMITTED"),
				 errdetail("Later statements of the transaction would not see what is committed during the wait.")));
	if (fuuid_in_flight_published_ns != FUUID_NOTHING_PUBLISHED)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot execute uuidv7_fast_wait() in a transaction that has generated UUIDs"),
				 errdetail("The transaction holds the watermark back."),
				 errhint("End the transaction first.")));

	/* Also where what held it back has ended, and changed no snapshot. */
	if (fuuid_watermark_is_given())
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot execute uuidv7_fast_wait() in a transaction that has called uuidv7_fast_watermark()"),
				 errdetail("Later statements of the transaction could be given the same watermark again."),
				 errhint("End the transaction first.")));
}

static uint64
monotonic_us(void)
{
	return fuuid_clock_monotonic_ns() / FUUID_NS_PER_US;
}

/*
 * The monotonic time at which a timeout that begins now is over.  Its days and
 * months are those of the calendar.
 */
static uint64
end_of_timeout(Datum timeout)
{
	TimestampTz now = GetCurrentTimestamp();
	TimestampTz end;

	end = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												  TimestampTzGetDatum(now),
												  timeout));
	return end <= now ? 0 : monotonic_us() + ((uint64) end - (uint64) now);
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
 * others waiting.  Nobody wakes this backend: it is in no list, and looks
 * afterwards whether what it waits for has come.
 */
static void
sleep_until_due(WaitGroup *group, uint64 end_us)
{
	static uint64 own_due_us = 0;
	uint64		now_us = monotonic_us();
	uint64		seen = pg_atomic_read_u64(&group->due_us);
	uint64		due_us = Max(next_due(seen, now_us, SHARED_CALL_US),
							 next_due(own_due_us, now_us, CALL_US));

	for (; now_us < Min(due_us, end_us); now_us = monotonic_us())
	{
		uint64		us = Min(due_us, end_us) - now_us;

		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 (us + FUUID_US_PER_MS - 1) / FUUID_US_PER_MS,
						 WAIT_EVENT);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	if (now_us < due_us)
		return;
	own_due_us = next_due(own_due_us, now_us, CALL_US);
	do
		due_us = next_due(seen, now_us, SHARED_CALL_US);
	while (!pg_atomic_compare_exchange_u64(&group->due_us, &seen, due_us));
}

/*
 * uuidv7_fast_wait(seen bigint, timeout interval DEFAULT '1 s')
 *		returns bigint
 *
 * Return the number of transactions with UUIDs of instance or durable order
 * that have ended.  While that is "seen", wait for the next one, until the
 * timeout is over.  It begins anew, at random, when the server starts.
 *
 * A row that a later statement does not read because its transaction is in
 * flight, or another one that holds the watermark back, is of one that is not
 * counted yet.
 */
Datum
uuidv7_fast_wait(PG_FUNCTION_ARGS)
{
	WaitGroup  *group;
	uint64		ended;
	uint64		end_us;
	uint64		now_us;

	fuuid_require_session("execute uuidv7_fast_wait()");
	fuuid_require_argument(fcinfo, 0, "seen");
	fuuid_require_argument(fcinfo, 1, "timeout");
	require_primary("uuidv7_fast_wait()");
	require_waitable();
	fuuid_in_flight_join(false);
	end_us = end_of_timeout(PG_GETARG_DATUM(1));
	group = fuuid_in_flight_wait_group;
	sleep_until_due(group, end_us);
	FUUID_TEST_POINT("wait_due");

	/* Where this ends by an error, the server does what cancels the sleep. */
	ConditionVariablePrepareToSleep(&group->ended_cv);
	FUUID_TEST_POINT("wait_listed");
	while ((ended = pg_atomic_read_u64(&group->ended)) ==
		   (uint64) PG_GETARG_INT64(0) &&
		   (now_us = monotonic_us()) < end_us)
	{
		uint64		ms = (end_us - now_us) / FUUID_US_PER_MS + 1;

		(void) ConditionVariableTimedSleep(&group->ended_cv,
										   Min(ms, INT_MAX), WAIT_EVENT);
	}
	(void) ConditionVariableCancelSleep();

	/*
	 * After the number was read.  A statement that cannot compute a watermark
	 * of its own must have one that the counted transactions do not hold back.
	 */
	fuuid_watermark_after_wait();
	PG_RETURN_INT64((int64) ended);
}
