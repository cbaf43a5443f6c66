/*
 * require_session.c
 *	  Which processes may generate UUIDs, or use their order.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "require_session.h"
#include "storage/proc.h"

/* Has this process been found to be a session? */
bool		fuuid_is_session = false;

/*
 * The watermark does not follow a parallel worker's transaction; as our
 * functions are PARALLEL RESTRICTED, one is called there only by a function
 * that is wrongly marked PARALLEL SAFE.  Children of the postmaster would
 * share what it has buffered.
 */
void
fuuid_check_session(const char *what)
{
	if (MyProc == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("cannot %s in the postmaster", what)));
	if (IsParallelWorker())
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_TRANSACTION_STATE),
				 errmsg("cannot %s in a parallel worker", what),
				 errhint("Mark the calling function PARALLEL RESTRICTED.")));
	fuuid_is_session = true;
}
