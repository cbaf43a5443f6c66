/*
 * in_flight.c
 *	  The transactions in flight that may have UUIDs of instance or durable order, and
 *	  from which nanosecond on.
 *
 *	  Before a backend reserves the first UUID of its transaction, it "publishes" the
 *	  earliest nanosecond that the transaction's UUIDs can have, in its element of
 *	  shared memory.  It clears that after the server has made the transaction's end
 *	  visible.  Until then the transaction "holds back" the watermark, which does not
 *	  exceed what is published.
 *
 *	  A prepared transaction has no process, and outlives a restart.  It keeps what was
 *	  published as the identity of a heavyweight lock, which the server keeps, and
 *	  recovers, with the transaction, and releases after its end has become visible.
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

/* The element of this process, once registered; an auxiliary process has none. */
static InFlight *my_element = NULL;

/*
 * Keep what the transaction, which is about to be prepared, has published.
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

	/* After the lock is taken: see "Memory order" in shared.h. */
	pg_atomic_fetch_add_u64(&fuuid_shared->prepared, 1);
}

/*
 * Clear what the transaction has published: its end is visible, or it can only abort.
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
 * At exit a transaction can only abort.  Do not leave that to xact_callback(), which is
 * not called if another library's callback fails first.
 */
static void
clear_at_exit(int code pg_attribute_unused(), Datum arg pg_attribute_unused())
{
	clear_published();
}

/*
 * Prepare to publish, before this backend's first UUID of instance or durable order.
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
 * fuuid_in_flight_publish() if nothing, or only a later nanosecond, has been published.
 * Outside of a transaction there is nothing to hold back.  A process without an element
 * runs no transaction.
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
 * Return the least of first_ns and of what the prepared transactions of this database
 * have published, which our locks hold.
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
 * Return the earliest nanosecond that a transaction of this database has published, but
 * at most none_ns, and in *held_back_by its process ID, or a FUUID_HELD_BACK_BY_ number.
 * Transactions of other databases do not count, because they cannot insert into this one.
 *
 * For each UUID reserved before the call, the transaction is found, or has ended.  The
 * elements are read before the locks, because PREPARE TRANSACTION moves what is published
 * from the former to the latter.
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

		/* If that transaction has ended since, this may already be another backend's. */
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
