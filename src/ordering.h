/*
 * ordering.h
 *	  Strict order of values: of one backend, or of all in the instance.
 */
#ifndef FUUID_ORDERING_H
#define FUUID_ORDERING_H

#include <time.h>

#include "uuid_layout.h"

/* Scopes of the order, as in fast_uuid.ordering. */
typedef enum OrderingScope
{
	FUUID_ORDERING_SESSION,
	FUUID_ORDERING_INSTANCE,

	/* fast_uuid.ordering names none: a reservation raises the error */
	FUUID_ORDERING_UNKNOWN
} OrderingScope;

/*
 * A lead below this is no sign of a clock that stepped backwards: bulk calls set
 * aside up to 256 ns each, in as many sessions as there are.  (It adds up only
 * where one instance makes more than 10^9 values a second.)
 */
#define FUUID_BACKWARD_STEP_NS	FUUID_NS_PER_MS

/* What has been seen, in one scope, of the clock being behind the latest value. */
typedef struct OrderingStats
{
	uint64		last_ns;		/* nanosecond of the latest value; 0: none */
	uint64		backward_steps;		/* times the clock stepped backwards */
	uint64		largest_clock_lead_ns;	/* of the latest value over the clock */
} OrderingStats;

/* Nanosecond (since 1970-01-01 UTC) of this backend's latest value. */
extern uint64 fuuid_ordering_last_ns;

/* Scope in force, an OrderingScope. */
extern int	fuuid_ordering_scope;

extern void fuuid_ordering_advance_past_last(struct timespec *now, uint32 count);
extern void fuuid_ordering_session_stats(OrderingStats *stats);
extern void fuuid_ordering_reset(void);

extern void fuuid_instance_reserve(struct timespec *now, uint32 count);

/*
 * Nanoseconds since 1970-01-01 UTC, and back.
 */
static inline uint64
fuuid_ns_of_time(const struct timespec *time)
{
	return (uint64) time->tv_sec * FUUID_NS_PER_S + (uint64) time->tv_nsec;
}

static inline void
fuuid_time_of_ns(struct timespec *time, uint64 ns)
{
	time->tv_sec = ns / FUUID_NS_PER_S;
	time->tv_nsec = ns % FUUID_NS_PER_S;
}

/*
 * Turn the clock's time into that of the next value, and set aside the
 * nanoseconds for "count" values from it on.  Where the clock has not advanced
 * since the latest value, or stepped backwards, it is the nanosecond after that
 * one's.  A step of 1 ns is less than any call takes, so that speed alone never
 * makes the embedded time lead the clock (RFC 9562, section 6.2).
 */
static inline void
fuuid_ordering_reserve(struct timespec *now, uint32 count)
{
	uint64		ns = fuuid_ns_of_time(now);

	if (unlikely(fuuid_ordering_scope != FUUID_ORDERING_SESSION))
		fuuid_instance_reserve(now, count);
	else if (likely(ns > fuuid_ordering_last_ns))
		fuuid_ordering_last_ns = ns + (count - 1);
	else
		fuuid_ordering_advance_past_last(now, count);
}

#endif							/* FUUID_ORDERING_H */
