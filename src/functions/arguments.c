/*
 * arguments.c
 *	  What the SQL-callable functions share: arguments and results, and in which
 *	  processes they may be called.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "compat.h"
#include "functions/arguments.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/* Has this process been found to be a session? */
bool		fuuid_is_session = false;

/*
 * The watermark does not follow a parallel worker's transaction; as our
 * functions are PARALLEL RESTRICTED, one is called there only by a function
 * that is wrongly marked PARALLEL SAFE.  Children of the postmaster would
 * share what it has buffered.
 */
void
fuuid_check_session(const char *what)
{
	if (MyProc == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot %s in the postmaster", what)));
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot %s in a parallel worker", what),
				 errhint("Mark the calling function PARALLEL RESTRICTED.")));
	fuuid_is_session = true;
}

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
				 errhint("The known sources are: %s. To shift the time, write uuidv7_fast(interval '1 hour').",
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

/*
 * The last nanosecond of a UUID from any generator, after which all those that
 * are generated here are greater.  Raises an error if it is not of version 7,
 * or beyond what the clock can show.
 */
uint64
fuuid_observed_ns(Datum id)
{
	const unsigned char *uuid = DatumGetUUIDP(id)->data;
	uint64		unix_ms = fuuid_uuid_unix_ms(uuid);

	if (!fuuid_uuid_is_v7(uuid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("UUID \"%s\" is not a version 7 UUID",
						DatumGetCString(DirectFunctionCall1(uuid_out, id)))));
	if (unix_ms >= FUUID_CLOCK_END_S * FUUID_MS_PER_S)
		fuuid_clock_error(0);
	return unix_ms * FUUID_NS_PER_MS + fuuid_uuid_last_sub_ns(uuid);
}

/* A nanosecond as an SQL bigint.  Raises an error from the year 2262 on. */
Datum
fuuid_bigint_of_ns(uint64 ns)
{
	if (ns > PG_INT64_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_DATETIME_VALUE_OUT_OF_RANGE),
				 errmsg("time of the UUID is out of range for type bigint"),
				 errdetail("Nanoseconds since 1970 fit in type bigint until 2262-04-11.")));
	return Int64GetDatum((int64) ns);
}
