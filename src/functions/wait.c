/*
 * wait.c
 *	  The SQL-callable function that waits for the end of a transaction that has
 *	  UUIDs of instance or durable order.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "fmgr.h"
#include "functions/arguments.h"
#include "ordering/in_flight.h"
#include "ordering/shared.h"
#include "ordering/watermark.h"
#include "require_session.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/wait_event.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_wait);

/*
 * Raise an error during recovery, and in a transaction whose later statements
 * could miss what is waited for.
 */
static void
require_waitable(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot execute %s during recovery", "uuidv7_fast_wait()"),
				 errhint("Call it on the primary.")));
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
	uint64		ended;
	uint64		end_us;
	uint64		now_us;

	fuuid_require_session("execute uuidv7_fast_wait()");
	fuuid_require_argument(fcinfo, 0, "seen");
	fuuid_require_argument(fcinfo, 1, "timeout");
	require_waitable();
	fuuid_in_flight_join();
	end_us = end_of_timeout(PG_GETARG_DATUM(1));

	/* Where this ends by an error, the server does what cancels the sleep. */
	ConditionVariablePrepareToSleep(&fuuid_shared->ended_cv);
	while ((ended = pg_atomic_read_u64(&fuuid_shared->ended)) ==
		   (uint64) PG_GETARG_INT64(0) &&
		   (now_us = monotonic_us()) < end_us)
	{
		uint64		ms = (end_us - now_us) / FUUID_US_PER_MS + 1;

		(void) ConditionVariableTimedSleep(&fuuid_shared->ended_cv,
										   Min(ms, INT_MAX),
										   PG_WAIT_EXTENSION);
	}
	(void) ConditionVariableCancelSleep();

	/*
	 * After the number was read.  A statement that cannot compute a watermark
	 * of its own must have one that the counted transactions do not hold back.
	 */
	fuuid_watermark_prepare();
	PG_RETURN_INT64((int64) ended);
}
