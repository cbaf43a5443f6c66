/*
 * draw_in_postmaster.c
 *	  Tries to make a value from each entropy source in the postmaster, once the server's
 *	  shared memory is there, and logs the errors.
 */
#include "postgres.h"

#include "fmgr.h"
#include "storage/ipc.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
draw(void)
{
	static const char *const sources[] = {"openssl", "getrandom", "urandom", "xorshift128+"};
	PGFunction	uuidv7_fast = (PGFunction) load_external_function("fast_uuid", "uuidv7_fast_from", true, NULL);
	MemoryContext caller = CurrentMemoryContext;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	for (int i = 0; i < (int) lengthof(sources); i++)
	{
		PG_TRY();
		(void) DirectFunctionCall1(uuidv7_fast, CStringGetTextDatum(sources[i]));
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
