/*
 * session.h
 *	  The order of one backend's keys.
 */
#ifndef FUUID_SESSION_H
#define FUUID_SESSION_H

#include "common/clock.h"

/*
 * Nanosecond (since 1970-01-01 UTC) of the latest key that this backend has
 * generated; 0: none.
 */
extern uint64 fuuid_session_last_ns;

/*
 * Return the nanosecond of the next UUID, and reserve *count nanoseconds from
 * it on, at most as many as the caller uses at once.  It is the clock's time
 * or, if the clock is not ahead of the latest UUID, the nanosecond after that;
 * then only this one is reserved, and *count becomes 1.  Any call takes longer
 * than a nanosecond, so speed never makes the time in UUIDs lead the clock
 * (RFC 9562, section 6.2).  After a backward step of the clock the lead has no
 * limit, but the end of the time that can be encoded is an error.
 */
static inline uint64
fuuid_session_reserve(uint64 clock_ns, uint32 *count)
{
	if (unlikely(clock_ns <= fuuid_session_last_ns))
	{
		fuuid_clock_require_end(fuuid_session_last_ns);
		*count = 1;
		return ++fuuid_session_last_ns;
	}
	fuuid_session_last_ns = clock_ns + (*count - 1);
	return clock_ns;
}

#endif							/* FUUID_SESSION_H */
