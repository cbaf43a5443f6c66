/*
 * shared.c
 *	  How the memory that the backends share is created and found.
 */
#include "postgres.h"

#include "compat.h"
#include "feed/shared.h"
#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#define SEGMENT_NAME "fast_uuid"

SharedOrdering *fuuid_shared = NULL;

/* A positive number for a new incarnation, random, so that no other has it. */
static int64
random_number(void)
{
	int64		number = (uint64) GetCurrentTimestamp() << FUUID_RESET_BITS;

	(void) pg_strong_random(&number, sizeof(number));
	return (number & PG_INT64_MAX) | INT64CONST(1) << 32;
}

static void
init_segment(FUUID_SEGMENT_INIT_ARGS)
{
	SharedOrdering *ordering = segment;

	memset(ordering, 0, FUUID_SHARED_SIZE);
	ordering->layout = FUUID_SHARED_LAYOUT;
	pg_atomic_init_u64(&ordering->last_ns, 0);
	for (int i = 0; i < FUUID_WAIT_GROUPS; i++)
	{
		WaitGroup  *group = &ordering->wait_groups[i];

		/* Far below 2^53, up to which JSON and JavaScript are exact. */
		pg_atomic_init_u64(&group->ended, random_number() >> 11);
		ConditionVariableInit(&group->ended_cv);
		pg_atomic_init_u64(&group->due_us, 0);
	}
	FUUID_INIT_LWLOCK(&ordering->lock);
	ordering->incarnation = random_number() >> FUUID_RESET_BITS <<
		FUUID_RESET_BITS;
	pg_atomic_init_u64(&ordering->largest_clock_lead_ns, 0);

	/* Prepared transactions of an earlier incarnation may be left. */
	pg_atomic_init_u64(&ordering->prepared, 1);
	pg_atomic_init_u64(&ordering->prepared_ended, 0);

	for (int i = 0; i < MaxBackends; i++)
		pg_atomic_init_u64(&ordering->in_flight[i].first_ns, 0);
}

#ifndef FUUID_HAVE_NAMED_SEGMENTS
static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
request_segment(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(MAXALIGN(FUUID_SHARED_SIZE));
}

static void
start_segment(void)
{
	bool		found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	fuuid_shared = ShmemInitStruct(SEGMENT_NAME, FUUID_SHARED_SIZE, &found);
	if (!found)
		init_segment(fuuid_shared);
	FUUID_NAME_LWLOCK(&fuuid_shared->lock);
	LWLockRelease(AddinShmemInitLock);
}
#endif							/* !FUUID_HAVE_NAMED_SEGMENTS */

/* Before 17, shared memory must be requested when the server starts. */
void
fuuid_shared_init(void)
{
#ifndef FUUID_HAVE_NAMED_SEGMENTS
	if (!process_shared_preload_libraries_in_progress)
		return;
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_segment;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_segment;
#endif
}

/*
 * Attach to shared memory.  Returns false if there is none.  Raises an error
 * if another version of the library has created it, with another layout or
 * size: a second segment would split the order in two.
 */
bool
fuuid_shared_attach(void)
{
#ifdef FUUID_HAVE_NAMED_SEGMENTS
	if (fuuid_shared == NULL)
	{
		bool		found;
		SharedOrdering *ordering =
			FUUID_GET_NAMED_SEGMENT(SEGMENT_NAME, FUUID_SHARED_SIZE,
									init_segment, &found);

		if (ordering->layout != FUUID_SHARED_LAYOUT)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("shared memory of fast_uuid is that of another version of the library"),
					 errhint("Restart the server.")));
		fuuid_shared = ordering;
		FUUID_NAME_LWLOCK(&fuuid_shared->lock);
	}
#endif
	return fuuid_shared != NULL;
}

/* Raise an error if there is no shared memory. */
void
fuuid_shared_require(void)
{
	if (!fuuid_shared_attach())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fast_uuid must be loaded via \"shared_preload_libraries\""),
				 errdetail("Before PostgreSQL 17, feeds use shared memory that is requested when the server starts."),
				 errhint("Add fast_uuid to \"shared_preload_libraries\" and restart the server. uuidv7_fast() does not need it.")));
}
