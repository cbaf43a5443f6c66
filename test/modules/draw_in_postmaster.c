/*
 * draw_in_postmaster.c
 *	  Tries to generate from each entropy source in the postmaster, once the server's
 *	  shared memory is there, and logs the errors.
 */
#include "postgres.h"

#include "fmgr.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
draw(void)
{
	static const char *const sources[] = {"openssl", "getrandom", "urandom", "xorshift128+"};
	PGFunction	one = (PGFunction) load_external_function("fast_uuid", "uuidv7_fast_from", true, NULL);
	PGFunction	at = (PGFunction) load_external_function("fast_uuid", "uuidv7_fast_at", true, NULL);
	PGFunction	feed = (PGFunction) load_external_function("fast_uuid", "uuidv7_feed_id_from", true, NULL);
	PGFunction	array = (PGFunction) load_external_function("fast_uuid", "uuidv7_fast_array", true, NULL);
	MemoryContext caller = CurrentMemoryContext;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	for (int i = 0; i < 4 * (int) lengthof(sources); i++)
	{
		Datum		source = CStringGetTextDatum(sources[i / 4]);

		PG_TRY();
		(void) (i % 4 == 0 ? DirectFunctionCall1(one, source) :
				i % 4 == 1 ? DirectFunctionCall1(feed, source) :
				i % 4 == 2 ? DirectFunctionCall2(at, TimestampTzGetDatum(0), source) :
				DirectFunctionCall2(array, Int32GetDatum(3), source));
		PG_CATCH();
		MemoryContextSwitchTo(caller);
		EmitErrorReport();
		FlushErrorState();
		PG_END_TRY();
	}
}

void
_PG_init(void)
{
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = draw;
}
