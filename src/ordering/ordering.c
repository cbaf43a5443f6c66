/*
 * ordering.c
 *	  Which order is in force; moving it forward, and back to the clock.
 */
#include "postgres.h"

#include "clock.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "ordering/in_flight.h"
#include "ordering/ordering.h"
#include "ordering/shared.h"
#include "ordering/watermark.h"
#include "test_point.h"

int			fuuid_ordering_scope = FUUID_ORDERING_SESSION;

/* How far an observed UUID may be ahead of the clock if no setting says so. */
#define DEFAULT_LEAD_LIMIT_NS	FUUID_NS_PER_S

/*
 * Make all further UUIDs later than this nanosecond: those of this backend,
 * and under a wider order those of all.  Raises an error, and leaves the order
 * as it is, if that is too far ahead of the clock, or if the order in force is
 * not available.
 */
void
fuuid_ordering_advance_past(uint64 ns)
{
	uint64		limit = fuuid_max_clock_lead < 0 ? DEFAULT_LEAD_LIMIT_NS :
		fuuid_max_clock_lead * FUUID_NS_PER_MS;
	uint64		clock_ns;
	uint64		lead;

	if (fuuid_ordering_scope != FUUID_ORDERING_SESSION)
		fuuid_in_flight_join(false);
	clock_ns = fuuid_clock_read();
	lead = Max(ns, clock_ns) - clock_ns;
	if (lead >= FUUID_SMALL_LEAD_NS && lead > limit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("UUID is too far ahead of the clock"),
				 errdetail("It is ahead by " UINT64_FORMAT " ms; the limit is " UINT64_FORMAT " ms.",
						   lead / FUUID_NS_PER_MS, limit / FUUID_NS_PER_MS),
				 errhint("If the UUID is valid, correct the clock or increase \"fast_uuid.max_clock_lead\".")));
	if (fuuid_ordering_scope == FUUID_ORDERING_DURABLE)
		fuuid_durable_cover(ns);
	if (fuuid_ordering_scope != FUUID_ORDERING_SESSION)
	{
		(void) fuuid_instance_advance_to(ns);
		fuuid_in_flight_join(true);
	}
	fuuid_session_last_ns = Max(fuuid_session_last_ns, ns);
}

/*
 * Forget the latest UUID of the instance, unless other backends have joined
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
		fuuid_durable_forget();
		pg_atomic_write_u64(&fuuid_shared->last_ns, 0);
		pg_atomic_write_u64(&fuuid_shared->largest_clock_lead_ns, 0);
	}
	LWLockRelease(&fuuid_shared->lock);
	return others;
}

/*
 * Reset the instance for all, and if "durable" return the upper bound to the
 * clock: in one step for others, who need the sequence's page to generate.
 * Raises an error, and leaves the order as it is, if this transaction has UUIDs
 * of it, or if another backend has joined it.
 */
static void
reset_instance(bool durable)
{
	StringInfoData pids;
	UpperBound	bound;
	int			others;

	fuuid_in_flight_join(false);
	if (fuuid_in_flight_published_ns != FUUID_NOTHING_PUBLISHED)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot reset the order of UUIDs in a transaction that has generated some"),
				 errhint("End the transaction first.")));

	/* Memory may run out here, and must not with the locks held. */
	initStringInfo(&pids);
	enlargeStringInfo(&pids, MaxBackends * (int) sizeof("-2147483648, "));
	for (int tries = 1;; tries++)
	{
		uint64		clock_ns = durable ? fuuid_clock_read() : 0;

		if (durable)
			fuuid_durable_lock(&bound);
		others = reset_shared(&pids);
		FUUID_TEST_POINT("reset");
		if (durable && others == 0)
			fuuid_durable_write(&bound, clock_ns);
		if (durable)
			fuuid_upper_bound_unlock(&bound);
		if (others == 0)
			break;

		/* Backends that are about to exit get time, as in DROP DATABASE. */
		if (tries == 50)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("order of UUIDs is being used by other sessions"),
					 errdetail_plural("%d other session has generated, observed or waited for UUIDs in it, or asked for the watermark: process ID %s.",
									  "%d other sessions have generated, observed or waited for UUIDs in it, or asked for the watermark: process IDs %s.",
									  others, others, pids.data),
					 errhint("End these sessions first.")));
		resetStringInfo(&pids);
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100 * 1000L);
	}
	fuuid_in_flight_join(true);
}

/* Give up the order with earlier UUIDs; under a wider order, for all. */
void
fuuid_ordering_reset(void)
{
	if (fuuid_ordering_scope != FUUID_ORDERING_SESSION)
		reset_instance(fuuid_ordering_scope == FUUID_ORDERING_DURABLE);
	fuuid_session_reset();
}
