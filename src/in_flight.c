/*
 * in_flight.c
 *	  The running transactions that may have generated under the order of the
 *	  instance, and from which nanosecond on.
 *
 *	  A process publishes that, before it reserves its transaction's first value,
 *	  in its element of shared memory; a parallel worker in its leader's, whose
 *	  transaction its values belong to.  What is published counts as long as the
 *	  process runs the transaction it was published for, by the local transaction
 *	  number in its PGPROC.  The server resets that when the transaction becomes
 *	  visible, not before, under the lock that a new snapshot takes.  So nothing
 *	  depends on the leader's taking it back, who may not even have this library.
 *
 *	  The nanosecond and 7 bits of the number are one word, so that leader and workers
 *	  can write it by compare-and-exchange: the upper 56 bits of the nanosecond, hence
 *	  rounded down; a bit that is set; the 7 bits.  The whole number is written before,
 *	  so that what nobody has cleared does not count for each later transaction with
 *	  the same 7 bits: a leader that has not attached the memory leaves its workers'.
 *
 *	  A prepared transaction has no process, and outlives a restart.  It keeps what
 *	  was published as the identity of a heavyweight lock, which the server keeps,
 *	  and recovers, with the transaction and releases after it has become visible.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/twophase.h"
#include "access/xact.h"
#include "compat.h"
#include "in_flight.h"
#include "miscadmin.h"
#include "shared_ordering.h"
#include "storage/lmgr.h"
#include "storage/proc.h"
#include "test_point.h"

#define XACT_MASK	UINT64CONST(0x7F)
#define WORD_SET	UINT64CONST(0x80)
#define NS_MASK		(~UINT64CONST(0xFF))

/* pg_locks.objsubid of our locks; those of SQL's advisory locks are 1 and 2. */
#define LOCK_CLASS	0x7575

static const volatile LocalTransactionId no_xact = InvalidLocalTransactionId;

const volatile LocalTransactionId *fuuid_in_flight_xact = &no_xact;
LocalTransactionId fuuid_in_flight_published_xact = InvalidLocalTransactionId;
uint64		fuuid_in_flight_published_ns = 0;

/* That of the process whose transaction this one works for: itself, or a worker's leader. */
static InFlight *own = NULL;

/*
 * A parallel worker that loaded the library by itself, for a call in the body of a
 * function: its leader may lack it.
 */
static bool leader_may_lack_library = false;

static uint64
word_of(LocalTransactionId xact, uint64 ns)
{
	return (ns & NS_MASK) | WORD_SET | (xact & XACT_MASK);
}

/*
 * Does the word of an element count: was it published for the transaction that the
 * process runs?
 */
static bool
in_flight(const InFlight *element, uint64 word, PGPROC *process)
{
	LocalTransactionId xact = FUUID_LOCAL_XACT(process);

	return xact != InvalidLocalTransactionId && word == word_of(xact, word) && element->xact == xact;
}

/*
 * NULL for an auxiliary process, such as the archiver: it runs no transaction.
 */
static InFlight *
element_of(PGPROC *process)
{
	uint32		number = FUUID_PROC_NUMBER(process);

	return number < (uint32) MaxBackends ? &fuuid_shared->in_flight[number] : NULL;
}

/*
 * Keep what the transaction has published, which is about to be prepared.
 */
static void
keep_prepared(void)
{
	InFlight   *element;
	uint64		word;
	LOCKTAG		tag;

	if (!fuuid_shared_attach())
		return;
	element = element_of(MyProc);
	if (element == NULL)
		return;
	word = pg_atomic_read_u64(&element->word);
	if (!in_flight(element, word, MyProc))
		return;

	SET_LOCKTAG_ADVISORY(tag, MyDatabaseId, (uint32) (word >> 32), (uint32) (word & NS_MASK), LOCK_CLASS);
	(void) LockAcquire(&tag, ShareLock, false, false);
	FUUID_TEST_POINT("preparing");

	/* Only now, so that who has seen this number finds the lock. */
	pg_atomic_fetch_add_u64(&fuuid_shared->prepared, 1);
}

