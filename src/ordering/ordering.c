/*
 * ordering.c
 *	  Which order is in force, and the ways to the wider ones.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering/durable.h"
#include "ordering/instance.h"
#include "ordering/ordering.h"
#include "ordering/shared.h"
#include "test_point.h"

int			fuuid_ordering_scope = FUUID_ORDERING_SESSION;
bool		fuuid_ordering_session_only = true;

/* How far an observed UUID may be ahead of the clock if no setting limits that. */
#define DEFAULT_LEAD_LIMIT_NS	FUUID_NS_PER_S

/*
 * Put the scope that the settings ask for in force.
 */
void
fuuid_ordering_set_scope(OrderingScope scope)
{
	fuuid_ordering_scope = scope;
	fuuid_ordering_session_only = scope == FUUID_ORDERING_SESSION && !fuuid_instance_joined();
}

/*
 * fuuid_ordering_reserve() if other backends matter: under a wider order than session
 * order, or after it, because the instance may have been reset.
 */
uint64
fuuid_ordering_reserve_shared(uint64 clock_ns, uint32 count)
{
	switch ((OrderingScope) fuuid_ordering_scope)
	{
		case FUUID_ORDERING_INSTANCE:
			return fuuid_instance_reserve(clock_ns, count);
		case FUUID_ORDERING_DURABLE:
			return fuuid_durable_reserve(clock_ns, count);
		case FUUID_ORDERING_SESSION:
			break;
	}

	/* A reading of the clock from before the reset does not count either. */
	if (fuuid_instance_follow_reset())
		clock_ns = fuuid_clock_read();
	return fuuid_session_reserve(clock_ns, count);
}

/*
 * Raise an error if an observed UUID of this nanosecond is too far ahead of the clock.
 */
static void
require_observable(uint64 ns)
{
	uint64		clock_ns = fuuid_clock_read();
	uint64		lead = ns > clock_ns ? ns - clock_ns : 0;
	uint64		limit = fuuid_max_clock_lead < 0 ? DEFAULT_LEAD_LIMIT_NS : fuuid_max_clock_lead * FUUID_NS_PER_MS;

	if (lead >= FUUID_SMALL_LEAD_NS && lead > limit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("UUID is too far ahead of the clock"),
				 errdetail("It is ahead by " UINT64_FORMAT " ms; the limit is " UINT64_FORMAT " ms.",
						   lead / FUUID_NS_PER_MS, limit / FUUID_NS_PER_MS),
				 errhint("If the UUID is valid, correct the clock or increase \"fast_uuid.max_clock_lead\".")));
}

/*
 * Make all further UUIDs later than this nanosecond: those of this backend, and under a
 * wider order those of all.  Raises an error, and leaves the order as it is, if that is
 * too far ahead of the clock, or if the order in force is not available.
 */
void
fuuid_ordering_advance_past(uint64 ns)
{
	uint64		epoch = 0;
	uint64		last_ns;

	require_observable(ns);
	if (fuuid_ordering_scope != FUUID_ORDERING_SESSION)
	{
		fuuid_instance_join();
		do
		{
			epoch = fuuid_instance_epoch();

			/* What the clock showed before a reset does not count after it. */
			require_observable(ns);
		} while ((fuuid_ordering_scope == FUUID_ORDERING_DURABLE && !fuuid_durable_cover(ns, epoch)) ||
				 !fuuid_instance_advance_to(ns, epoch, &last_ns));
	}

	/* A reset that came before does not undo this, but one that comes after it does. */
	FUUID_TEST_POINT("raised");
	if (fuuid_instance_joined() && fuuid_instance_follow_reset())
	{
		if (fuuid_ordering_scope == FUUID_ORDERING_SESSION)
			require_observable(ns);
		else if (fuuid_instance_last_epoch != epoch)
			return;
	}
	fuuid_session_last_ns = Max(fuuid_session_last_ns, ns);
}

/*
 * Give up the order with earlier UUIDs: for this backend, under a wider order for all.
 */
void
fuuid_ordering_reset(void)
{
	if (fuuid_ordering_scope == FUUID_ORDERING_INSTANCE)
		fuuid_instance_reset();
	if (fuuid_ordering_scope == FUUID_ORDERING_DURABLE)
		fuuid_durable_reset();
	fuuid_session_reset();
}
