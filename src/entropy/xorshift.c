/*
 * xorshift.c
 *	  The generator xorshift128+, for UUIDs that need no secrecy.
 */
#include "postgres.h"

#include "entropy/entropy.h"
#include "entropy/seed.h"

/* A generator starts when it is first used. */
static XorshiftGenerator unseeded;

static bool
start_generator(XorshiftGenerator *generator, const char **why)
{
	Xorshift128Plus *state = &generator->state;

	if (generator != &unseeded)
		xorshift128plus_seed(state, generator->seed);
	else
	{
		const EntropySource *kernel = &fuuid_entropy_getrandom;

		/*
		 * Ask the kernel first, which answers at once.  OpenSSL, behind
		 * pg_strong_random(), would first initialize itself and wait for it.
		 */
		*why = "PostgreSQL could not generate strong random bytes.";
		do
		{
			if ((kernel->fill == NULL ||
				 !kernel->fill((uint8 *) state, sizeof(*state), why)) &&
				!(fuuid_entropy_kernel_seeded(why) &&
				  pg_strong_random(state, sizeof(*state))))
				return false;
		} while (state->s[0] == 0 && state->s[1] == 0);
	}
	generator->started = true;
	return true;
}

static bool
xorshift_fill(uint8 *buf, size_t len, const char **why)
{
	XorshiftGenerator *generator = fuuid_seeded_generator;

	if (generator == NULL)
		generator = &unseeded;
	if (!generator->started && !start_generator(generator, why))
		return false;

	for (; len > 0; buf += sizeof(uint64), len -= sizeof(uint64))
	{
		uint64		word = xorshift128plus_next(&generator->state);

		memcpy(buf, &word, sizeof(word));
	}
	return true;
}

static const char *
xorshift_describe(void)
{
	if (fuuid_seeded_generator == NULL)
		return "seeded from strong entropy";
	return fuuid_seed_has_time() ?
		"seeded by fast_uuid.seed, with a start time" :
		"seeded by fast_uuid.seed";
}

const EntropySource fuuid_entropy_xorshift = {
	.name = "xorshift128+",
	.cryptographic = false,
	.fill = xorshift_fill,
	.describe = xorshift_describe,
};
