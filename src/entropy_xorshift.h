/*
 * entropy_xorshift.h
 *	  What the setting fast_uuid.seed and the source xorshift128+ share.
 */
#ifndef FU_ENTROPY_XORSHIFT_H
#define FU_ENTROPY_XORSHIFT_H

#include "xorshift_lanes.h"

typedef struct XorshiftGenerator
{
	bool		seeded;			/* by fast_uuid.seed, else from strong entropy */
	char		refusal[128];	/* why that seed is not used; empty: it is */
	uint64		seed;
	int			started_by;		/* process id; 0: lanes are not set yet */
	XorshiftLanes lanes;
} XorshiftGenerator;

extern void fu_xorshift_use(XorshiftGenerator *generator);

#endif							/* FU_ENTROPY_XORSHIFT_H */
