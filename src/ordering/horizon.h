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
	struct GenericXLogState *record;	/* for the WAL; NULL once it is written */
} Horizon;

/* What the sequence holds. */
typedef struct HorizonValue
{
	int64		us;				/* microseconds since 1970-01-01 UTC; 0: none was ever set */
	int64		life;			/* SharedOrdering.life when it was set; 0: by setval() */
} HorizonValue;

extern Oid	fuuid_horizon_find(void);
extern HorizonValue fuuid_horizon_peek(Oid sequence);
extern bool fuuid_horizon_lock(Horizon *horizon, Oid sequence, bool wait);
extern HorizonValue fuuid_horizon_read(const Horizon *horizon);
extern void fuuid_horizon_write(Horizon *horizon, HorizonValue value);
extern void fuuid_horizon_unlock(Horizon *horizon);

#endif							/* FUUID_HORIZON_H */
