/*
 * ordering_instance.h
 *	  The order of all backends of an instance.
 */
#ifndef FUUID_ORDERING_INSTANCE_H
#define FUUID_ORDERING_INSTANCE_H

#include "ordering.h"

extern void fuuid_instance_init(void);
extern void fuuid_instance_set_lower_bound(uint64 last_ns);
extern bool fuuid_instance_stats(OrderingStats *stats);
extern void fuuid_instance_reset(void);

#endif							/* FUUID_ORDERING_INSTANCE_H */
