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

/*
 * Turn the clock's time into that of the next value: where the clock has not
 * advanced since the latest value, or was set back, the nanosecond after that
 * one's.  A step of 1 ns is less than any call takes, so that speed alone never
 * makes the embedded time lead the clock (RFC 9562, section 6.2).
 */
static inline void
fu_ordering_advance(struct timespec *now)
{
	uint64		ns = (uint64) now->tv_sec * FU_NS_PER_S + (uint64) now->tv_nsec;

	if (unlikely(ns <= fu_ordering_last_ns))
	{
		ns = fu_ordering_last_ns + 1;
		now->tv_sec = ns / FU_NS_PER_S;
		now->tv_nsec = ns % FU_NS_PER_S;
	}
	fu_ordering_last_ns = ns;
}

#endif							/* FU_ORDERING_H */
