/*
 * memory.c
 *	  How the memory that the backends share is created and found, and how a
 *	  backend joins them.
 */
#include "postgres.h"

#include "common/pg_prng.h"
#include "compat.h"
#include "feed.h"
#include "storage/ipc.h"

#define SEGMENT_NAME "fast_feed"

FeedShared *feed_shared = NULL;
int			feed_my_number = -1;
FeedDatabase *feed_my_database = NULL;

static void
init_segment(FEED_SEGMENT_INIT_ARGS)
{
	FeedShared *shared = segment;

	/* The transactions that were running for marks are written before they are read. */
	memset(shared, 0, FEED_RUNNING_OFFSET(0));
	FEED_INIT_LWLOCK(&shared->lock);
	for (int i = 0; i < FEED_PLACES; i++)
		pg_atomic_init_u64(&shared->places[i].locks, 0);
	for (int i = 0; i < MaxBackends; i++)
	{
		FeedDatabase *database = FEED_DATABASE(shared, i);
		uint64		random = pg_prng_uint64_range(&pg_global_prng_state, 1,
												  UINT64CONST(1) << 51);

		pg_atomic_init_u64(&shared->states[i], 0);
		pg_atomic_init_u64(&FEED_BACKENDS(shared)[i].first_v0, 0);
		pg_atomic_init_u32(&FEED_BACKENDS(shared)[i].ended, 0);
		for (int k = 0; k < FEED_PAIRS - 1; k++)
			pg_atomic_init_u64(&FEED_FURTHER(shared)[i].pairs[k].v0, 0);
		pg_atomic_init_u64(&database->ended, random);
		pg_atomic_init_u64(&database->due_us, 0);
		ConditionVariableInit(&database->ended_cv);
	}

	/* Last: what is not complete must not be taken for ours. */
	shared->layout = FEED_LAYOUT;
}

#ifndef FEED_HAVE_NAMED_SEGMENTS
static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
request_segment(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(MAXALIGN(FEED_SHARED_SIZE));
}

static void
start_segment(void)
{
	bool		found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	feed_shared = ShmemInitStruct(SEGMENT_NAME, FEED_SHARED_SIZE, &found);
	if (!found)
		init_segment(feed_shared);
	FEED_NAME_LWLOCK(&feed_shared->lock);
	LWLockRelease(AddinShmemInitLock);
}
#endif							/* !FEED_HAVE_NAMED_SEGMENTS */

/* Before 17, shared memory can be requested only when the server starts. */
void
feed_memory_init(void)
{
#ifndef FEED_HAVE_NAMED_SEGMENTS
	if (!process_shared_preload_libraries_in_progress)
		return;
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request_segment;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start_segment;
#endif
}

/*
 * Attach to shared memory.  Raises an error if there is none, or if another
 * version of the library has created it, with another layout or size: in a
 * second segment readers would not find what writers publish in the first.
 */
static void
attach(void)
{
#ifdef FEED_HAVE_NAMED_SEGMENTS
	bool		found;
	FeedShared *shared;

	if (feed_shared != NULL)
		return;
	shared = FEED_GET_NAMED_SEGMENT(SEGMENT_NAME, FEED_SHARED_SIZE,
									init_segment, &found);
	if (shared->layout != FEED_LAYOUT)
		FEED_STATE_ERROR(errmsg("shared memory was created by a different version of fast_feed"),
						 errhint("Restart the server."));
	feed_shared = shared;
	FEED_NAME_LWLOCK(&feed_shared->lock);
#else
	if (feed_shared == NULL)
		FEED_STATE_ERROR(errmsg("fast_feed must be loaded via \"shared_preload_libraries\""),
						 errdetail("Before PostgreSQL 17, shared memory can be requested only when the server starts."),
						 errhint("Add fast_feed to \"shared_preload_libraries\" and restart the server."));
#endif
}

/* The entry of this database, which it has or had, or one that nobody uses. */
static FeedDatabase *
find_database(void)
{
	FeedDatabase *found = NULL;

	for (int i = 0; i < MaxBackends; i++)
	{
		FeedDatabase *database = FEED_DATABASE(feed_shared, i);

		if (database->oid == MyDatabaseId)
			return database;
		if (database->joined == 0 &&
			(found == NULL || (OidIsValid(found->oid) &&
							   !OidIsValid(database->oid))))
			found = database;
	}
	found->oid = MyDatabaseId;
	pg_atomic_write_u64(&found->due_us, 0);
	return found;
}

/* Join those that use shared memory, before anything else is done there. */
void
feed_join(void)
{
	FeedBackend *backends;
	int			number = 0;

	attach();
	backends = FEED_BACKENDS(feed_shared);
	FEED_TEST_POINT("joining");
	if (!OidIsValid(MyDatabaseId))
		elog(ERROR, "fast_feed requires a database");
	LWLockAcquire(&feed_shared->lock, LW_EXCLUSIVE);
	while (number < MaxBackends && backends[number].pid != 0)
		number++;
	if (number == MaxBackends)
		elog(ERROR, "fast_feed requires a backend of its own");
	feed_my_database = find_database();
	feed_my_database->joined++;
	backends[number].pid = MyProcPid;
	feed_shared->backends_used = Max(feed_shared->backends_used, number + 1);
	feed_my_number = number;
	LWLockRelease(&feed_shared->lock);
	FEED_TEST_POINT("joined");
}

/* Leave, with nothing published. */
void
feed_leave(void)
{
	LWLockAcquire(&feed_shared->lock, LW_EXCLUSIVE);
	feed_my_database->joined--;
	FEED_BACKENDS(feed_shared)[feed_my_number].pid = 0;
	LWLockRelease(&feed_shared->lock);
	feed_my_number = -1;
	feed_my_database = NULL;
}
