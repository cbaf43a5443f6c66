/*
 * ordering_instance.h
 *	  The order of all backends of an instance.
 */
#ifndef FUUID_ORDERING_INSTANCE_H
#define FUUID_ORDERING_INSTANCE_H

#include "ordering_session.h"

extern void fuuid_instance_init(void);
extern bool fuuid_instance_entered(void);
extern bool fuuid_instance_follow_reset(void);
extern void fuuid_instance_reserve(struct timespec *now, uint32 count);
extern bool fuuid_instance_stats(OrderingStats *stats);
extern void fuuid_instance_reset(void);

#endif							/* FUUID_ORDERING_INSTANCE_H */
