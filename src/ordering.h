/*
 * ordering.h
 *	  Strict order of the values that one backend returns.
 */
#ifndef FU_ORDERING_H
#define FU_ORDERING_H

#include <time.h>

#include "uuid_layout.h"

/* Nanosecond (since 1970-01-01 UTC) of this backend's latest value. */
extern uint64 fu_ordering_last_ns;

/* What this backend has seen of the clock being behind its latest value. */
typedef struct OrderingStats
{
	uint64		set_backs;		/* times the clock was set back, by more than 1 us */
	uint64		largest_lead_ns;	/* of the latest value over the clock */
} OrderingStats;

extern OrderingStats fu_ordering_stats;

extern void fu_ordering_step(struct timespec *now, uint32 count);

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
	uint64		ns = (uint64) now->tv_sec * FU_NS_PER_S + (uint64) now->tv_nsec;

	if (likely(ns > fu_ordering_last_ns))
		fu_ordering_last_ns = ns + (count - 1);
	else
		fu_ordering_step(now, count);
}

#endif							/* FU_ORDERING_H */
