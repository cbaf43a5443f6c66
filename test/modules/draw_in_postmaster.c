/*
 * draw_in_postmaster.c
 *	  Makes a value from each entropy source when it is preloaded, so that the
 *	  postmaster forks with random bytes buffered and a generator started.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	static const char *const sources[] = {"openssl", "getrandom", "urandom", "xorshift128+"};
	PGFunction	uuidv7_fast;

	if (!process_shared_preload_libraries_in_progress)
		return;

	uuidv7_fast = (PGFunction) load_external_function("fast_uuid", "uuidv7_fast_from", true, NULL);
	for (int i = 0; i < (int) lengthof(sources); i++)
		(void) DirectFunctionCall1(uuidv7_fast, CStringGetTextDatum(sources[i]));
	ereport(LOG, (errmsg("drew from %d entropy sources before the first fork", (int) lengthof(sources))));
}
