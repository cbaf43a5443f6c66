/*
 * draw_in_postmaster.c
 *	  Tries to generate in the postmaster, once the server's shared memory is there,
 *	  and logs the errors.
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
	/* The first has a source as its argument, the others as their second. */
	static const char *const functions[] = {
		"uuidv7_fast_from", "uuidv7_fast_shift", "uuidv7_fast_at", "uuidv7_fast_array"
	};
	Datum		source = CStringGetTextDatum("urandom");
	MemoryContext caller = CurrentMemoryContext;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	for (int i = 0; i < (int) lengthof(functions); i++)
	{
		PGFunction	function = (PGFunction) load_external_function("fast_uuid", functions[i], true, NULL);

		PG_TRY();
		(void) (i == 0 ? DirectFunctionCall1(function, source) :
				DirectFunctionCall2(function, (Datum) 3, source));
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
