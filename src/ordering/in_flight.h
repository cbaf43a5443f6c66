/*
 * in_flight.h
 *	  The running transactions that may have generated under the order of the
 *	  instance, and from which nanosecond on.
 */
#ifndef FUUID_IN_FLIGHT_H
#define FUUID_IN_FLIGHT_H

/* What fuuid_in_flight_first() tells in place of a process. */
#define FUUID_HELD_BACK_BY_NONE		(-1)
#define FUUID_HELD_BACK_BY_PREPARED	0

#define FUUID_NOTHING_PUBLISHED		PG_UINT64_MAX

/* What this process has published for its transaction. */
extern uint64 fuuid_in_flight_published_ns;

extern void fuuid_in_flight_register(void);
extern void fuuid_in_flight_publish_first(uint64 first_ns);
extern uint64 fuuid_in_flight_first(uint64 none_ns, int *held_back_by);

/*
 * Before a value of this transaction is reserved, make known that it may have
 * values from this nanosecond on: after the latest one of the instance, as read
 * just now, and not before the clock's time.  Costs a comparison but for the first
 * value, or the first after a reset.
 */
static inline void
fuuid_in_flight_publish(uint64 first_ns)
{
	if (unlikely(first_ns < fuuid_in_flight_published_ns))
		fuuid_in_flight_publish_first(first_ns);
}

#endif							/* FUUID_IN_FLIGHT_H */
