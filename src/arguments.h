/*
 * arguments.h
 *	  What the SQL-callable generators share.
 */
#ifndef FUUID_ARGUMENTS_H
#define FUUID_ARGUMENTS_H

#include "fmgr.h"
#include "settings.h"

extern int	fuuid_source_by_name(Datum argument);
extern void fuuid_require_argument(FunctionCallInfo fcinfo, int n, const char *name);

/* of generate.c */
extern Datum fuuid_value_now(int source);

/* Argument n, the index of a source: what it names, or where NULL the session's. */
#define FUUID_GETARG_SOURCE(n) \
	(likely(PG_ARGISNULL(n)) ? fuuid_source : fuuid_source_by_name(PG_GETARG_DATUM(n)))

#endif							/* FUUID_ARGUMENTS_H */
