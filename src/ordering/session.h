/*
 * session.h
 *	  The order of one backend's values.
 */
#ifndef FUUID_SESSION_H
#define FUUID_SESSION_H

#include "pure/uuid_layout.h"

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

extern uint64 fuuid_session_advance_past_last(uint64 clock_ns, uint32 count);
extern void fuuid_session_note_lead(uint64 clock_ns);
extern void fuuid_session_stats(OrderingStats *stats);
extern void fuuid_session_reset(void);

/*
 * Turn the clock's time into that of the next value, and reserve the
 * nanoseconds for "count" values from it on.  Where the clock has not advanced
 * since the latest value, or stepped backwards, it is the nanosecond after that
 * one's.
 */
static inline uint64
fuuid_session_reserve(uint64 clock_ns, uint32 count)
{
	if (unlikely(clock_ns <= fuuid_session_last_ns))
		return fuuid_session_advance_past_last(clock_ns, count);
	fuuid_session_last_ns = clock_ns + (count - 1);
	return clock_ns;
}

#endif							/* FUUID_SESSION_H */
