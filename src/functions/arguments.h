/*
 * arguments.h
 *	  What the SQL-callable functions share.
 */
#ifndef FUUID_ARGUMENTS_H
#define FUUID_ARGUMENTS_H

#include "datatype/timestamp.h"
#include "entropy/entropy.h"
#include "fmgr.h"

extern int	fuuid_source_by_name(Datum argument);
extern void fuuid_require_argument(FunctionCallInfo fcinfo, int n, const char *name);
extern uint64 fuuid_unix_us(TimestampTz ts);

/* Argument n, the index of a source: what it names, or where NULL the session's. */
#define FUUID_GETARG_SOURCE(n) \
	(likely(PG_ARGISNULL(n)) ? fuuid_source : fuuid_source_by_name(PG_GETARG_DATUM(n)))

/* Microseconds from 1970-01-01 to 2000-01-01, where a TimestampTz counts from. */
#define FUUID_UNIX_TO_POSTGRES_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * USECS_PER_SEC)

#endif							/* FUUID_ARGUMENTS_H */
