/*
 * instance.h
 *	  The order of all backends of an instance.
 */
#ifndef FUUID_INSTANCE_H
#define FUUID_INSTANCE_H

#include "lib/stringinfo.h"
#include "ordering/session.h"

extern void fuuid_instance_join(void);
extern uint64 fuuid_instance_reserve(uint64 clock_ns, uint32 *count);
extern uint64 fuuid_instance_advance_to(uint64 ns);
extern bool fuuid_instance_stats(OrderingStats *stats);
extern int	fuuid_instance_reset(StringInfo pids);

#endif							/* FUUID_INSTANCE_H */
