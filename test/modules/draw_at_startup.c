/*
 * draw_at_startup.c
 *	  Makes a value when the server's shared memory is there, in the order of the
 *	  server's configuration: in the postmaster, before it has children.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
draw(void)
{
	PGFunction	uuidv7_fast;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	uuidv7_fast = (PGFunction) load_external_function("fast_uuid", "uuidv7_fast", true, NULL);
	(void) DirectFunctionCall1(uuidv7_fast, (Datum) 0);
	ereport(LOG, (errmsg("drew once shared memory was there")));
}

void
_PG_init(void)
{
	if (!process_shared_preload_libraries_in_progress)
		return;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = draw;
}
