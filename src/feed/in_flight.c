/*
 * in_flight.c
 *	  The backends that have joined the order of the feed, and the transactions
 *	  in flight that may have ids of it, from which nanosecond on.
 *
 *	  Before a backend reserves the first UUID of its transaction, it
 *	  "publishes" the earliest nanosecond that its UUIDs can have, in shared
 *	  memory.  It clears that after the server has made the transaction's end
 *	  visible, and after the callbacks of other libraries: one that commits on
 *	  other servers does so there.  Until then the transaction "holds back" the
 *	  watermark, which does not exceed what is published.
 *
 *	  A prepared transaction has no process, and outlives a restart.  It keeps
 *	  what was published as the identity of a heavyweight lock, which the
 *	  server keeps, and recovers, until the transaction's end is visible.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "feed/feed.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "test_point.h"
#include "utils/resowner.h"

/* pg_locks.objsubid of our locks; those of SQL's functions are 1 and 2. */
#define LOCK_CLASS	0x7575

uint64		fuuid_in_flight_published_ns = FUUID_NOTHING_PUBLISHED;
bool		fuuid_in_flight_joined = false;
static InFlight *my_element = NULL; /* once it has joined */
WaitGroup  *fuuid_in_flight_wait_group = NULL;
static bool preparing = false;	/* has keep_for_prepared() been called? */

/* Keep what the transaction, which is about to be prepared, has published. */
static void
keep_for_prepared(XactEvent event, void *arg pg_attribute_unused())
{
	uint64		first_ns = fuuid_in_flight_published_ns;
	ResourceOwner owner = CurrentResourceOwner;
	LOCKTAG		tag;

	preparing = event == XACT_EVENT_PRE_PREPARE;
	if (!preparing || first_ns == FUUID_NOTHING_PUBLISHED)
		return;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (first_ns >> 32),
						 (uint32) first_ns, LOCK_CLASS);
	CurrentResourceOwner = TopTransactionResourceOwner; /* not a savepoint's */
	(void) LockAcquire(&tag, ShareLock, false, false);
	CurrentResourceOwner = owner;
	FUUID_TEST_POINT("preparing");

	/* After the lock is taken: see "Memory order" in shared.h. */
	pg_atomic_fetch_add_u64(&fuuid_shared->prepared, 1);
}

/*
 * Clear what the transaction has published: its end is visible, or it can only
 * abort.  Then count that, and wake who waits for it.
 */
static void
clear_published(void)
{
	if (fuuid_in_flight_published_ns == FUUID_NOTHING_PUBLISHED)
		return;
	FUUID_TEST_POINT("clearing");
	Assert(pg_atomic_read_u64(&my_element->first_ns) ==
		   fuuid_in_flight_published_ns);
	pg_memory_barrier();
	pg_atomic_write_u64(&my_element->first_ns, 0);
	fuuid_in_flight_published_ns = FUUID_NOTHING_PUBLISHED;
	fuuid_feed_first_ns = FUUID_NOTHING_PUBLISHED;
	FUUID_TEST_POINT("cleared");

	/* In this order: see "Memory order" in shared.h. */
	pg_atomic_fetch_add_u64(&fuuid_in_flight_wait_group->ended, 1);
	FUUID_TEST_POINT("waking");
	ConditionVariableBroadcast(&fuuid_in_flight_wait_group->ended_cv);
}

/*
 * The resources of a transaction are released after every callback of
 * XACT_EVENT_COMMIT, ABORT and PREPARE.  Owners that belong to no transaction,
 * such as those of auxiliary processes, come by here as well.
 */
static void
clear_at_end(ResourceReleasePhase phase, bool isCommit pg_attribute_unused(),
			 bool isTopLevel, void *arg pg_attribute_unused())
{
	if (phase == RESOURCE_RELEASE_AFTER_LOCKS && isTopLevel &&
		!IsTransactionState())
		clear_published();
}

/*
 * At exit a transaction can only abort.  That is not left to clear_at_end(),
 * which is not called if a callback of another library fails first.
 */
static void
leave(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	clear_published();
	FUUID_TEST_POINT("leaving");

	/* Whoever finds that it has left may reset: see reset_shared(). */
	pg_memory_barrier();
	my_element->pid = 0;
	fuuid_in_flight_joined = false;
}

/* As we are loaded: a transaction's first UUID may come in a callback. */
void
fuuid_in_flight_init(void)
{
	RegisterXactCallback(keep_for_prepared, NULL);
	RegisterResourceReleaseCallback(clear_at_end, NULL);
}

/*
 * Join the order of the feed, before this backend does anything in it: until
 * it ends nobody resets the feed.  The caller must read the clock after this,
 * because what it showed before a reset does not count.  Raises an error if
 * there is no shared memory.
 */
