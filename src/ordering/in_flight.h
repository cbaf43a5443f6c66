/*
 * in_flight.h
 *	  Backends in the order of the instance, and transactions with its UUIDs.
 */
#ifndef FUUID_IN_FLIGHT_H
#define FUUID_IN_FLIGHT_H

/* *held_back_by of fuuid_in_flight_first(), in place of a process ID. */
#define FUUID_HELD_BACK_BY_NONE		(-1)
#define FUUID_HELD_BACK_BY_PREPARED	0

#define FUUID_NOTHING_PUBLISHED		PG_UINT64_MAX

/* What this backend has published; has it joined, and also "to_generate"? */
extern uint64 fuuid_in_flight_published_ns;
extern bool fuuid_in_flight_joined;
extern bool fuuid_in_flight_generates;
extern union WaitGroup *fuuid_in_flight_wait_group; /* once it has joined */

extern void fuuid_in_flight_init(void);
extern void fuuid_in_flight_join(bool to_generate);
extern void fuuid_in_flight_publish(uint64 first_ns);
extern uint64 fuuid_in_flight_first(uint64 none_ns, int *held_back_by);

#endif							/* FUUID_IN_FLIGHT_H */
