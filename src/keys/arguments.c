/*
 * arguments.c
 *	  What the SQL-callable functions share: arguments and results, and in which
 *	  processes they may be called.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "common/compat.h"
#include "keys/arguments.h"
#include "storage/proc.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"

/* Has this process been found to be a session? */
bool		fuuid_is_session = false;

/*
 * A parallel worker has an order of its own; as our functions are PARALLEL
 * RESTRICTED, one is called there only by a function that is wrongly marked
 * PARALLEL SAFE.  Children of the postmaster would share what it has buffered.
 */
void
fuuid_check_session(void)
{
	if (MyProc == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot generate UUIDs in the postmaster")));
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot generate UUIDs in a parallel worker"),
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
