/*
 * feed.h
 *	  The order of all backends, in which feed ids and positions are, and the
 *	  watermark.
 */
#ifndef FUUID_FEED_H
#define FUUID_FEED_H

#include "feed/shared.h"
#include "storage/buf.h"
#include "utils/relcache.h"
#include "utils/snapshot.h"

/* in_flight.c: backends in this order, and transactions with ids of it. */

/* *held_back_by of fuuid_in_flight_first(), in place of a process ID. */
#define FUUID_HELD_BACK_BY_NONE		(-1)
#define FUUID_HELD_BACK_BY_PREPARED	0

#define FUUID_NOTHING_PUBLISHED		PG_UINT64_MAX

/* What this backend has published; has it joined? */
extern uint64 fuuid_in_flight_published_ns;
extern bool fuuid_in_flight_joined;
extern WaitGroup *fuuid_in_flight_wait_group; /* once it has joined */

extern void fuuid_in_flight_init(void);
extern void fuuid_in_flight_join(void);
extern void fuuid_in_flight_publish(uint64 first_ns);
extern uint64 fuuid_in_flight_first(uint64 none_ns, int *held_back_by);

/* upper_bound.c: the sequence that holds their upper bound. */

#define FUUID_UPPER_BOUND_NAME "fast_uuid_upper_bound"

/* The sequence, opened and locked. */
typedef struct UpperBound
{
	Relation	sequence;
	Buffer		buffer;
	struct GenericXLogState *record;	/* for the WAL; NULL once written */
} UpperBound;

/* What the sequence holds. */
typedef struct UpperBoundValue
{
	int64		us;				/* since 1970-01-01 UTC; 0: was never set */
	int64		incarnation;	/* SharedOrdering.incarnation when it was set;
								 * 0: by setval() or pg_upgrade */
} UpperBoundValue;

extern Oid	fuuid_upper_bound_find(void);
extern UpperBoundValue fuuid_upper_bound_peek(Oid sequence);
extern bool fuuid_upper_bound_lock(UpperBound *bound, Oid sequence, bool wait);
extern UpperBoundValue fuuid_upper_bound_read(const UpperBound *bound);
extern void fuuid_upper_bound_write(UpperBound *bound, UpperBoundValue value);
extern void fuuid_upper_bound_unlock(UpperBound *bound);

/* order.c: the order. */

/* Nanosecond of this backend's latest feed id; 0: none since a reset. */
extern uint64 fuuid_feed_latest_ns;

/* Of the first one that its transaction was given, if any, and holds back. */
extern uint64 fuuid_feed_first_ns;

extern uint64 fuuid_feed_reserve(uint64 clock_ns);
extern uint64 fuuid_feed_advance_to(uint64 ns);
extern void fuuid_feed_cover(uint64 last_ns);
extern int64 fuuid_feed_upper_bound(void);
extern void fuuid_feed_lock_bound(UpperBound *bound);
extern void fuuid_feed_write_bound(UpperBound *bound, uint64 last_ns);

/* watermark.c: below it a statement sees every row that it ever could. */

extern uint64 fuuid_watermark_for(Snapshot snapshot);
extern bool fuuid_watermark_is_given(void);
extern void fuuid_watermark_after_wait(void);
extern void fuuid_watermark_forget(void);

#endif							/* FUUID_FEED_H */
