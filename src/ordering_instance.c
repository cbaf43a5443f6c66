/*
 * ordering_instance.c
 *	  The order of all backends: one 64-bit word in shared memory, advanced by
 *	  compare-and-exchange.  doc/ordering.md says why that is enough.
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "miscadmin.h"
#include "ordering_instance.h"
#include "port/atomics.h"
#include "settings.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

typedef struct SharedOrdering
{
	pg_atomic_uint64 last_ns;	/* nanosecond of the latest value; 0: none */

	/* What has been seen of the clock; written only while it is behind. */
	pg_atomic_uint64 clock_lead_ns;	/* latest lead that counts; 0: not behind */
	pg_atomic_uint64 backward_steps;
	pg_atomic_uint64 largest_clock_lead_ns;
} SharedOrdering;

#define SEGMENT_NAME "fast_uuid"

static SharedOrdering *shared = NULL;

/*
 * Latest value of this backend when it came under this order, which the first
 * one made here has to exceed; the word in shared memory does not know it.
 */
static uint64 lower_bound_ns = 0;

static void
init_segment(FUUID_SEGMENT_INIT_ARGS)
{
	SharedOrdering *ordering = segment;

	pg_atomic_init_u64(&ordering->last_ns, 0);
	pg_atomic_init_u64(&ordering->clock_lead_ns, 0);
	pg_atomic_init_u64(&ordering->backward_steps, 0);
	pg_atomic_init_u64(&ordering->largest_clock_lead_ns, 0);
}

#ifdef FUUID_HAVE_NAMED_SEGMENTS

void
fuuid_instance_init(void)
{
	/* The segment is made, or found, when it is first wanted. */
}

static bool
attach(void)
{
	bool		found;

	if (shared == NULL)
		shared = FUUID_GET_NAMED_SEGMENT(SEGMENT_NAME, sizeof(SharedOrdering), init_segment, &found);
	return true;
}

#else

static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
request_segment(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(MAXALIGN(sizeof(SharedOrdering)));
}

static void
start_segment(void)
{
	bool		found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	shared = ShmemInitStruct(SEGMENT_NAME, sizeof(SharedOrdering), &found);
	if (!found)
		init_segment(shared);
	LWLockRelease(AddinShmemInitLock);
}

/*
 * Before 17 shared memory must be asked for when the server starts.
 */
void
fuuid_instance_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_segment;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_segment;
}

static bool
attach(void)
{
	return shared != NULL;
}
#endif							/* FUUID_HAVE_NAMED_SEGMENTS */

static void
require_segment(void)
{
	if (!attach())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ordering \"instance\" requires fast_uuid in shared_preload_libraries"),
				 errhint("Add fast_uuid to shared_preload_libraries and restart the server, or set fast_uuid.ordering to \"session\".")));
}

/*
 * Note a lead that counts, of the latest value over the clock.  Concurrent
 * notes may overtake each other; these are figures to look at, no more.
 */
static void
note_lead(uint64 lead)
{
	uint64		largest = pg_atomic_read_u64(&shared->largest_clock_lead_ns);

	/* While the clock catches up, the lead shrinks. */
	if (lead >= pg_atomic_read_u64(&shared->clock_lead_ns) + FUUID_BACKWARD_STEP_NS)
		pg_atomic_fetch_add_u64(&shared->backward_steps, 1);
	pg_atomic_write_u64(&shared->clock_lead_ns, lead);

	while (lead > largest &&
		   !pg_atomic_compare_exchange_u64(&shared->largest_clock_lead_ns, &largest, lead))
		;
}

/*
 * fuuid_ordering_reserve() in the order of all backends.  Raises an error where
 * there is no shared memory, where the clock is too far behind, or where the
 * setting names no order.
 */
void
fuuid_instance_reserve(struct timespec *now, uint32 count)
{
	uint64		ns = fuuid_ns_of_time(now);
	uint64		seen;
	uint64		first;
	uint64		lead;

	if (unlikely(fuuid_ordering_scope == FUUID_ORDERING_UNKNOWN))
		fuuid_settings_unknown_ordering();
	if (unlikely(shared == NULL))
		require_segment();

	seen = pg_atomic_read_u64(&shared->last_ns);
	do
	{
		uint64		last = Max(seen, lower_bound_ns);

		first = ns;
		lead = 0;
		if (unlikely(last >= ns))
		{
			first = last + 1;
			lead = last - ns;
			if (lead >= FUUID_BACKWARD_STEP_NS)
				fuuid_clock_check_lead(lead);
		}
	} while (!pg_atomic_compare_exchange_u64(&shared->last_ns, &seen, first + (count - 1)));

	lower_bound_ns = 0;
	fuuid_ordering_last_ns = first + (count - 1);

	if (unlikely(lead >= FUUID_BACKWARD_STEP_NS))
		note_lead(lead);
	else if (unlikely(pg_atomic_read_u64(&shared->clock_lead_ns) != 0))
		pg_atomic_write_u64(&shared->clock_lead_ns, 0);
	if (unlikely(first != ns))
		fuuid_time_of_ns(now, first);
}

/*
 * Have the next value made here exceed this one.
 */
void
fuuid_instance_set_lower_bound(uint64 last_ns)
{
	lower_bound_ns = last_ns;
}

/*
 * False where there is no shared memory.
 */
bool
fuuid_instance_stats(OrderingStats *stats)
{
	if (!attach())
		return false;
	stats->last_ns = pg_atomic_read_u64(&shared->last_ns);
	stats->backward_steps = pg_atomic_read_u64(&shared->backward_steps);
	stats->largest_clock_lead_ns = pg_atomic_read_u64(&shared->largest_clock_lead_ns);
	return true;
}

/*
 * Forget the latest value of the instance.  A reservation that runs at the same
 * time has either succeeded before, or fails its exchange and starts again.
 */
void
fuuid_instance_reset(void)
{
	require_segment();
	lower_bound_ns = 0;
	pg_atomic_exchange_u64(&shared->last_ns, 0);
	pg_atomic_write_u64(&shared->clock_lead_ns, 0);
}
