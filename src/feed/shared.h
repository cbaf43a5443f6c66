/*
 * shared.h
 *	  The memory that the backends of an instance share.
 */
#ifndef FUUID_SHARED_H
#define FUUID_SHARED_H

#include "access/twophase.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

/*
 * The version of this layout.  Raise it with each change of SharedOrdering, of
 * what it contains, and of what its members mean, because backends that have
 * loaded an older library may still be running.
 */
#define FUUID_SHARED_LAYOUT 1

/*
 * Memory order.  An atomic read-and-write operation acquires and releases;
 * that it is a full barrier, as port/atomics.h says, is not relied on.
 *
 * Generating: a backend writes its first_ns, then exchanges last_ns.  The
 * watermark reads last_ns, and after a full barrier each first_ns.  So for a
 * UUID up to that last_ns it finds the first_ns of its transaction, unless
 * that has ended.
 *
 * End of a transaction: the server makes it visible, and after a full barrier
 * first_ns becomes 0.  The watermark reads first_ns, and after a full barrier
 * takes a snapshot, which therefore knows of every end that was found.
 *
 * PREPARE TRANSACTION: the lock is taken, then "prepared" is incremented, then
 * first_ns becomes 0.  The watermark reads first_ns, "prepared" and the locks,
 * with full barriers in between.  So it finds among the locks what is no
 * longer in first_ns.
 *
 * Waking: after first_ns has become 0, "ended" is incremented, and then the
 * list of ended_cv is looked at, under its spinlock.  Who waits enters the
 * list, under the spinlock, and then reads "ended".  So it finds the new
 * number, or is found.  The watermark that it computes next finds first_ns
 * cleared.
 *
 * Joining and a reset exclude each other by "lock".  A backend leaves without
 * it: a full barrier comes before it does, and after a reset has seen that.
 */

/* A backend that has joined the order, in a cache line of its own. */
typedef union InFlight
{
	struct
	{
		pg_atomic_uint64 first_ns;	/* of its transaction; 0: not published */
		Oid			database;	/* written before first_ns */
		int			pid;		/* 0: nobody has joined */
	};
	char		pad[PG_CACHE_LINE_SIZE];
} InFlight;

/*
 * Those of a database who wait for the end of a transaction with UUIDs, in a
 * cache line of their own, so that they cost other databases nothing.
 */
typedef union WaitGroup
{
	struct
	{
		Oid			database;	/* the latest, where several share it */
		ConditionVariable ended_cv; /* those who wait for the next end */
		pg_atomic_uint64 ended; /* transactions, from a random number on */
		pg_atomic_uint64 due_us;	/* see uuidv7_feed_wait() */
	};
	char		pad[PG_CACHE_LINE_SIZE];
} WaitGroup;

/* All databases but the first ones share the last group. */
#define FUUID_WAIT_GROUPS	16

/* A watermark that was computed, and the snapshot that was taken after it. */
typedef struct Watermark
{
	uint64		ns;				/* 0: none */
	uint64		since_us;		/* since when it is, or is not, the newest */
	Oid			database;
	bool		newest;			/* is it the newest one of its database? */
	TransactionId xmax;
	uint32		xcnt;			/* how many below xmax were running */
} Watermark;

/* How many are kept: the newest of each database, and others if they fit. */
#define FUUID_WATERMARKS	128

/*
 * An "incarnation" of the server lasts as long as this memory: until a
 * restart, or a crash of a process.  Its number is random, at least 2^32, and
 * in its lowest bits counts the resets.
 */
#define FUUID_RESET_BITS	20

typedef struct SharedOrdering
{
	/* Alone in their cache line: see InFlight. */
	union
	{
		struct
		{
			uint32		layout; /* always the first member */
			pg_atomic_uint64 last_ns;	/* further UUIDs are later */
		};
		char		pad[PG_CACHE_LINE_SIZE];
	};

	WaitGroup	wait_groups[FUUID_WAIT_GROUPS];

	/* Protects the watermarks, and incarnation; whoever joins takes it. */
	LWLock		lock;
	int64		incarnation;
	uint32		in_flight_used; /* no element from here on was ever used */

	/* The largest that a call has found since a reset. */
	pg_atomic_uint64 largest_clock_lead_ns;

	/* Transactions prepared with UUIDs so far, and when none was left. */
	pg_atomic_uint64 prepared;
	pg_atomic_uint64 prepared_ended;

	uint32		last_watermark; /* index of the one that was kept last */
	Watermark	watermarks[FUUID_WATERMARKS];

	/* One per process but the auxiliary ones, which run no transaction. */
	InFlight	in_flight[FLEXIBLE_ARRAY_MEMBER]
				pg_attribute_aligned(PG_CACHE_LINE_SIZE);
} SharedOrdering;

StaticAssertDecl(offsetof(SharedOrdering, in_flight) % PG_CACHE_LINE_SIZE == 0,
				 "each element must have a cache line of its own");

/*
 * After in_flight, each watermark has room for the transactions that were
 * running.  A snapshot does not have its own among them.
 */
#define FUUID_RUNNING_SIZE \
	((Size) (MaxBackends + max_prepared_xacts) * sizeof(TransactionId))
#define FUUID_RUNNING_OFFSET(watermark) \
	(offsetof(SharedOrdering, in_flight) + MaxBackends * sizeof(InFlight) + \
	 (watermark) * FUUID_RUNNING_SIZE)
#define FUUID_SHARED_SIZE FUUID_RUNNING_OFFSET(FUUID_WATERMARKS)

/* NULL until attached. */
extern SharedOrdering *fuuid_shared;

extern void fuuid_shared_init(void);
extern bool fuuid_shared_attach(void);
extern void fuuid_shared_require(void);

#endif							/* FUUID_SHARED_H */
