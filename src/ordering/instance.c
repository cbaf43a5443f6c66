/*
 * instance.c
 *	  The order of all backends: last_ns, a 64-bit word in shared memory, is
 *	  advanced by compare-and-exchange.  doc/internals/ordering-proof.md says
 *	  why that is enough.
 */
#include "postgres.h"

#include "access/xact.h"
#include "clock.h"
#include "ordering/in_flight.h"
#include "ordering/ordering.h"
#include "ordering/shared.h"
#include "test_point.h"

/*
 * The clock seems to be behind "last", the later one of last_ns, as read, and
 * this backend's latest UUID.  Note the lead of each, and raise an error if
 * one more UUID leads too far.  This backend may have been preempted since it
 * read the clock, while others went on: only a reading that is younger than
 * the latest UUID can tell.
 */
static void
require_lead(uint64 instance_last, uint64 last)
{
	pg_atomic_uint64 *largest = &fuuid_shared->largest_clock_lead_ns;
	uint64		noted = pg_atomic_read_u64(largest);
	uint64		clock_ns;
	uint64		lead;

	pg_memory_barrier();
	clock_ns = fuuid_clock_read();
	lead = Max(instance_last, clock_ns) - clock_ns;
	while (noted < lead &&
		   !pg_atomic_compare_exchange_u64(largest, &noted, lead))
		;
	fuuid_session_note_lead(clock_ns);
	if (last >= clock_ns)
		fuuid_clock_require_lead(last - clock_ns + 1);
}

/*
 * fuuid_ordering_reserve() in the order of all backends.  Raises an error if
 * there is no shared memory, or if the clock is too far behind.
 */
uint64
fuuid_instance_reserve(uint64 clock_ns, uint32 *count)
{
	uint32		wanted = *count;
	uint64		ns;
	uint64		first_ns;
	uint64		seen;
	uint64		last;

	if (unlikely(!fuuid_in_flight_generates))
	{
		fuuid_in_flight_join(true);
		clock_ns = fuuid_clock_read();
	}

	seen = pg_atomic_read_u64(&fuuid_shared->last_ns);
	do
	{
		first_ns = Max(seen + 1, clock_ns);
		if (unlikely(first_ns < fuuid_in_flight_published_ns))
			fuuid_in_flight_publish(first_ns);
		last = Max(seen, fuuid_session_last_ns);
		ns = clock_ns;
		*count = wanted;
		if (unlikely(last >= clock_ns))
		{
			if (last - clock_ns + 1 >= FUUID_SMALL_LEAD_NS)
				require_lead(seen, last);
			fuuid_clock_require_end(last);
			ns = last + 1;

			/* In bulk only where the clock is ahead of the latest. */
			*count = 1;
		}
		Assert(!IsTransactionState() || fuuid_in_flight_published_ns <= ns);
	} while (!pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen,
											 ns + (*count - 1)));
	FUUID_TEST_POINT("reserved");

	Assert(ns > seen && ns > fuuid_session_last_ns);
	fuuid_session_last_ns = ns + (*count - 1);
	return ns;
}

/*
 * Make all further UUIDs of the instance later than this nanosecond.  Returns
 * the resulting last_ns.
 */
uint64
fuuid_instance_advance_to(uint64 ns)
{
	uint64		seen = pg_atomic_read_u64(&fuuid_shared->last_ns);

	Assert(fuuid_in_flight_joined);
	while (seen < ns)
		if (pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen, ns))
			return ns;
	return seen;
}
