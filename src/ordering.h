/*
 * ordering.h
 *	  Strict order of values: of one backend, or of all in the instance.
 */
#ifndef FU_ORDERING_H
#define FU_ORDERING_H

#include <time.h>

#include "uuid_layout.h"

/* Scopes of the order, as in fast_uuid.ordering. */
typedef enum OrderingScope
{
	FU_ORDERING_SESSION,
	FU_ORDERING_CLUSTER,

	/* fast_uuid.ordering names none: a reservation raises the error */
	FU_ORDERING_UNKNOWN
} OrderingScope;

/*
 * A lead below this is no sign of a clock that was set back: bulk calls set
 * aside up to 256 ns each, in as many sessions as there are.  (It adds up only
 * where one instance makes more than 10^9 values a second.)
 */
#define FU_SET_BACK_NS	FU_NS_PER_MS

/* What has been seen, in one scope, of the clock being behind the latest value. */
typedef struct OrderingStats
{
	uint64		last_ns;		/* nanosecond of the latest value; 0: none */
	uint64		set_backs;		/* times the clock was set back */
	uint64		largest_lead_ns;	/* of the latest value over the clock */
} OrderingStats;

/* Nanosecond (since 1970-01-01 UTC) of this backend's latest value. */
extern uint64 fu_ordering_last_ns;

/* Scope in force, an OrderingScope. */
extern int	fu_ordering_scope;

extern void fu_ordering_step(struct timespec *now, uint32 count);
extern void fu_ordering_session_stats(OrderingStats *stats);
extern void fu_ordering_reset(void);

extern void fu_cluster_init(void);
extern void fu_cluster_reserve(struct timespec *now, uint32 count);
extern void fu_cluster_follow(uint64 last_ns);
extern bool fu_cluster_stats(OrderingStats *stats);
extern void fu_cluster_reset(void);

/*
 * Nanoseconds since 1970-01-01 UTC, and back.
 */
static inline uint64
fu_ns_of_time(const struct timespec *time)
{
	return (uint64) time->tv_sec * FU_NS_PER_S + (uint64) time->tv_nsec;
}

static inline void
fu_time_of_ns(struct timespec *time, uint64 ns)
{
	time->tv_sec = ns / FU_NS_PER_S;
	time->tv_nsec = ns % FU_NS_PER_S;
}

/*
 * Turn the clock's time into that of the next value, and set aside the
 * nanoseconds for "count" values from it on.  Where the clock has not advanced
 * since the latest value, or was set back, it is the nanosecond after that
 * one's.  A step of 1 ns is less than any call takes, so that speed alone never
 * makes the embedded time lead the clock (RFC 9562, section 6.2).
 */
static inline void
fu_ordering_reserve(struct timespec *now, uint32 count)
{
	uint64		ns = fu_ns_of_time(now);

	if (unlikely(fu_ordering_scope != FU_ORDERING_SESSION))
		fu_cluster_reserve(now, count);
	else if (likely(ns > fu_ordering_last_ns))
		fu_ordering_last_ns = ns + (count - 1);
	else
		fu_ordering_step(now, count);
}

#endif							/* FU_ORDERING_H */
