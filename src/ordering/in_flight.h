/*
 * in_flight.h
 *	  The backends that have joined the order of the instance, and the
 *	  transactions in flight that may have its UUIDs, from which nanosecond on.
 */
#ifndef FUUID_IN_FLIGHT_H
#define FUUID_IN_FLIGHT_H

#include "lib/stringinfo.h"

/* What fuuid_in_flight_first() returns in place of a process ID. */
#define FUUID_HELD_BACK_BY_NONE		(-1)
#define FUUID_HELD_BACK_BY_PREPARED	0

#define FUUID_NOTHING_PUBLISHED		PG_UINT64_MAX

/* What this backend has published for its transaction. */
extern uint64 fuuid_in_flight_published_ns;

extern bool fuuid_in_flight_join(bool *joined);
extern int	fuuid_in_flight_others(StringInfo pids);
extern void fuuid_in_flight_publish_first(uint64 first_ns);
extern uint64 fuuid_in_flight_first(uint64 none_ns, int *held_back_by);

/*
 * Publish, before reserving, that this transaction may have UUIDs from first_ns
 * on: the first nanosecond that is after last_ns, as just read, and not before
 * the clock's time.  This costs a comparison, except for the first UUID, and where
 * an error came before it and the clock has stepped backwards since.
 */
static inline void
fuuid_in_flight_publish(uint64 first_ns)
{
	if (unlikely(first_ns < fuuid_in_flight_published_ns))
		fuuid_in_flight_publish_first(first_ns);
}

#endif							/* FUUID_IN_FLIGHT_H */
