/*
 * ordering.c
 *	  Which order is in force, and the ways to the wider ones.
 */
#include "postgres.h"

#include "clock.h"
#include "miscadmin.h"
#include "ordering/in_flight.h"
#include "ordering/ordering.h"

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
		fuuid_in_flight_join();
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
		(void) fuuid_instance_advance_to(ns);
	fuuid_session_last_ns = Max(fuuid_session_last_ns, ns);
}

/*
 * Forget the latest UUID of the instance, for all.  Raises an error, and
 * leaves the order as it is, if this transaction has UUIDs of it, or if
 * another backend has joined it.
 */
static void
reset_instance(void)
{
	StringInfoData pids;
	int			others;

	fuuid_in_flight_join();
	if (fuuid_in_flight_published_ns != FUUID_NOTHING_PUBLISHED)
		ereport(ERROR,
				(errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
				 errmsg("cannot reset the order of UUIDs in a transaction that has generated some"),
				 errhint("End the transaction first.")));

	initStringInfo(&pids);
	for (int tries = 1;; tries++)
	{
		resetStringInfo(&pids);
		if (fuuid_ordering_scope == FUUID_ORDERING_DURABLE)
			others = fuuid_durable_reset(&pids);
		else
		{
			others = fuuid_instance_reset(&pids);
			fuuid_durable_forget();
		}
		if (others == 0)
			return;

		/* Backends that are about to exit get time, as in DROP DATABASE. */
		if (tries == 50)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_IN_USE),
					 errmsg("order of UUIDs is being used by other sessions"),
					 errdetail_plural("%d other session has generated, observed or waited for UUIDs in it, or asked for the watermark: process ID %s.",
									  "%d other sessions have generated, observed or waited for UUIDs in it, or asked for the watermark: process IDs %s.",
									  others, others, pids.data),
					 errhint("End these sessions first.")));
		CHECK_FOR_INTERRUPTS();
		pg_usleep(100 * 1000L);
	}
}

/*
 * Give up the order with earlier UUIDs: for this backend, under a wider order
 * for all.
 */
void
fuuid_ordering_reset(void)
{
	if (fuuid_ordering_scope != FUUID_ORDERING_SESSION)
		reset_instance();
	fuuid_session_reset();
}
