/*
 * adjust.c
 *	  The SQL-callable functions that move the order of feed ids forward, and
 *	  back to the clock.
 */
#include "postgres.h"

#include "clock.h"
#include "feed/feed.h"
#include "functions/arguments.h"
#include "lib/stringinfo.h"
#include "test_point.h"

PG_FUNCTION_INFO_V1(uuidv7_feed_observe);
PG_FUNCTION_INFO_V1(uuidv7_feed_position_observe);
PG_FUNCTION_INFO_V1(uuidv7_feed_reset);

/* Make all further feed ids later than this nanosecond. */
static void
observe(uint64 ns)
{
	fuuid_in_flight_join();
	fuuid_clock_require_observable(ns);
	fuuid_feed_cover(ns);
	(void) fuuid_feed_advance_to(ns);
}

/* Make all further feed ids greater than a version 7 UUID of any generator. */
Datum
uuidv7_feed_observe(PG_FUNCTION_ARGS)
{
	fuuid_require_session("execute uuidv7_feed_observe()");
	observe(fuuid_observed_ns(PG_GETARG_DATUM(0)));
	PG_RETURN_VOID();
}

/* The same for a position, or the nanosecond of an id. */
Datum
uuidv7_feed_position_observe(PG_FUNCTION_ARGS)
{
	int64		position = PG_GETARG_INT64(0);

	fuuid_require_session("execute uuidv7_feed_position_observe()");
	if (position < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"position\" must not be negative")));
	observe((uint64) position);
	PG_RETURN_VOID();
}

/*
 * Forget the latest feed id of the instance, unless other backends have joined
 * its order: then only append their process IDs to *pids, and return their
 * number.  Nobody joins meanwhile, so no call at work has to know of resets.
 */
static int
reset_shared(StringInfo pids)
{
	int			others = 0;

	Assert(fuuid_in_flight_joined &&
		   fuuid_in_flight_published_ns == FUUID_NOTHING_PUBLISHED);
	LWLockAcquire(&fuuid_shared->lock, LW_EXCLUSIVE);
	for (uint32 i = 0; i < fuuid_shared->in_flight_used; i++)
	{
		int			pid = fuuid_shared->in_flight[i].pid;

		if (pid != 0 && pid != MyProcPid)
			appendStringInfo(pids, "%s%d", others++ > 0 ? ", " : "", pid);
	}
	FUUID_TEST_POINT("resetting");

	/*
	 * A backend that has left did so without the lock.  Its last exchange of
	 * last_ns must not come after ours: see leave() in in_flight.c.
	 */
	pg_memory_barrier();
	if (others == 0)
	{
		fuuid_shared->incarnation++;
		fuuid_watermark_forget();
		pg_atomic_write_u64(&fuuid_shared->last_ns, 0);
		pg_atomic_write_u64(&fuuid_shared->largest_clock_lead_ns, 0);
	}
	LWLockRelease(&fuuid_shared->lock);
	return others;
}

/*
 * Forget the latest feed id, for all, and return the upper bound of this
 * database to the clock: in one step for others, who need the sequence's page
 * to generate.  Raises an error, and leaves the order as it is, if this
 * transaction has feed ids, or if another backend has joined the order.
 */
Datum
uuidv7_feed_reset(PG_FUNCTION_ARGS pg_attribute_unused())
{
	StringInfoData pids;
	UpperBound	bound;
	int			others;

	fuuid_require_session("execute uuidv7_feed_reset()");
	fuuid_in_flight_join();
	if (fuuid_in_flight_published_ns != FUUID_NOTHING_PUBLISHED)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot reset the order of feed ids in a transaction that has generated some"),
				 errhint("End the transaction first.")));

	/* Memory may run out here, and must not with the locks held. */
	initStringInfo(&pids);
	enlargeStringInfo(&pids, MaxBackends * (int) sizeof("-2147483648, "));
	for (int tries = 1;; tries++)
	{
		uint64		clock_ns = fuuid_clock_read();

		fuuid_feed_lock_bound(&bound);
		others = reset_shared(&pids);
		FUUID_TEST_POINT("reset");
		if (others == 0)
			fuuid_feed_write_bound(&bound, clock_ns);
		fuuid_upper_bound_unlock(&bound);
		if (others == 0)
			break;

		/* Backends that are about to exit get time, as in DROP DATABASE. */
		if (tries == 50)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("order of feed ids is being used by other sessions"),
					 errdetail_plural("%d other session has generated, observed or waited for feed ids, or asked for their watermark: process ID %s.",
									  "%d other sessions have generated, observed or waited for feed ids, or asked for their watermark: process IDs %s.",
									  others, others, pids.data),
					 errhint("End these sessions first.")));
		resetStringInfo(&pids);
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100 * 1000L);
	}
	fuuid_feed_latest_ns = 0;
	PG_RETURN_VOID();
}
