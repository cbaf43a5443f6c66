/*
 * entropy_xorshift.h
 *	  What the setting fast_uuid.seed and the source xorshift128+ share.
 */
#ifndef FUUID_ENTROPY_XORSHIFT_H
#define FUUID_ENTROPY_XORSHIFT_H

#include "utils/guc.h"
#include "xorshift_lanes.h"

typedef struct XorshiftGenerator
{
	bool		seeded;			/* by fast_uuid.seed, else from strong entropy */
	uint64		seed;
	int			started_by;		/* process id; 0: lanes are not set yet */
	XorshiftLanes lanes;
} XorshiftGenerator;

extern void fuuid_xorshift_use(XorshiftGenerator *generator);

extern bool fuuid_seed_check(char **newval, void **extra, GucSource source);
extern void fuuid_seed_assign(const char *newval, void *extra);

#endif							/* FUUID_ENTROPY_XORSHIFT_H */
