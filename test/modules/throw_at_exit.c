/*
 * throw_at_exit.c
 *	  Raises an error where a process that ends aborts its transaction, before the
 *	  callbacks of the libraries that were there earlier.
 */
#include "postgres.h"

#include "access/xact.h"
#include "fmgr.h"
#include "storage/ipc.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

static void
throw(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_ABORT && proc_exit_inprogress)
		elog(ERROR, "throw_at_exit");
}

void
_PG_init(void)
{
	RegisterXactCallback(throw, NULL);
}
