/*
 * xorshift.c
 *	  The generator xorshift128+, for UUIDs that need no secrecy, and its seed.
 */
#include "postgres.h"

#include "common/xorshift128plus.h"
#include "compat.h"
#include "entropy/entropy.h"

struct XorshiftGenerator
{
	uint64		seed;
	bool		started;		/* "state" is set */
	Xorshift128Plus state;
};

/* A generator starts when it is first used. */
static XorshiftGenerator unseeded;
XorshiftGenerator *fuuid_seeded_generator = NULL;

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
	return fuuid_seeded_generator != NULL ? "seeded by fast_uuid.seed" :
		"seeded from strong entropy";
}

const EntropySource fuuid_entropy_xorshift = {
	.name = "xorshift128+",
	.cryptographic = false,
	.fill = xorshift_fill,
	.describe = xorshift_describe,
};

/* Read a seed: decimal, or hexadecimal after 0x, within 64 bits. */
static bool
parse_seed(const char *text, uint64 *seed)
{
	bool		hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	size_t		len = strspn(digits, hex ? "0123456789abcdefABCDEF" :
							 "0123456789");

	if (len == 0 || digits[len] != '\0')
		return false;
	errno = 0;
	*seed = strtoull(digits, NULL, hex ? 16 : 10);
	return errno == 0;
}

/*
 * Check hook of fast_uuid.seed.  With a seed from a file, a database or a role,
 * all sessions would draw the same bits.  The generator is the setting's
 * "extra": when SET LOCAL or a function's SET ends, the earlier one continues.
 */
bool
fuuid_seed_check(char **newval, void **extra, GucSource source)
{
	XorshiftGenerator *generator;
	uint64		seed;

	if (**newval == '\0')
		return true;
	if (source < PGC_S_INTERACTIVE)
	{
		GUC_check_errdetail("A seed is accepted only from SET.");
		return false;
	}
	if (!parse_seed(*newval, &seed))
	{
		GUC_check_errdetail("A seed is a decimal integer from 0 to 18446744073709551615, or 0x followed by hexadecimal digits up to 0xffffffffffffffff.");
		return false;
	}
	generator = guc_malloc(LOG, sizeof(XorshiftGenerator));
	if (generator == NULL)
		return false;
	memset(generator, 0, sizeof(XorshiftGenerator));
	generator->seed = seed;
	*extra = generator;
	return true;
}

void
fuuid_seed_assign(const char *newval pg_attribute_unused(), void *extra)
{
	fuuid_seeded_generator = extra;
	fuuid_entropy_discard();
}
