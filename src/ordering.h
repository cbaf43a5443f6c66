/*
 * ordering.h
 *	  Strict order of the values that one backend returns.
 */
#ifndef FU_ORDERING_H
#define FU_ORDERING_H

/* Nanosecond (since 1970-01-01 UTC) of this backend's latest value. */
extern uint64 fu_ordering_last_ns;

/*
 * The nanosecond for the next value: the clock's, or the one after the latest
 * value's where the clock has not advanced since or was set back.  A step of
 * 1 ns is less than any call takes, so that speed alone never makes the
 * embedded time lead the clock (RFC 9562, section 6.2).
 */
static inline uint64
fu_ordering_next(uint64 now)
{
	uint64		next = now > fu_ordering_last_ns ? now : fu_ordering_last_ns + 1;

	fu_ordering_last_ns = next;
	return next;
}

#endif							/* FU_ORDERING_H */
