/*
 * ordering.h
 *	  The order of values: which one is in force, and the way to it.
 */
#ifndef FUUID_ORDERING_H
#define FUUID_ORDERING_H

#include "ordering/session.h"

/* Scopes of the order, as in fast_uuid.ordering, from the narrowest on. */
typedef enum OrderingScope
{
	FUUID_ORDERING_SESSION,
	FUUID_ORDERING_INSTANCE,
	FUUID_ORDERING_DURABLE
} OrderingScope;

/*
 * Scope in force, an OrderingScope: the wider one of fast_uuid.ordering and
 * fast_uuid.required_ordering.
 */
extern int	fuuid_ordering_scope;

/* Session order, in a backend that has not generated under a wider one. */
extern bool fuuid_ordering_session_only;

extern void fuuid_ordering_set_scope(OrderingScope scope);
extern uint64 fuuid_ordering_reserve_shared(uint64 clock_ns, uint32 count);
extern void fuuid_ordering_advance_past(uint64 ns);
extern void fuuid_ordering_reset(void);

/*
 * Turn the clock's time into that of the next value, and reserve the
 * nanoseconds for "count" values from it on; at most as many as the caller
 * uses at once.  Where the clock has not advanced since the latest value, or
 * stepped backwards, it is the nanosecond after that one's.  Any call takes
 * longer than that, so that one session's speed never makes the embedded time
 * lead the clock (RFC 9562, section 6.2).
 */
static inline uint64
fuuid_ordering_reserve(uint64 clock_ns, uint32 count)
{
	if (likely(fuuid_ordering_session_only))
		return fuuid_session_reserve(clock_ns, count);
	return fuuid_ordering_reserve_shared(clock_ns, count);
}

#endif							/* FUUID_ORDERING_H */
