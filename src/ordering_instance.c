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
	pg_atomic_uint64 last_ns;	/* nanosecond of the latest value; or an epoch: none */

	/* Even; odd while a reset goes on.  Grows by 2 with each. */
	pg_atomic_uint64 epoch;
	pg_atomic_uint64 reset_at;	/* monotonic clock of the latest reset, ns; 0: none */

	/* What has been seen of the clock; written only while it is behind. */
	pg_atomic_flag observing;	/* a backend is at the following */
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
	pg_atomic_init_u64(&ordering->reset_at, 0);
	pg_atomic_init_flag(&ordering->observing);
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
 * See how far the latest value of the instance leads the clock, and count a
 * backward step.
 *
 * One backend at a time, which takes word and clock anew: between two that come
 * one after the other a lead only shrinks, unless the clock stepped.  Who finds
 * another one at it need not wait, for that sees the same.
 */
static void
observe(void)
{
	struct timespec now;
	uint64		last;
	uint64		clock_ns;
	uint64		lead;

	if (!pg_atomic_test_set_flag(&shared->observing))
		return;
	last = pg_atomic_read_u64(&shared->last_ns);
	pg_memory_barrier();
	if (clock_gettime(CLOCK_REALTIME, &now) == 0 && (uint64) now.tv_sec < FUUID_CLOCK_END_S)
	{
		clock_ns = fuuid_ns_of_time(&now);
		lead = last > clock_ns ? last - clock_ns : 0;
		if (lead >= pg_atomic_read_u64(&shared->clock_lead_ns) + FUUID_BACKWARD_STEP_NS)
			pg_atomic_fetch_add_u64(&shared->backward_steps, 1);
		pg_atomic_write_u64(&shared->clock_lead_ns, lead >= FUUID_BACKWARD_STEP_NS ? lead : 0);
		if (lead > pg_atomic_read_u64(&shared->largest_clock_lead_ns))
			pg_atomic_write_u64(&shared->largest_clock_lead_ns, lead);
	}
	pg_atomic_clear_flag(&shared->observing);
}

bool
fuuid_instance_entered(void)
{
	return entered;
}

/*
 * Where the instance was reset since this backend, which has generated under its
 * order, last looked, its own latest value does not count any more, and true is
 * returned.  Nor while a reset goes on: until it has ended, who still finds the
 * old word goes on from that.
 */
bool
fuuid_instance_follow_reset(void)
{
	uint64		epoch = pg_atomic_read_u64(&shared->epoch);

	if (likely(epoch == own_epoch && (epoch & 1) == 0))
		return false;
	fuuid_session_reset();
	own_epoch = epoch;
	return true;
}

/*
 * The first value of this backend under this order.  Its own latest value, of
 * session order, counts here as well, unless the instance may have been reset
 * since: that is known only of a backend that has begun after the reset.
 */
static void
enter(void)
{
	uint64		reset_at;

	require_segment();
	own_epoch = pg_atomic_read_u64(&shared->epoch);
	pg_read_barrier();
	reset_at = pg_atomic_read_u64(&shared->reset_at);
	if (reset_at != 0 && fuuid_clock_process_ns <= reset_at)
		fuuid_session_reset();
	entered = true;
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
		enter();

	seen = pg_atomic_read_u64(&shared->last_ns);
	for (;;)
	{
		/*
		 * After the word: who has seen it reset must see the epoch's change.  A
		 * reading of the clock from before a reset does not count either.
		 */
		pg_read_barrier();
		if (unlikely(fuuid_instance_follow_reset()))
		{
			fuuid_clock_read(now);
			ns = fuuid_ns_of_time(now);
		}

		last = Max(seen, fuuid_session_last_ns);
		lead = 0;
		if (unlikely(last >= ns))
		{
			lead = last - ns + count;
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
				fuuid_session_observe(ns);
				observe();
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
		fuuid_session_note_lead(lead);
	if (unlikely(lead >= FUUID_BACKWARD_STEP_NS || pg_atomic_read_u64(&shared->clock_lead_ns) != 0))
		observe();
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
 * The word becomes a value that it never had, the epoch, so that a reservation
 * at the same time has either succeeded before, or fails its exchange and starts
 * again.  The epoch is odd while that happens: a backend that comes in between
 * forgets its own latest value at every look, so that what it still takes from
 * the old word does not outlive the reset.  One reset at a time.
 */
void
fuuid_instance_reset(void)
{
	uint64		epoch;

	require_segment();
	epoch = pg_atomic_read_u64(&shared->epoch);
	while ((epoch & 1) != 0 ||
		   !pg_atomic_compare_exchange_u64(&shared->epoch, &epoch, epoch + 1))
	{
		CHECK_FOR_INTERRUPTS();
		pg_usleep(1);
		epoch = pg_atomic_read_u64(&shared->epoch);
	}
	pg_atomic_exchange_u64(&shared->last_ns, epoch + 2);
	pg_atomic_exchange_u64(&shared->reset_at, fuuid_clock_monotonic_ns());
	pg_atomic_fetch_add_u64(&shared->epoch, 1);
	observe();
}
