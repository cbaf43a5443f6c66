/*
 * shared.h
 *	  What the backends of an instance share.
 */
#ifndef FUUID_SHARED_H
#define FUUID_SHARED_H

#include "access/twophase.h"
#include "miscadmin.h"
#include "ordering/watermark_history.h"
#include "port/atomics.h"

/*
 * Number of the layout of what is shared.  Raise it with each change of SharedOrdering,
 * of what it contains, and of what the words mean: sessions with the library of before
 * may go on.
 */
#define FUUID_SHARED_LAYOUT 1

/*
 * Memory order.  An atomic operation that reads and writes is a full barrier.
 *
 * Value: first_ns of the process, then last_ns, by an exchange.  The watermark reads
 * last_ns, a full barrier, then each first_ns: of a value up to last_ns it finds the
 * transaction, or that this has ended.
 *
 * End of a transaction: the server makes it visible, a full barrier, then first_ns is 0.
 * The watermark reads first_ns, a full barrier, then takes a snapshot: that knows of
 * every end that was found.
 *
 * PREPARE TRANSACTION: the lock is taken, then prepared goes up, then first_ns is 0.  The
 * watermark reads first_ns, a full barrier, prepared, a full barrier, then the locks: what
 * has left the first is in the last.
 *
 * Reset: epoch, then last_ns, then epoch, each by a full barrier.  Who reads last_ns reads
 * epoch after a read barrier: having seen the word reset, it sees the change of epoch.
 */

/*
 * From which nanosecond on a process's transaction may have values; 0: none.  Of the
 * size of a cache line; see in_flight.c.
 */
typedef union InFlight
{
	struct
	{
		pg_atomic_uint64 first_ns;
		Oid			database;	/* of the process; written before */
		int			pid;
	};
	char		pad[PG_CACHE_LINE_SIZE];
} InFlight;

/* A reset changes the epoch twice, and what it tells. */
#define FUUID_RESET_BEGINS	((UINT64CONST(1) << 32) + 1)
#define FUUID_RESET_ENDS	1
#define FUUID_RESETS_BEGUN(epoch)		((epoch) >> 32)
#define FUUID_RESETS_GOING_ON(epoch)	((uint32) (epoch))

typedef struct SharedOrdering
{
	pg_atomic_uint64 last_ns;	/* nanosecond of the latest value; or number of a reset: none */

	/* How many resets have begun, and how many of them go on; no value comes twice. */
	pg_atomic_uint64 epoch;

	pg_atomic_uint64 largest_clock_lead_ns; /* that a call has found since a reset */

	/*
	 * A life of the server is that of this memory: it ends with a restart and with a
	 * crash.  A random number above 2^32.
	 */
	int64		life;

	WatermarkHistory watermarks;

	/* Transactions prepared with values; and of how many of them none was left. */
	pg_atomic_uint64 prepared;
	pg_atomic_uint64 prepared_ended;

	pg_atomic_uint32 in_flight_used;	/* no element from here on was ever used */
	InFlight	in_flight[FLEXIBLE_ARRAY_MEMBER];	/* MaxBackends, then fuuid_shared_running() */
} SharedOrdering;

/* As many transactions as the server can have; a snapshot has one less, its own. */
#define FUUID_MAX_RUNNING ((Size) (MaxBackends + max_prepared_xacts))

/*
 * An element of in_flight for each process but the auxiliary ones, which run no
 * transaction.
 */
#define FUUID_SHARED_SIZE \
	(offsetof(SharedOrdering, in_flight) + MaxBackends * sizeof(InFlight) + \
	 FUUID_WATERMARKS * FUUID_MAX_RUNNING * sizeof(TransactionId))

/* NULL until attached. */
extern SharedOrdering *fuuid_shared;

extern void fuuid_shared_init(void);
extern bool fuuid_shared_attach(void);
extern void fuuid_shared_require(void);
extern TransactionId *fuuid_shared_running(uint32 watermark);

#endif							/* FUUID_SHARED_H */
