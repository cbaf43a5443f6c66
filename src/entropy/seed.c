/*
 * seed.c
 *	  The setting fast_uuid.seed: a number, and optionally a start time.
 *
 *	  The time is part of the seed, and no setting of its own, so that neither
 *	  can be in force, or end, without the other.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "common/clock.h"
#include "common/compat.h"
#include "entropy/entropy.h"
#include "entropy/seed.h"
#include "utils/datetime.h"
#include "utils/timestamp.h"

XorshiftGenerator *fuuid_seeded_generator = NULL;

/*
 * Read a number, decimal or, after 0x, hexadecimal, within 64 bits.  Returns
 * the text after it, or NULL.
 */
static const char *
parse_number(const char *text, uint64 *number)
{
	bool		hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	size_t		len = strspn(digits, hex ? "0123456789abcdefABCDEF" :
							 "0123456789");

	if (len == 0)
		return NULL;
	errno = 0;
	*number = strtoull(digits, NULL, hex ? 16 : 10);
	return errno == 0 ? digits + len : NULL;
}

/*
 * Read an ISO 8601 time, such as 2026-12-31, 2026-12-31 23:59:59+01 or
 * 2026-12-31T22:59:59Z, in nanoseconds since 1970-01-01 UTC.  Without a time
 * zone it is in UTC, and no name of a zone is taken, so that no setting of the
 * session changes it.  It must not raise an error, because also the definition
 * of the setting comes by here; before 16 the server raises some of names.
 */
static bool
parse_time(const char *text, uint64 *ns)
{
	char		plain[MAXDATELEN + 2];
	char		buffer[MAXDATELEN + MAXDATEFIELDS];
	size_t		len = strlen(text);
	char	   *fields[MAXDATEFIELDS];
	int			types[MAXDATEFIELDS];
	int			count;
	int			type;
	struct pg_tm tm;
	fsec_t		us;
	int			zone = 0;
	int		   *zones[] = {NULL, &zone};	/* first without one */
	int			error = DTERR_BAD_FORMAT;
	TimestampTz ts;

	if (strspn(text, "0123456789") != 4 || text[4] != '-' ||
		len > MAXDATELEN)
		return false;
	strcpy(plain, text);
	if (plain[len - 1] == 'Z')
		strcpy(plain + len - 1, "+0");
	if (len > 11 && plain[10] == 'T')
		plain[10] = ' ';
	if (plain[strspn(plain, "0123456789-+:. ")] != '\0')
		return false;
	for (int i = 0; i < 2 && error != 0; i++)
	{
		error = ParseDateTime(plain, buffer, sizeof(buffer), fields, types,
							  MAXDATEFIELDS, &count);
		if (error == 0)
			error = FUUID_DECODE_DATE_TIME(fields, types, count, &type, &tm,
										   &us, zones[i]);
	}
	if (error != 0 || type != DTK_DATE || tm2timestamp(&tm, us, &zone, &ts) != 0 ||
		ts < -FUUID_UNIX_TO_POSTGRES_US ||
		(uint64) (ts + FUUID_UNIX_TO_POSTGRES_US) >= FUUID_CLOCK_END_S * USECS_PER_SEC)
		return false;
	*ns = (uint64) (ts + FUUID_UNIX_TO_POSTGRES_US) * FUUID_NS_PER_US;
	return true;
}

/* Read a seed: a number and, after a space, maybe a start time. */
static bool
parse_seed(const char *text, XorshiftGenerator *generator)
{
	const char *rest = parse_number(text, &generator->seed);
	const char *time;

	if (rest == NULL || *rest == '\0')
		return rest != NULL;
	time = rest + strspn(rest, " ");
	generator->has_time = time > rest &&
		parse_time(time, &generator->next_ns);
	return generator->has_time;
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

	/* A parallel worker, whose leader has checked it, generates nothing. */
	if (**newval == '\0' || IsParallelWorker())
		return true;
	if (source < PGC_S_INTERACTIVE)
	{
		GUC_check_errdetail("A seed is accepted only from SET.");
		return false;
	}
	generator = guc_malloc(LOG, sizeof(XorshiftGenerator));
	if (generator == NULL)
		return false;
	memset(generator, 0, sizeof(XorshiftGenerator));
	if (!parse_seed(*newval, generator))
	{
		guc_free(generator);
		GUC_check_errdetail("A seed is a decimal integer from 0 to 18446744073709551615, or 0x followed by hexadecimal digits up to 0xffffffffffffffff.");
		GUC_check_errhint("A start time can follow it, as in '42 2026-12-31 00:00:00+00', from the year 1970 to 2554.");
		return false;
	}
	*extra = generator;
	return true;
}

void
fuuid_seed_assign(const char *newval pg_attribute_unused(), void *extra)
{
	fuuid_seeded_generator = extra;
	fuuid_entropy_discard();
}

/*
 * The time of the next key while the seed has a start time, in nanoseconds
 * since 1970-01-01 UTC.  Raises an error after the year 2554.
 */
uint64
fuuid_seed_next_ns(void)
{
	uint64		ns = fuuid_seeded_generator->next_ns;

	fuuid_clock_require_end(ns);
	fuuid_seeded_generator->next_ns += FUUID_SEED_STEP_NS;
	return ns;
}
