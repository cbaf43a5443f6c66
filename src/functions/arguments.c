/*
 * arguments.c
 *	  Checks of the generators' arguments.
 */
#include "postgres.h"

#include "common/uuid_layout.h"
#include "compat.h"
#include "entropy/entropy.h"
#include "functions/arguments.h"
#include "utils/builtins.h"

/*
 * Index of the source that an argument names.  Raises an error if there is
 * none.  An interval without its type arrives here too, hence the hint.
 */
int
fuuid_source_by_name(Datum argument)
{
	text	   *name = DatumGetTextPP(argument);
	int			len = VARSIZE_ANY_EXHDR(name);
	int			source = fuuid_entropy_lookup(VARDATA_ANY(name), len);

	if (source < 0)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("unrecognized entropy source \"%s\"",
						text_to_cstring(name)),
				 errhint("The known sources are: %s. To shift the time, cast the argument to type interval.",
						 fuuid_entropy_names(FUUID_ENTROPY_ALL))));
	return source;
}

/* Raise an error if argument n, which is called "name", is NULL. */
void
fuuid_require_argument(FunctionCallInfo fcinfo, int n, const char *name)
{
	if (PG_ARGISNULL(n))
		ereport(ERROR,
				(errcode(ERRCODE_NULL_VALUE_NOT_ALLOWED),
				 errmsg("argument \"%s\" must not be null", name)));
}

/*
 * Convert a timestamp to microseconds since 1970-01-01 UTC.  Raises an error
 * if its milliseconds do not fit in 48 bits (RFC 9562, section 5.7).
 */
uint64
fuuid_unix_us(TimestampTz ts)
{
	/* The infinities are the greatest and the smallest number. */
	if (ts < -FUUID_UNIX_TO_POSTGRES_US ||
		ts >= FUUID_UNIX_MS_END * FUUID_US_PER_MS - FUUID_UNIX_TO_POSTGRES_US)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("timestamp out of range for UUID version 7"),
				 errdetail("UUID version 7 supports timestamps from 1970-01-01 to approximately year 10889.")));
	return ts + FUUID_UNIX_TO_POSTGRES_US;
}
