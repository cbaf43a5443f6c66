/*
 * in_flight.h
 *	  The transactions in flight that may have UUIDs of instance or durable order,
 *	  and from which nanosecond on.
 */
#ifndef FUUID_IN_FLIGHT_H
#define FUUID_IN_FLIGHT_H

/* What fuuid_in_flight_first() returns in place of a process ID. */
#define FUUID_HELD_BACK_BY_NONE		(-1)
#define FUUID_HELD_BACK_BY_PREPARED	0

#define FUUID_NOTHING_PUBLISHED		PG_UINT64_MAX

/* What this backend has published for its transaction (see in_flight.c). */
extern uint64 fuuid_in_flight_published_ns;

extern void fuuid_in_flight_register(void);
extern void fuuid_in_flight_publish_first(uint64 first_ns);
extern uint64 fuuid_in_flight_first(uint64 none_ns, int *held_back_by);

/*
 * Publish, before reserving, that this transaction may have UUIDs from first_ns on: the
 * first nanosecond that is after last_ns, as just read, and not before the clock's time.
 * This costs only a comparison, except for a transaction's first UUID and the first after
 * a reset.
 */
static inline void
fuuid_in_flight_publish(uint64 first_ns)
{
	if (unlikely(first_ns < fuuid_in_flight_published_ns))
		fuuid_in_flight_publish_first(first_ns);
}

#endif							/* FUUID_IN_FLIGHT_H */
