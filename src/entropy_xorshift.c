/*
 * entropy_xorshift.c
 *	  The pseudo-random generator xorshift128+, for ids that need no secrecy.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "entropy.h"
#include "entropy_xorshift.h"
#include "utils/timestamp.h"

static XorshiftGenerator unseeded;
static XorshiftGenerator *current = &unseeded;

/*
 * Draw from this generator, in which a seed has been set, from now on; NULL
 * for the one that is seeded from strong entropy.  It starts when it is first
 * used and goes on from where it stopped when it comes back.
 */
void
fuuid_xorshift_use(XorshiftGenerator *generator)
{
	current = generator != NULL ? generator : &unseeded;
}

/*
 * Index of the first of the streams (one a lane) that a parallel worker draws
 * from; no other worker of the session has it, nor the session itself (0).
 * The worker's number would not do: the workers of the next query, and those
 * that a rescan starts, have the same numbers.
 */
static uint64
worker_streams(void)
{
	uint64		process = (uint64) MyStartTimestamp << 10 | (MyProcPid & 0x3FF);

	return process * FUUID_XORSHIFT_LANES;
}

static bool
start(XorshiftGenerator *generator, const char **why)
{
	Xorshift128Plus first;

	if (generator->seeded)
	{
		xorshift128plus_seed(&first, generator->seed);
		if (IsParallelWorker())
			xorshift128plus_jump(&first, worker_streams());
	}
	else
	{
		/*
		 * The kernel answers at once; OpenSSL, behind PostgreSQL's generator,
		 * would first set itself up, and wait for the kernel's seed.
		 */
		*why = "PostgreSQL's strong random number generator failed.";
		do
		{
			if ((fuuid_entropy_getrandom.fill == NULL ||
				 !fuuid_entropy_getrandom.fill((uint8 *) &first, sizeof(first), why)) &&
				!(fuuid_entropy_kernel_seeded(why) && pg_strong_random(&first, sizeof(first))))
				return false;
		} while (first.s[0] == 0 && first.s[1] == 0);
	}
	xorshift_lanes_start(&generator->lanes, first);
	explicit_bzero(&first, sizeof(first));
	generator->started_by = MyProcPid;
	return true;
}

static bool
xorshift_available(const char **why pg_attribute_unused())
{
	return true;
}

static bool
xorshift_fill(uint8 *buf, size_t len, const char **why)
{
	/* A child that inherited a started generator must not repeat its numbers. */
	if (current->started_by != MyProcPid && !start(current, why))
		return false;

	xorshift_lanes_fill(&current->lanes, buf, len);
	return true;
}

static const char *
xorshift_describe(void)
{
	return current->seeded ? "seeded by fast_uuid.seed" : "seeded from strong entropy";
}

const EntropySource fuuid_entropy_xorshift = {
	.name = "xorshift128+",
	.cryptographic = false,
	.available = xorshift_available,
	.fill = xorshift_fill,
	.describe = xorshift_describe,
};
