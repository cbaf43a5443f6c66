/*
 * horizon.h
 *	  The sequence that holds the horizon of durable order.
 */
#ifndef FUUID_HORIZON_H
#define FUUID_HORIZON_H

#include "storage/buf.h"
#include "utils/relcache.h"

#define FUUID_HORIZON_NAME "fast_uuid_horizon"

/* The sequence, opened and locked. */
typedef struct Horizon
{
	Relation	sequence;
	Buffer		buffer;
} Horizon;

extern Oid	fuuid_horizon_find(void);
extern int64 fuuid_horizon_peek(Oid sequence);
extern bool fuuid_horizon_lock(Horizon *horizon, Oid sequence, bool wait);
extern int64 fuuid_horizon_read(const Horizon *horizon);
extern void fuuid_horizon_write(const Horizon *horizon, int64 us);
extern void fuuid_horizon_unlock(const Horizon *horizon);

#endif							/* FUUID_HORIZON_H */
