/*
 * shared.h
 *	  The memory that the backends of an instance share.
 */
#ifndef FUUID_SHARED_H
#define FUUID_SHARED_H

#include "access/twophase.h"
#include "miscadmin.h"
#include "ordering/watermark_history.h"
#include "port/atomics.h"

/*
 * The version of this layout of shared memory.  Raise it with each change of
 * SharedOrdering, of what it contains, and of what its members mean, because backends
 * that have loaded an older library may still be running.
 */
#define FUUID_SHARED_LAYOUT 1

/*
 * Memory order.  An atomic read-and-write operation acquires and releases; that it is a
 * full barrier, as port/atomics.h says, is not relied on.
 *
 * Generating: a backend writes its first_ns, then exchanges last_ns.  The watermark reads
 * last_ns, and after a full barrier each first_ns.  So for a UUID up to that last_ns it
 * finds the first_ns of its transaction, unless that has ended.
 *
 * End of a transaction: the server makes it visible, and after a full barrier first_ns
 * becomes 0.  The watermark reads first_ns, and after a full barrier takes a snapshot,
 * which therefore knows of every end that was found.
 *
 * PREPARE TRANSACTION: the lock is taken, then "prepared" is incremented, then first_ns
 * becomes 0.  The watermark reads first_ns, "prepared" and the locks, with full barriers
 * in between.  So it finds among the locks what is no longer in first_ns.
 *
 * Reset: changes epoch, then last_ns, then epoch, each by such an operation.  A backend
 * reads last_ns, and after a read barrier epoch: if it sees last_ns reset, it sees epoch
 * changed.
 */

/*
 * The nanosecond from which on a backend's transaction may have UUIDs; 0 if it has none.
 * Padded to the size of a cache line.  See in_flight.c.
 */
typedef union InFlight
{
	struct
	{
		pg_atomic_uint64 first_ns;
		Oid			database;	/* of the backend, as pid; written before first_ns */
		int			pid;
	};
	char		pad[PG_CACHE_LINE_SIZE];
} InFlight;

/* A reset adds the first to the epoch as it begins, and subtracts the other at its end. */
#define FUUID_RESET_BEGINS	((UINT64CONST(1) << 32) + 1)
#define FUUID_RESET_ENDS	1
#define FUUID_RESETS_BEGUN(epoch)		((epoch) >> 32)
#define FUUID_RESETS_GOING_ON(epoch)	((uint32) (epoch))

typedef struct SharedOrdering
{
	pg_atomic_uint64 last_ns;	/* further UUIDs are later; a reset stores its number here */

	/*
	 * A reset changes the epoch as it begins and as it ends.  The upper half is how many
	 * resets have begun, the lower half how many of them go on; no epoch comes twice.
	 */
	pg_atomic_uint64 epoch;

	pg_atomic_uint64 largest_clock_lead_ns; /* that a call has found since a reset */

	/*
	 * An "incarnation" of the server lasts as long as this memory: until a restart, or a crash of
	 * a process.  This is its number, random and at least 2^32.
	 */
	int64		incarnation;

	WatermarkHistory watermarks;

	/* Number of transactions prepared with UUIDs; and that at which none was left. */
	pg_atomic_uint64 prepared;
	pg_atomic_uint64 prepared_ended;

	pg_atomic_uint32 in_flight_used;	/* no element from this index on was ever used */
	InFlight	in_flight[FLEXIBLE_ARRAY_MEMBER];	/* MaxBackends; then fuuid_shared_running() */
} SharedOrdering;

/* As many transactions as can run; a snapshot does not have its own among them. */
#define FUUID_MAX_RUNNING ((Size) (MaxBackends + max_prepared_xacts))

/*
 * in_flight has an element for each process but the auxiliary ones, which run no
 * transaction.  After it, each watermark has room for the transactions that were running.
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