/*
 * What the transaction has published, or its workers have, counts no more; cleared,
 * it is passed over without a look at the process.  Only the process itself does
 * this, between two transactions: anybody else could find the word ended, and clear
 * what has been published for the next one since.
 */
static void
clear_own(void)
{
	InFlight   *element = fuuid_shared != NULL ? element_of(MyProc) : NULL;

	if (element != NULL && pg_atomic_read_u64(&element->word) != 0)
		pg_atomic_write_u64(&element->word, 0);
}

static void
xact_callback(XactEvent event, void *arg pg_attribute_unused())
{
	switch (event)
	{
		case XACT_EVENT_PRE_PREPARE:
			keep_prepared();
			break;
		case XACT_EVENT_COMMIT:
		case XACT_EVENT_ABORT:
		case XACT_EVENT_PREPARE:
			clear_own();
			fuuid_in_flight_published_xact = InvalidLocalTransactionId;
			break;
		default:
			break;
	}
}

/*
 * Called when the library is loaded.  A leader must know of its workers' values
 * when it prepares its transaction, whether or not it generates any itself.
 */
void
fuuid_in_flight_init(void)
{
	leader_may_lack_library = IsParallelWorker() && !InitializingParallelWorker;
	RegisterXactCallback(xact_callback, NULL);
}

/*
 * Called before this backend's first value under the order of the instance.
 */
void
fuuid_in_flight_enter(void)
{
	PGPROC	   *leader;
	uint32		number;
	uint32		used;

	/* The postmaster may load a library that generates; it has no transactions. */
	if (MyProc == NULL)
		return;

	leader = IsParallelWorker() ? MyProc->lockGroupLeader : MyProc;
	own = element_of(leader);
	if (own == NULL)
		return;
	number = own - fuuid_shared->in_flight;

	used = pg_atomic_read_u32(&fuuid_shared->in_flight_used);
	while (used <= number &&
		   !pg_atomic_compare_exchange_u32(&fuuid_shared->in_flight_used, &used, number + 1))
		;
	fuuid_in_flight_xact = &FUUID_LOCAL_XACT(leader);
}

/*
 * fuuid_in_flight_publish() where it was not published yet.  Raises an error in a
 * parallel worker whose leader might prepare the transaction without this library.
 */
void
fuuid_in_flight_publish_first(uint64 first_ns)
{
	LocalTransactionId xact = *fuuid_in_flight_xact;
	uint64		word = word_of(xact, first_ns);
	uint64		seen;

	if (xact != InvalidLocalTransactionId)
	{
		if (leader_may_lack_library && max_prepared_xacts > 0)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("fast_uuid is not loaded in the leader of this parallel worker"),
					 errdetail("If the leader prepared its transaction, uuidv7_fast_watermark() would not know of this UUID."),
					 errhint("Add fast_uuid to \"shared_preload_libraries\" or \"session_preload_libraries\", or call one of its functions in the session before the parallel query.")));

		seen = pg_atomic_read_u64(&own->word);
		do
		{
			own->xact = xact;

			/*
			 * The leader, or another worker, may have been here.  The 7 bits alone
			 * say so: what is left of an earlier transaction counts from now on,
			 * and others may already rely on it.
			 */
			if (seen == word_of(xact, seen) && seen <= word)
				break;
			FUUID_TEST_POINT("publishing");
		} while (!pg_atomic_compare_exchange_u64(&own->word, &seen, word));
	}
	fuuid_in_flight_published_xact = xact;
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
 * has ended: it was published before.  The elements come before the locks,
 * because what is prepared moves from there to here.
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
		PGPROC	   *process = GetPGProcByNumber(i);
		uint64		word = pg_atomic_read_u64(&element->word);

		if (word == 0)
			continue;

		/* Only a number that is read after the word tells that it has ended. */
		pg_read_barrier();
		if (!in_flight(element, word, process))
		{
			FUUID_TEST_POINT("in_flight_ended");
			continue;
		}
		if ((word & NS_MASK) < first_ns && process->databaseId == MyDatabaseId)
		{
			first_ns = word & NS_MASK;
			*held_back_by = process->pid;
		}
	}
	FUUID_TEST_POINT("in_flight_read");
	pg_memory_barrier();
	return first_of_prepared(first_ns, held_back_by);
}
