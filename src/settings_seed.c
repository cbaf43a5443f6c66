/*
 * settings_seed.c
 *	  Hooks of fast_uuid.seed.
 */
#include "postgres.h"

#include "compat.h"
#include "entropy.h"
#include "entropy_xorshift.h"

/*
 * Read a seed: decimal, or hexadecimal after 0x, within 64 bits.
 */
static bool
parse_seed(const char *text, uint64 *seed)
{
	bool		hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	size_t		len = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

	if (len == 0 || digits[len] != '\0')
		return false;
	errno = 0;
	*seed = strtoull(digits, NULL, hex ? 16 : 10);
	return errno == 0;
}

/*
 * Check a seed.  It belongs to one session, which sets it: from a file, a
 * database or a role each session would draw the same bits.
 *
 * The generator of a seed travels as the setting's "extra": when SET LOCAL or
 * a function's SET ends, the server hands the earlier one back, which then
 * goes on from where it was instead of repeating its numbers.
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
		GUC_check_errdetail("A seed is a decimal integer from 0 to 18446744073709551615, "
							"or 0x followed by hexadecimal digits up to 0xffffffffffffffff.");
		return false;
	}
	generator = guc_malloc(LOG, sizeof(XorshiftGenerator));
	if (generator == NULL)
		return false;
	memset(generator, 0, sizeof(XorshiftGenerator));
	generator->seeded = true;
	generator->seed = seed;
	*extra = generator;
	return true;
}

void
fuuid_seed_assign(const char *newval pg_attribute_unused(), void *extra)
{
	fuuid_xorshift_use(extra);
	fuuid_entropy_discard();
}
