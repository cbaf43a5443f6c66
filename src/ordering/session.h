/*
 * session.h
 *	  The order of one backend's UUIDs.
 */
#ifndef FUUID_SESSION_H
#define FUUID_SESSION_H

#include "common/uuid_layout.h"

/*
 * Nanosecond (since 1970-01-01 UTC) of the latest UUID that this backend has
 * generated or observed, under any order; 0: none since a reset.
 */
extern uint64 fuuid_session_last_ns;

/* How far that was ahead of the clock, as far as a call found since a reset. */
extern uint64 fuuid_session_largest_lead_ns;

extern uint64 fuuid_session_advance_past_last(uint64 clock_ns);
extern void fuuid_session_note_lead(uint64 clock_ns);
extern void fuuid_session_reset(void);

/* fuuid_ordering_reserve() in the order of this backend alone. */
static inline uint64
fuuid_session_reserve(uint64 clock_ns, uint32 *count)
{
	if (unlikely(clock_ns <= fuuid_session_last_ns))
	{
		*count = 1;
		return fuuid_session_advance_past_last(clock_ns);
	}
	fuuid_session_last_ns = clock_ns + (*count - 1);
	return clock_ns;
}

#endif							/* FUUID_SESSION_H */
