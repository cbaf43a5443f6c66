/*
 * instance.c
 *	  The order of all backends: one 64-bit word in shared memory, advanced by
 *	  compare-and-exchange.  doc/ordering.md says why that is enough.
 */
#include "postgres.h"

#include "clock.h"
#include "miscadmin.h"
#include "ordering/in_flight.h"
#include "ordering/instance.h"
#include "ordering/shared.h"
#include "storage/proc.h"
#include "test_point.h"

/* Has this backend generated, or observed, under this order? */
static bool joined = false;

uint64		fuuid_instance_last_epoch = 0;

bool
fuuid_instance_joined(void)
{
	return joined;
}

/*
 * Where the instance was reset since this backend last looked, its own latest value
 * does not count any more, and true is returned.  Nor while a reset goes on: until it
 * has ended, who still finds the old word goes on from that.  A backend that has not
 * looked yet knows of no reset.
 */
bool
fuuid_instance_follow_reset(void)
{
	uint64		epoch = pg_atomic_read_u64(&fuuid_shared->epoch);

	if (likely(epoch == fuuid_instance_last_epoch && FUUID_RESETS_GOING_ON(epoch) == 0))
		return false;
	fuuid_session_reset();
	fuuid_instance_last_epoch = epoch;
	return true;
}

/*
 * Called before the first value of this backend under this order.  Raises an error
 * where there is no shared memory.
 */
void
fuuid_instance_join(void)
{
	if (joined)
		return;
	FUUID_TEST_POINT("entering");
	fuuid_shared_require();
	fuuid_in_flight_register();
	joined = true;
}

/*
 * The clock is behind "last", which is the latest value of the instance or of this
 * backend: note the lead of each, and raise an error where it is too far behind.
 */
static void
require_lead(uint64 instance_last, uint64 last, uint64 clock_ns, uint32 count)
{
	uint64		lead = instance_last > clock_ns ? instance_last - clock_ns : 0;
	uint64		largest = pg_atomic_read_u64(&fuuid_shared->largest_clock_lead_ns);

	while (largest < lead &&
		   !pg_atomic_compare_exchange_u64(&fuuid_shared->largest_clock_lead_ns, &largest, lead))
		;
	fuuid_session_note_lead(clock_ns);
	fuuid_clock_require_lead(last - clock_ns + count);
}

/*
 * fuuid_ordering_reserve() in the order of all backends.  Raises an error where
 * there is no shared memory, or where the clock is too far behind.
 */
uint64
fuuid_instance_reserve(uint64 clock_ns, uint32 count)
{
	uint64		ns;
	uint64		seen;
	uint64		last;
	bool		read_since = false;

	if (unlikely(!joined))
		fuuid_instance_join();

	seen = pg_atomic_read_u64(&fuuid_shared->last_ns);
	for (;;)
	{
		/*
		 * The epoch after the word.  A reading of the clock from before a reset does
		 * not count either.
		 */
		pg_read_barrier();
		if (unlikely(fuuid_instance_follow_reset()))
			clock_ns = fuuid_clock_read();

		fuuid_in_flight_publish(Max(seen + 1, clock_ns));
		last = Max(seen, fuuid_session_last_ns);
		ns = clock_ns;
		if (unlikely(last >= clock_ns))
		{
			if (last - clock_ns + count >= FUUID_SMALL_LEAD_NS)
			{
				/*
				 * This backend may have been preempted since it read the clock,
				 * while others went on.  Only a reading that is younger than the
				 * latest value tells that the clock is behind it.
				 */
				if (!read_since)
				{
					pg_memory_barrier();
					clock_ns = fuuid_clock_read();
					read_since = true;
					continue;
				}
				require_lead(seen, last, clock_ns, count);
			}
			fuuid_clock_require_end(last, count);
			ns = last + 1;
		}
		if (pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen, ns + (count - 1)))
			break;
		read_since = false;
	}
	FUUID_TEST_POINT("reserved");

	fuuid_session_last_ns = ns + (count - 1);
	return ns;
}

/*
 * The present epoch.
 */
uint64
fuuid_instance_epoch(void)
{
	uint64		epoch = pg_atomic_read_u64(&fuuid_shared->epoch);

	pg_read_barrier();
	return epoch;
}

/*
 * Make all further values of the instance greater than this nanosecond.  The latest
 * one is returned in *last_ns.  False, and nothing was done, where the instance was
 * reset since that epoch: a reset gives the word a value that it never had.
 */
bool
fuuid_instance_advance_to(uint64 ns, uint64 epoch, uint64 *last_ns)
{
	uint64		seen = pg_atomic_read_u64(&fuuid_shared->last_ns);

	for (;;)
	{
		/* The epoch after the word. */
		pg_read_barrier();
		if (pg_atomic_read_u64(&fuuid_shared->epoch) != epoch)
			return false;
		*last_ns = Max(seen, ns);
		if (seen >= ns || pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen, ns))
			return true;
	}
}

/*
 * False where there is no shared memory.
 */
bool
fuuid_instance_stats(OrderingStats *stats)
{
	if (!fuuid_shared_attach())
		return false;
	stats->last_ns = pg_atomic_read_u64(&fuuid_shared->last_ns);
	stats->largest_clock_lead_ns = pg_atomic_read_u64(&fuuid_shared->largest_clock_lead_ns);
	return true;
}

/*
 * Forget the latest value of the instance, for all backends.
 *
 * The word becomes a value that it never had, the number of this reset, so that a
 * reservation at the same time has either succeeded before, or fails its exchange and
 * starts again.  Until the reset has ended a backend forgets its own latest value at
 * every look, so that what it still takes from the old word does not outlive the
 * reset.  Others can go on at the same time.
 */
void
fuuid_instance_reset(void)
{
	uint64		epoch;

	fuuid_shared_require();
	epoch = pg_atomic_add_fetch_u64(&fuuid_shared->epoch, FUUID_RESET_BEGINS);
	pg_atomic_exchange_u64(&fuuid_shared->last_ns, FUUID_RESETS_BEGUN(epoch));
	pg_atomic_write_u64(&fuuid_shared->largest_clock_lead_ns, 0);
	pg_atomic_sub_fetch_u64(&fuuid_shared->epoch, FUUID_RESET_ENDS);
}
