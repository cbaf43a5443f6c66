/*
 * ordering.h
 *	  The orders of UUIDs, and which one is in force.
 */
#ifndef FUUID_ORDERING_H
#define FUUID_ORDERING_H

#include "ordering/session.h"
#include "ordering/upper_bound.h"

/* Scopes of the order, as in fast_uuid.ordering, from narrow to wide. */
typedef enum OrderingScope
{
	FUUID_ORDERING_SESSION,
	FUUID_ORDERING_INSTANCE,
	FUUID_ORDERING_DURABLE
} OrderingScope;

/* The wider one of fast_uuid.ordering and fast_uuid.required_ordering. */
extern int	fuuid_ordering_scope;

extern void fuuid_ordering_advance_past(uint64 ns);
extern void fuuid_ordering_reset(void);

extern uint64 fuuid_instance_reserve(uint64 clock_ns, uint32 *count);
extern uint64 fuuid_instance_advance_to(uint64 ns);

extern uint64 fuuid_durable_reserve(uint64 clock_ns, uint32 *count);
extern void fuuid_durable_cover(uint64 last_ns);
extern int64 fuuid_durable_upper_bound(void);
extern void fuuid_durable_forget(void);
extern void fuuid_durable_lock(UpperBound *bound);
extern void fuuid_durable_write(UpperBound *bound, uint64 last_ns);

/*
 * Return the nanosecond of the next UUID, and reserve *count nanoseconds from
 * it on, at most as many as the caller uses at once.  It is the clock's time
 * or, if the clock is not ahead of the latest UUID, the nanosecond after that;
 * then only this one is reserved, and *count becomes 1.  Any call takes longer
 * than a nanosecond, so speed never makes the time in UUIDs lead the clock
 * (RFC 9562, section 6.2).  Raises an error if a limit forbids the lead.
 */
static inline uint64
fuuid_ordering_reserve(uint64 clock_ns, uint32 *count)
{
	if (likely(fuuid_ordering_scope == FUUID_ORDERING_SESSION))
		return fuuid_session_reserve(clock_ns, count);
	if (fuuid_ordering_scope == FUUID_ORDERING_INSTANCE)
		return fuuid_instance_reserve(clock_ns, count);
	return fuuid_durable_reserve(clock_ns, count);
}

#endif							/* FUUID_ORDERING_H */
