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
extern void fuuid_require_argument(FunctionCallInfo fcinfo, int n,
								   const char *name);
extern uint64 fuuid_unix_us(TimestampTz ts);

/* In generate.c; uses none of its arguments. */
extern PGDLLEXPORT Datum uuidv7_fast(PG_FUNCTION_ARGS);

/* Index of the source that argument n names; NULL: fast_uuid.source. */
#define FUUID_GETARG_SOURCE(n) \
	(likely(PG_ARGISNULL(n)) ? fuuid_source : \
	 fuuid_source_by_name(PG_GETARG_DATUM(n)))

/* Microseconds from 1970-01-01 to 2000-01-01, where a TimestampTz is 0. */
#define FUUID_UNIX_TO_POSTGRES_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * USECS_PER_SEC)

#endif							/* FUUID_ARGUMENTS_H */
