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
fu_xorshift_use(XorshiftGenerator *generator)
{
	current = generator != NULL ? generator : &unseeded;
}

/*
 * A stream index that no other parallel worker of the session has, nor the
 * session itself (0).  The worker's number would not do: the workers of the
 * next query, and those that a rescan starts, have the same numbers.
 */
static uint64
worker_stream(void)
{
	return (uint64) MyStartTimestamp << 13 | (MyProcPid & 0x1FFF);
}

static bool
start(XorshiftGenerator *generator, const char **why)
{
	Xorshift128Plus *state = &generator->state;

	if (generator->seeded)
	{
		xorshift128plus_seed(state, generator->seed);
		if (IsParallelWorker())
			xorshift128plus_jump(state, worker_stream());
	}
	else
	{
		/* The kernel answers in a microsecond; OpenSSL would first set itself up. */
		do
		{
			if (!fu_entropy_getrandom.fill((uint8 *) state, sizeof(*state), why) &&
				!pg_strong_random(state, sizeof(*state)))
				return false;
		} while (state->s[0] == 0 && state->s[1] == 0);
	}
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
	Xorshift128Plus state;

	/* A child that inherited a started generator must not repeat its numbers. */
	if (current->started_by != MyProcPid && !start(current, why))
		return false;

	state = current->state;
	for (size_t i = 0; i < len; i += sizeof(uint64))
	{
		uint64		word = fu_entropy_le64(xorshift128plus_next(&state));

		memcpy(buf + i, &word, sizeof(word));
	}
	current->state = state;
	return true;
}

const EntropySource fu_entropy_xorshift = {
	.name = "xorshift128+",
	.cryptographic = false,
	.available = xorshift_available,
	.fill = xorshift_fill,
};
