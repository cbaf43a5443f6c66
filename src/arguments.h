/*
 * arguments.h
 *	  What the SQL-callable generators ask of their arguments.
 */
#ifndef FU_ARGUMENTS_H
#define FU_ARGUMENTS_H

#include "fmgr.h"
#include "settings.h"

extern int	fu_source_by_name(Datum argument);
extern void fu_require_argument(FunctionCallInfo fcinfo, int n, const char *name);

/* Argument n, the index of a source: what it names, or where NULL the session's. */
#define FU_GETARG_SOURCE(n) \
	(likely(PG_ARGISNULL(n)) ? fu_source : fu_source_by_name(PG_GETARG_DATUM(n)))

#endif							/* FU_ARGUMENTS_H */
