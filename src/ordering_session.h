/*
 * ordering_session.h
 *	  The order of one backend's values.
 */
#ifndef FUUID_ORDERING_SESSION_H
#define FUUID_ORDERING_SESSION_H

#include <time.h>

#include "uuid_layout.h"

/* For fast_uuid_stats(), of one scope. */
typedef struct OrderingStats
{
	uint64		last_ns;		/* nanosecond of the latest value; 0: none */
	uint64		largest_clock_lead_ns;	/* that a call has found */
} OrderingStats;

/*
 * Nanosecond (since 1970-01-01 UTC) of this backend's latest value, under
 * whichever order; 0: none that counts.
 */
extern uint64 fuuid_session_last_ns;

extern void fuuid_session_advance_past_last(struct timespec *now, uint32 count);
extern void fuuid_session_note_lead(uint64 clock_ns);
extern void fuuid_session_stats(OrderingStats *stats);
extern void fuuid_session_reset(void);

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
 * Turn the clock's time into that of the next value, and reserve the
 * nanoseconds for "count" values from it on.  Where the clock has not advanced
 * since the latest value, or stepped backwards, it is the nanosecond after that
 * one's.
 */
static inline void
fuuid_session_reserve(struct timespec *now, uint32 count)
{
	uint64		ns = fuuid_ns_of_time(now);

	if (likely(ns > fuuid_session_last_ns))
		fuuid_session_last_ns = ns + (count - 1);
	else
		fuuid_session_advance_past_last(now, count);
}

#endif							/* FUUID_ORDERING_SESSION_H */
