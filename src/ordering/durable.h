/*
 * durable.h
 *	  The order of an instance that outlives it.
 */
#ifndef FUUID_DURABLE_H
#define FUUID_DURABLE_H

#include "lib/stringinfo.h"

extern uint64 fuuid_durable_reserve(uint64 clock_ns, uint32 *count);
extern void fuuid_durable_cover(uint64 last_ns);
extern int64 fuuid_durable_upper_bound(void);
extern void fuuid_durable_forget(void);
extern int	fuuid_durable_reset(StringInfo pids);

#endif							/* FUUID_DURABLE_H */
