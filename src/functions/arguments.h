/*
 * arguments.h
 *	  What the SQL-callable functions share.
 */
#ifndef FUUID_ARGUMENTS_H
#define FUUID_ARGUMENTS_H

#include "clock.h"
#include "entropy/entropy.h"
#include "fmgr.h"
#include "utils/uuid.h"

extern bool fuuid_is_session;

extern void fuuid_check_session(const char *what);
extern int	fuuid_source_by_name(Datum argument);
extern void fuuid_require_argument(FunctionCallInfo fcinfo, int n,
								   const char *name);
extern uint64 fuuid_unix_us(TimestampTz ts);
extern uint64 fuuid_observed_ns(Datum id);
extern Datum fuuid_bigint_of_ns(uint64 ns);

/* Index of the source that argument n names; NULL: fast_uuid.source. */
#define FUUID_GETARG_SOURCE(n) \
	(likely(PG_ARGISNULL(n)) ? fuuid_source : \
	 fuuid_source_by_name(PG_GETARG_DATUM(n)))

/* Raise an error, "cannot <what> in ...", if this process is no session. */
static inline void
fuuid_require_session(const char *what)
{
	if (unlikely(!fuuid_is_session))
		fuuid_check_session(what);
}

/* The UUID of a time in nanoseconds since 1970-01-01 UTC, palloc'd. */
static inline Datum
fuuid_uuid_of_ns(uint64 ns, uint64 random)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	fuuid_uuid_encode_ns(uuid->data, ns, random);
	return UUIDPGetDatum(uuid);
}

#endif							/* FUUID_ARGUMENTS_H */
