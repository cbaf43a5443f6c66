/*
 * arguments.h
 *	  What the SQL-callable functions share.
 */
#ifndef FUUID_ARGUMENTS_H
#define FUUID_ARGUMENTS_H

#include "common/clock.h"
#include "entropy/entropy.h"
#include "fmgr.h"
#include "utils/uuid.h"

extern bool fuuid_is_session;

extern void fuuid_check_session(void);
extern int	fuuid_source_by_name(Datum argument);
extern uint64 fuuid_unix_us(TimestampTz ts);
extern Datum fuuid_bigint_of_ns(uint64 ns);

/* Index of the source that argument n names; NULL: fast_uuid.source. */
#define FUUID_GETARG_SOURCE(n) \
	(likely(PG_ARGISNULL(n)) ? fuuid_source : \
	 fuuid_source_by_name(PG_GETARG_DATUM(n)))

/* Raise an error if this process is no session, which may generate. */
static inline void
fuuid_require_session(void)
{
	if (unlikely(!fuuid_is_session))
		fuuid_check_session();
}

#endif							/* FUUID_ARGUMENTS_H */
