/*
 * in_flight.c
 *	  The running transactions that may have generated under the order of the
 *	  instance, and from which nanosecond on.
 *
 *	  A process publishes that in its element of shared memory before it reserves
 *	  its transaction's first value, and clears it after the transaction has become
 *	  visible.
 *
 *	  A prepared transaction has no process, and outlives a restart.  It keeps what
 *	  was published as the identity of a heavyweight lock, which the server keeps,
 *	  and recovers, with the transaction and releases after it has become visible.
 */
#include "postgres.h"

#include "access/xact.h"
#include "compat.h"
#include "miscadmin.h"
#include "ordering/in_flight.h"
#include "ordering/shared.h"
#include "storage/ipc.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "test_point.h"

/* pg_locks.objsubid of our locks; those of SQL's advisory locks are 1 and 2. */
#define LOCK_CLASS	0x7575

uint64		fuuid_in_flight_published_ns = FUUID_NOTHING_PUBLISHED;

/* That of this process; an auxiliary one has none. */
static InFlight *my_element = NULL;

/*
 * Keep what the transaction has published, which is about to be prepared.
 */
static void
keep_for_prepared(void)
{
	uint64		first_ns = fuuid_in_flight_published_ns;
	LOCKTAG		tag;

	if (first_ns == FUUID_NOTHING_PUBLISHED)
		return;
	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (first_ns >> 32), (uint32) first_ns, LOCK_CLASS);
	(void) LockAcquire(&tag, ShareLock, false, false);
	FUUID_TEST_POINT("preparing");

	/* After the lock. */
	pg_atomic_fetch_add_u64(&fuuid_shared->prepared, 1);
}

/*
 * What the transaction has published counts no more: it has ended, and the server has
 * made it visible.
 */
static void
clear_published(void)
{
	if (fuuid_in_flight_published_ns == FUUID_NOTHING_PUBLISHED)
		return;
	FUUID_TEST_POINT("clearing");
	pg_memory_barrier();
	pg_atomic_write_u64(&my_element->first_ns, 0);
	fuuid_in_flight_published_ns = FUUID_NOTHING_PUBLISHED;
}

static void
xact_callback(XactEvent event, void *arg pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			keep_for_prepared();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			clear_published();
			break;
		default:
			break;
	}
}

/*
 * No abort may come to our callback, where that of another library fails; and nothing
 * but an abort can follow.
 */
static void
clear_at_exit(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	clear_published();
}

/*
 * Called before this backend's first value under the order of the instance.
 */
void
fuuid_in_flight_register(void)
{
	uint32		number;
	uint32		used;

	number = FUUID_MY_PROC_NUMBER;
	if (number >= (uint32) MaxBackends)
		return;
	RegisterXactCallback(xact_callback, NULL);
	before_shmem_exit(clear_at_exit, 0);
	my_element = &fuuid_shared->in_flight[number];

	used = pg_atomic_read_u32(&fuuid_shared->in_flight_used);
	while (used <= number &&
		   !pg_atomic_compare_exchange_u32(&fuuid_shared->in_flight_used, &used, number + 1))
		;
}

/*
 * fuuid_in_flight_publish() where nothing was published yet, or a later nanosecond.
 * Outside of a transaction there is nothing to hold back; a process that has no
 * element runs none.
 */
void
fuuid_in_flight_publish_first(uint64 first_ns)
{
	if (!IsTransactionState())
		return;
	my_element->database = MyDatabaseId;
	my_element->pid = MyProcPid;
	pg_write_barrier();
	pg_atomic_write_u64(&my_element->first_ns, first_ns);
	fuuid_in_flight_published_ns = first_ns;
	FUUID_TEST_POINT("published");
}

/*
 * The smaller one of a nanosecond and what our lock of a prepared transaction of
 * this database holds.
 */
static uint64
first_of_prepared(uint64 first_ns, int *held_back_by)
{
	uint64		prepared;
	LockData   *locks;
	bool		found = false;

	prepared = pg_atomic_read_u64(&fuuid_shared->prepared);
	if (prepared == pg_atomic_read_u64(&fuuid_shared->prepared_ended))
		return first_ns;
	pg_memory_barrier();

	locks = GetLockStatusData();
	for (int i = 0; i < locks->nelements; i++)
	{
		const LOCKTAG *tag = &locks->locks[i].locktag;

		if (tag->locktag_type == LOCKTAG_ADVISORY && tag->locktag_field4 == LOCK_CLASS)
		{
			uint64		ns = (uint64) tag->locktag_field2 << 32 | tag->locktag_field3;

			found = true;
			if (ns < first_ns && tag->locktag_field1 == MyDatabaseId)
			{
				first_ns = ns;
				*held_back_by = FUUID_HELD_BACK_BY_PREPARED;
			}
		}
	}
	if (!found)
		pg_atomic_write_u64(&fuuid_shared->prepared_ended, prepared);
	return first_ns;
}

/*
 * The first nanosecond, but at most none_ns, of which a transaction of this database
 * that has not ended may have generated, and the process of that one.  Those of
 * others cannot insert here.
 *
 * Of each value that was reserved before the call the transaction is found, or
 * has ended.  The elements come before the locks, because what is prepared moves from
 * there to here.
 */
uint64
fuuid_in_flight_first(uint64 none_ns, int *held_back_by)
{
	uint64		first_ns = none_ns;
	uint32		used;

	*held_back_by = FUUID_HELD_BACK_BY_NONE;
	pg_memory_barrier();
	used = pg_atomic_read_u32(&fuuid_shared->in_flight_used);
	for (uint32 i = 0; i < used; i++)
	{
		InFlight   *element = &fuuid_shared->in_flight[i];
		uint64		ns = pg_atomic_read_u64(&element->first_ns);

		if (ns == 0 || ns >= first_ns)
			continue;

		/* Of another process, if the one whose nanosecond this is has ended since. */
		pg_read_barrier();
		if (element->database == MyDatabaseId)
		{
			first_ns = ns;
			*held_back_by = element->pid;
		}
	}
	FUUID_TEST_POINT("in_flight_read");
	pg_memory_barrier();
	return first_of_prepared(first_ns, held_back_by);
}
