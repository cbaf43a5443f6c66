/*
 * chained_hooks.c
 *	  A library that has hooks where fast_feed has them, too: it asks for shared
 *	  memory when the server starts, and takes it.
 */
#include "postgres.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "storage/ipc.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"

/* More than the server has left by itself. */
#define SEGMENT_SIZE	(16 * 1024 * 1024)

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static shmem_request_hook_type next_shmem_request_hook = NULL;
static shmem_startup_hook_type next_shmem_startup_hook = NULL;

static void
request(void)
{
	if (next_shmem_request_hook)
		next_shmem_request_hook();
	RequestAddinShmemSpace(SEGMENT_SIZE);
	ereport(LOG, (errmsg("chained_hooks has asked for its memory")));
}

static void
start(void)
{
	bool		found;

	if (next_shmem_startup_hook)
		next_shmem_startup_hook();
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	memset(ShmemInitStruct("chained_hooks", SEGMENT_SIZE, &found), 0xFF, SEGMENT_SIZE);
	LWLockRelease(AddinShmemInitLock);
	ereport(LOG, (errmsg("chained_hooks has its memory")));
}

void
_PG_init(void)
{
	next_shmem_request_hook = shmem_request_hook;
	shmem_request_hook = request;
	next_shmem_startup_hook = shmem_startup_hook;
	shmem_startup_hook = start;
}