void
fuuid_in_flight_join(void)
{
	uint32		number = FUUID_MY_PROC_NUMBER;
	WaitGroup  *group;

	if (fuuid_in_flight_joined)
		return;
	FUUID_TEST_POINT("joining");
	fuuid_shared_require();
	if (number >= (uint32) MaxBackends)
		elog(ERROR, "an auxiliary process cannot join the order of feed ids");
	before_shmem_exit(leave, 0);

	my_element = &fuuid_shared->in_flight[number];
	LWLockAcquire(&fuuid_shared->lock, LW_EXCLUSIVE);
	my_element->pid = MyProcPid;
	if (fuuid_shared->in_flight_used <= number)
		fuuid_shared->in_flight_used = number + 1;
	group = fuuid_shared->wait_groups;
	while (group->database != MyDatabaseId && OidIsValid(group->database) &&
		   group < &fuuid_shared->wait_groups[FUUID_WAIT_GROUPS - 1])
		group++;
	group->database = MyDatabaseId;
	fuuid_in_flight_wait_group = group;
	LWLockRelease(&fuuid_shared->lock);
	fuuid_in_flight_joined = true;
}

/*
 * Publish that this transaction may have UUIDs from first_ns on, before it
 * reserves the first; again if that failed, and the clock stepped backwards.
 * Outside of a transaction and its savepoints there is nothing to hold back.
 */
void
fuuid_in_flight_publish(uint64 first_ns)
{
	if (!IsTransactionState() && GetCurrentTransactionNestLevel() < 2)
		return;
	my_element->database = MyDatabaseId;
	FUUID_TEST_POINT("publishing");
	pg_write_barrier();
	pg_atomic_write_u64(&my_element->first_ns, first_ns);
	fuuid_in_flight_published_ns = first_ns;
	FUUID_TEST_POINT("published");

	/* Here another library generates in a callback that comes after ours. */
	if (preparing)
		keep_for_prepared(XACT_EVENT_PRE_PREPARE, NULL);
}

/* fuuid_in_flight_first() among prepared transactions, in their locks. */
static uint64
first_of_prepared(uint64 first_ns, int *held_back_by)
{
	uint64		prepared = pg_atomic_read_u64(&fuuid_shared->prepared);
	bool		found = false;
	LockData   *locks;

	if (prepared == pg_atomic_read_u64(&fuuid_shared->prepared_ended))
		return first_ns;
	pg_memory_barrier();
	locks = GetLockStatusData();
	FUUID_TEST_POINT("locks_read");
	for (int i = 0; i < locks->nelements; i++)
	{
		const LOCKTAG *tag = &locks->locks[i].locktag;
		uint64		ns = (uint64) tag->locktag_field2 << 32 |
			tag->locktag_field3;

		if (tag->locktag_type != LOCKTAG_ADVISORY ||
			tag->locktag_field4 != LOCK_CLASS)
			continue;
		found = true;
		if (ns < first_ns && tag->locktag_field1 == MyDatabaseId)
		{
			first_ns = ns;
			*held_back_by = FUUID_HELD_BACK_BY_PREPARED;
		}
	}
	pfree(locks->locks);
	pfree(locks);
	if (!found)
		pg_atomic_write_u64(&fuuid_shared->prepared_ended, prepared);
	return first_ns;
}

/*
 * Return the earliest nanosecond that a transaction of this database has
 * published, but at most none_ns, and in *held_back_by its process ID, or a
 * FUUID_HELD_BACK_BY_ number.  Those of other databases do not count, because
 * they cannot insert into this one.
 *
 * For each UUID reserved before the call, the transaction is found, or has
 * ended: see "Memory order" in shared.h.
 */
uint64
fuuid_in_flight_first(uint64 none_ns, int *held_back_by)
{
	uint64		first_ns = none_ns;
	uint32		used;

	*held_back_by = FUUID_HELD_BACK_BY_NONE;
	pg_memory_barrier();
	used = fuuid_shared->in_flight_used;
	for (uint32 i = 0; i < used; i++)
	{
		InFlight   *element = &fuuid_shared->in_flight[i];
		uint64		ns = pg_atomic_read_u64(&element->first_ns);
		int			pid;

		if (ns == 0 || ns >= first_ns)
			continue;

		/* If that transaction has ended, these may be another backend's. */
		pg_read_barrier();
		pid = element->pid;
		if (pid != 0 && element->database == MyDatabaseId)
		{
			first_ns = ns;
			*held_back_by = pid;
		}
	}
	FUUID_TEST_POINT("in_flight_read");
	pg_memory_barrier();
	first_ns = first_of_prepared(first_ns, held_back_by);
	pg_memory_barrier();
	return first_ns;
}
