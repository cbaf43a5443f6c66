/*
 * require_session.c
 *	  Which processes may generate.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "require_session.h"
#include "storage/proc.h"

/*
 * Raise an error in what is no session: in a parallel worker, whose values would be in no
 * transaction that the watermark knows of, and where the planner sends our functions only
 * in the body of one that is marked wrongly; and in the postmaster, whose children would
 * share what it has buffered.
 */
void
fuuid_require_session(const char *what)
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
}
