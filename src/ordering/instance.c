/*
 * instance.c
 *	  The order of all backends: last_ns, a 64-bit word in shared memory, is advanced by
 *	  compare-and-exchange.  doc/internals/ordering-proof.md says why that is enough.
 */
#include "postgres.h"

#include "clock.h"
#include "miscadmin.h"
#include "ordering/in_flight.h"
#include "ordering/instance.h"
#include "ordering/shared.h"
#include "storage/proc.h"
#include "test_point.h"

/* Has this backend generated, or observed, under instance or durable order? */
static bool joined = false;

uint64		fuuid_instance_last_epoch = 0;

bool
fuuid_instance_joined(void)
{
	return joined;
}

/*
 * If the instance was reset since this backend last looked, forget this backend's latest
 * UUID, and return true.  Do the same at every look while a reset goes on, because until
 * it has ended a call can still find the old last_ns, and continue from that.  A backend
 * that has not looked yet knows of no reset (epoch 0).
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
 * Join the order of the instance, before this backend's first UUID under it.  Raises an
 * error if there is no shared memory.
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
 * The clock seems to be behind "last", the later one of last_ns, as read, and this
 * backend's latest UUID.  Note the lead of each, and raise an error if "count" UUIDs more
 * lead too far.  This backend may have been preempted since it read the clock, while
 * others went on: only a reading that is younger than the latest UUID can tell.
 */
static void
require_lead(uint64 instance_last, uint64 last, uint32 count)
{
	uint64		clock_ns;
	uint64		lead;
	uint64		largest = pg_atomic_read_u64(&fuuid_shared->largest_clock_lead_ns);

	pg_memory_barrier();
	clock_ns = fuuid_clock_read();
	lead = instance_last > clock_ns ? instance_last - clock_ns : 0;
	while (largest < lead &&
		   !pg_atomic_compare_exchange_u64(&fuuid_shared->largest_clock_lead_ns, &largest, lead))
		;
	fuuid_session_note_lead(clock_ns);
	if (last >= clock_ns)
		fuuid_clock_require_lead(last - clock_ns + count);
}

/*
 * fuuid_ordering_reserve() in the order of all backends.  Raises an error if there is no
 * shared memory, or if the clock is too far behind.
 */
uint64
fuuid_instance_reserve(uint64 clock_ns, uint32 count)
{
	uint64		ns;
	uint64		seen;
	uint64		last;

	if (unlikely(!joined))
		fuuid_instance_join();

	seen = pg_atomic_read_u64(&fuuid_shared->last_ns);
	do
	{
		/*
		 * Read epoch after last_ns.  A reading of the clock from before a reset does not
		 * count.
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
				require_lead(seen, last, count);
			fuuid_clock_require_end(last, count);
			ns = last + 1;
		}
	} while (!pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen, ns + (count - 1)));
	FUUID_TEST_POINT("reserved");

	fuuid_session_last_ns = ns + (count - 1);
	return ns;
}

/*
 * Return the present epoch, read before all that the caller reads next.
 */
uint64
fuuid_instance_epoch(void)
{
	uint64		epoch = pg_atomic_read_u64(&fuuid_shared->epoch);

	pg_read_barrier();
	return epoch;
}

/*
 * Make all further UUIDs of the instance later than this nanosecond, and return the
 * resulting last_ns in *last_ns.  Returns false, with last_ns unchanged, if the instance
 * was reset since that epoch: a reset gives last_ns a value that it never had.
 */
bool
fuuid_instance_advance_to(uint64 ns, uint64 epoch, uint64 *last_ns)
{
	uint64		seen = pg_atomic_read_u64(&fuuid_shared->last_ns);

	for (;;)
	{
		/* Read epoch after last_ns. */
		pg_read_barrier();
		if (pg_atomic_read_u64(&fuuid_shared->epoch) != epoch)
			return false;
		*last_ns = Max(seen, ns);
		if (seen >= ns || pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen, ns))
			return true;
	}
}

/*
 * Get the statistics of the instance.  Returns false if there is no shared memory.
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
 * Forget the latest UUID of the instance, for all backends.
 *
 * last_ns becomes the number of this reset, which it never was before, so that a
 * concurrent reservation either has succeeded before, or fails its exchange and starts
 * again.  Until the reset has ended, a backend forgets its own latest UUID at every look,
 * so that what it still takes from the old last_ns does not outlive the reset.  Resets
 * can overlap.
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
