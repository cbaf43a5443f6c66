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
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

typedef struct SharedOrdering
{
	pg_atomic_uint64 last_ns;	/* nanosecond of the latest value; 0: none */

	/* Changes when the latest value is given up, before that and after it. */
	pg_atomic_uint64 epoch;

	/* What has been seen of the clock; written only while it is behind. */
	pg_atomic_uint64 clock_lead_ns; /* latest lead that counts; 0: not behind */
	pg_atomic_uint64 backward_steps;
	pg_atomic_uint64 largest_clock_lead_ns;
} SharedOrdering;

#define SEGMENT_NAME "fast_uuid"

static SharedOrdering *shared = NULL;

/* Has this backend generated under this order?  Then the epoch that it has seen. */
static bool entered = false;
static uint64 own_epoch = 0;

static void
init_segment(FUUID_SEGMENT_INIT_ARGS)
{
	SharedOrdering *ordering = segment;

	pg_atomic_init_u64(&ordering->last_ns, 0);
	pg_atomic_init_u64(&ordering->epoch, 0);
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
 * Note a lead that counts, of the latest value over the clock: once for all
 * backends that see it.
 */
static void
note_lead(uint64 lead)
{
	uint64		known = pg_atomic_read_u64(&shared->clock_lead_ns);
	uint64		largest = pg_atomic_read_u64(&shared->largest_clock_lead_ns);

	/* While the clock catches up, the lead shrinks. */
	while (known != lead)
	{
		if (pg_atomic_compare_exchange_u64(&shared->clock_lead_ns, &known, lead))
		{
			if (lead >= known + FUUID_BACKWARD_STEP_NS)
				pg_atomic_fetch_add_u64(&shared->backward_steps, 1);
			break;
		}
	}
	while (lead > largest &&
		   !pg_atomic_compare_exchange_u64(&shared->largest_clock_lead_ns, &largest, lead))
		;
}

bool
fuuid_instance_entered(void)
{
	return entered;
}

/*
 * Was the instance reset since this backend, which has generated under its
 * order, last looked?
 */
bool
fuuid_instance_was_reset(void)
{
	return pg_atomic_read_u64(&shared->epoch) != own_epoch;
}

/*
 * Where it was, the backend's own latest value does not count any more.
 */
void
fuuid_instance_follow_reset(void)
{
	uint64		epoch = pg_atomic_read_u64(&shared->epoch);

	if (unlikely(epoch != own_epoch))
	{
		fuuid_session_reset();
		own_epoch = epoch;
	}
}

/*
 * fuuid_ordering_reserve() in the order of all backends.  Raises an error where
 * there is no shared memory, or where the clock is too far behind.
 */
void
fuuid_instance_reserve(struct timespec *now, uint32 count)
{
	uint64		ns = fuuid_ns_of_time(now);
	uint64		seen;
	uint64		last;
	uint64		lead;
	bool		read_since = false;

	if (unlikely(!entered))
	{
		require_segment();
		entered = true;
	}

	seen = pg_atomic_read_u64(&shared->last_ns);
	for (;;)
	{
		/* After the word: who has seen it reset must see the epoch's change. */
		pg_read_barrier();
		fuuid_instance_follow_reset();

		last = Max(seen, fuuid_session_last_ns);
		lead = 0;
		if (unlikely(last >= ns))
		{
			lead = last - ns;
			if (lead >= FUUID_BACKWARD_STEP_NS)
			{
				/*
				 * This backend may have been preempted since it read the clock,
				 * while others went on.  Only a reading that is younger than the
				 * latest value tells that the clock is behind it.
				 */
				if (!read_since)
				{
					pg_memory_barrier();
					fuuid_clock_read(now);
					ns = fuuid_ns_of_time(now);
					read_since = true;
					continue;
				}
				note_lead(lead);
				fuuid_clock_check_lead(lead);
			}
			fuuid_clock_check_end(last, count);
			ns = last + 1;
		}
		if (pg_atomic_compare_exchange_u64(&shared->last_ns, &seen, ns + (count - 1)))
			break;
		ns = fuuid_ns_of_time(now);
		read_since = false;
	}

	fuuid_session_last_ns = ns + (count - 1);
	if (unlikely(lead >= FUUID_BACKWARD_STEP_NS))
		fuuid_session_note_lead(fuuid_session_last_ns, lead + count);
	else if (unlikely(pg_atomic_read_u64(&shared->clock_lead_ns) != 0))
		pg_atomic_write_u64(&shared->clock_lead_ns, 0);
	if (unlikely(fuuid_ns_of_time(now) != ns))
		fuuid_time_of_ns(now, ns);
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
 * Forget the latest value of the instance, for all backends.
 *
 * A reservation at the same time has either succeeded before, or fails its
 * exchange and starts again.  The epoch changes twice: by the first change a
 * backend that finds the word reset knows that its own latest value is void; by
 * the second so does one that came in between and still went on from the old word.
 */
void
fuuid_instance_reset(void)
{
	require_segment();
	pg_atomic_fetch_add_u64(&shared->epoch, 1);
	pg_atomic_exchange_u64(&shared->last_ns, 0);
	pg_atomic_fetch_add_u64(&shared->epoch, 1);
	pg_atomic_write_u64(&shared->clock_lead_ns, 0);
}
