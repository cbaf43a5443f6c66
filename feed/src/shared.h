/*
 * shared.h
 *	  The memory that the backends of an instance share.
 *
 *	  doc/internals.md says in which order it is read and written, and why.
 */
#ifndef FEED_SHARED_H
#define FEED_SHARED_H

#include "access/twophase.h"
#include "miscadmin.h"
#include "port/atomics.h"
#include "storage/condition_variable.h"
#include "storage/lwlock.h"

/*
 * The version of this layout.  Raise it with each change of what follows, and
 * of what it means: backends with an older library may still be running.
 */
#define FEED_LAYOUT	1

/* A sequence, and the file in which it counts: a restart makes another one. */
typedef struct FeedSequence
{
	Oid			database;
	Oid			relid;
	Oid			file;			/* relfilenumber */
} FeedSequence;

/* What a transaction has published: its numbers of the sequence are above. */
typedef struct FeedPair
{
	Oid			relid;
	pg_atomic_uint64 v0;		/* the last number that the sequence had given */
} FeedPair;

/* So many fit; what a transaction publishes beyond them are locks. */
#define FEED_PAIRS	7

/*
 * The state of a backend is 0 or, once it has published, the sequence of its first
 * pair, the number of its database's entry, and how many pairs there are.  Readers
 * look at that of each, so states lie close together, and one comparison is enough
 * for most.
 */
#define FEED_STATE(relid, entry, pairs) \
	((uint64) (relid) << 32 | (uint64) (entry) << 8 | (pairs))
#define FEED_STATE_RELID(state)	((Oid) ((state) >> 32))
#define FEED_STATE_ENTRY(state)	((int) ((state) >> 8 & 0xffffff))
#define FEED_STATE_PAIRS(state)	((int) ((state) & 0xff))

/* A backend that has joined.  Few transactions have more than the first pair. */
typedef struct FeedBackend
{
	pg_atomic_uint64 first_v0;
	pg_atomic_uint32 ended;		/* its transactions that had published: a count */
	int			pid;			/* 0: is free */
} FeedBackend;

typedef struct pg_attribute_aligned(PG_CACHE_LINE_SIZE) FeedFurther
{
	FeedPair	pairs[FEED_PAIRS - 1];
} FeedFurther;

/*
 * A database of which a backend has joined, in cache lines of its own.  There
 * are as many as backends, so that no two databases share one.
 */
typedef struct pg_attribute_aligned(PG_CACHE_LINE_SIZE) FeedDatabase
{
	Oid			oid;
	int			joined;			/* backends; at 0 another database may take this */
	pg_atomic_uint64 ended;		/* changes when there can be new rows: see wait.c */
	pg_atomic_uint64 due_us;	/* see wait.c */
	ConditionVariable ended_cv; /* those who wait for the next end */
} FeedDatabase;

/* A bound that was computed, and the snapshot that was taken after it. */
typedef struct FeedMark
{
	int64		bound;
	uint64		kept_us;		/* when, by the monotonic clock */
	TransactionId xmax;
	uint32		xcnt;			/* how many below xmax were running */
} FeedMark;

/* The marks of a sequence, kept by growing age. */
#define FEED_MARKS	16

typedef struct FeedPlace
{
	Oid			owner;			/* of the sequence, when it got the place */
	bool		is_logged;		/* was the page written to the WAL? */
	int			count;
	pg_atomic_uint64 locks;		/* a count of those taken of the sequence, */
	uint64		locks_read;		/* its value when they were last looked for, */
	int64		least_lock;		/* and the least v0 of one then */
	uint64		asked_us;		/* when it was asked for last; 0: is free */
	uint8		order[FEED_MARKS];	/* indexes of marks, the latest first */
	FeedMark	marks[FEED_MARKS];
} FeedPlace;

#define FEED_PLACES		256

typedef struct FeedShared
{
	uint32		layout;			/* always the first member */
	int			backends_used;	/* none from here on has ever joined */
	LWLock		lock;			/* for places, and to join or leave */
	uint64		places_taken;
	FeedSequence sequences[FEED_PLACES];	/* whose places follow */
	FeedPlace	places[FEED_PLACES];

	/* One per process but the auxiliary ones, which run no transaction. */
	pg_atomic_uint64 states[FLEXIBLE_ARRAY_MEMBER];
} FeedShared;

/* After the states come the backends, their further pairs, and the databases. */
#define FEED_BACKENDS_OFFSET \
	(offsetof(FeedShared, states) + MaxBackends * sizeof(pg_atomic_uint64))
#define FEED_BACKENDS(shared) \
	((FeedBackend *) ((char *) (shared) + FEED_BACKENDS_OFFSET))
#define FEED_FURTHER_OFFSET \
	TYPEALIGN(PG_CACHE_LINE_SIZE, \
			  FEED_BACKENDS_OFFSET + MaxBackends * sizeof(FeedBackend))
#define FEED_DATABASES_OFFSET \
	(FEED_FURTHER_OFFSET + MaxBackends * sizeof(FeedFurther))
#define FEED_FURTHER(shared) \
	((FeedFurther *) ((char *) (shared) + FEED_FURTHER_OFFSET))
#define FEED_DATABASE(shared, i) \
	((FeedDatabase *) ((char *) (shared) + FEED_DATABASES_OFFSET) + (i))

/*
 * After those, each mark has room for the transactions that were running: as many
 * as the server can have, the one that computed the mark among them.
 */
#define FEED_RUNNING_SIZE \
	((Size) (MaxBackends + max_prepared_xacts) * sizeof(TransactionId))
#define FEED_RUNNING_OFFSET(mark) \
	(FEED_DATABASES_OFFSET + MaxBackends * sizeof(FeedDatabase) + \
	 (mark) * FEED_RUNNING_SIZE)
#define FEED_SHARED_SIZE \
	FEED_RUNNING_OFFSET(FEED_PLACES * FEED_MARKS)

#endif							/* FEED_SHARED_H */
