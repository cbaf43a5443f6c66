/*
 * instance.h
 *	  The order of all backends of an instance.
 */
#ifndef FUUID_INSTANCE_H
#define FUUID_INSTANCE_H

#include "ordering/session.h"

/* The epoch (see SharedOrdering) at this backend's latest look; 0 before the first. */
extern uint64 fuuid_instance_last_epoch;

extern void fuuid_instance_join(void);
extern bool fuuid_instance_joined(void);
extern bool fuuid_instance_follow_reset(void);
extern uint64 fuuid_instance_reserve(uint64 clock_ns, uint32 count);
extern uint64 fuuid_instance_epoch(void);
extern bool fuuid_instance_advance_to(uint64 ns, uint64 epoch, uint64 *last_ns);
extern bool fuuid_instance_stats(OrderingStats *stats);
extern void fuuid_instance_reset(void);

#endif							/* FUUID_INSTANCE_H */
