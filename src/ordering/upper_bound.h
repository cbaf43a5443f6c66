/*
 * upper_bound.h
 *	  The sequence that holds the upper bound of durable order.
 */
#ifndef FUUID_UPPER_BOUND_H
#define FUUID_UPPER_BOUND_H

#include "storage/buf.h"
#include "utils/relcache.h"

#define FUUID_UPPER_BOUND_NAME "fast_uuid_upper_bound"

/* The sequence, opened and locked. */
typedef struct UpperBound
{
	Relation	sequence;
	Buffer		buffer;
	struct GenericXLogState *record;	/* for the WAL; NULL once written */
} UpperBound;

/* What the sequence holds. */
typedef struct UpperBoundValue
{
	int64		us;				/* since 1970-01-01 UTC; 0: was never set */
	int64		incarnation;	/* SharedOrdering.incarnation when it was set;
								 * 0: by setval() or pg_upgrade */
} UpperBoundValue;

extern Oid	fuuid_upper_bound_find(void);
extern UpperBoundValue fuuid_upper_bound_peek(Oid sequence);
extern bool fuuid_upper_bound_lock(UpperBound *bound, Oid sequence, bool wait);
extern UpperBoundValue fuuid_upper_bound_read(const UpperBound *bound);
extern void fuuid_upper_bound_write(UpperBound *bound, UpperBoundValue value);
extern void fuuid_upper_bound_unlock(UpperBound *bound);

#endif							/* FUUID_UPPER_BOUND_H */
