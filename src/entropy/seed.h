/*
 * seed.h
 *	  The setting fast_uuid.seed: what xorshift128+ repeats, and from when on.
 */
#ifndef FUUID_SEED_H
#define FUUID_SEED_H

#include "common/xorshift128plus.h"
#include "utils/guc.h"

/*
 * From one key to the next, so that also a reader of milliseconds, as the RFC
 * has them, sees keys ascend.
 */
#define FUUID_SEED_STEP_NS	UINT64CONST(1000000)

typedef struct XorshiftGenerator
{
	uint64		seed;
	bool		started;		/* "state" is set */
	Xorshift128Plus state;
	bool		has_time;		/* a start time, and so: */
	uint64		next_ns;		/* the time of the next key */
} XorshiftGenerator;

/* That of the seed in force; NULL: none is. */
extern XorshiftGenerator *fuuid_seeded_generator;

extern bool fuuid_seed_check(char **newval, void **extra, GucSource source);
extern void fuuid_seed_assign(const char *newval, void *extra);
extern uint64 fuuid_seed_next_ns(void);

/* Is a seed in force that has a start time? */
static inline bool
fuuid_seed_has_time(void)
{
	return unlikely(fuuid_seeded_generator != NULL) &&
		fuuid_seeded_generator->has_time;
}

#endif							/* FUUID_SEED_H */
