/*
 * xact_callback.c
 *	  Another library at the end of a transaction: its callback raises an error as
 *	  the process ends, before those of the libraries that were there earlier; and
 *	  if it is told to, draws a number as a transaction is prepared or committed, as
 *	  a savepoint is rolled back, or waits after its end until a file is removed.
 *	  And what it may release meanwhile.
 */
#include "postgres.h"

#include <unistd.h>

#include "access/xact.h"
#include "fmgr.h"
#include "storage/ipc.h"
#include "utils/builtins.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/resowner.h"

PG_MODULE_MAGIC;

#define FILE_NAME "xact_callback.waits"

PGDLLEXPORT void _PG_init(void);

PG_FUNCTION_INFO_V1(draw_in_callback);
PG_FUNCTION_INFO_V1(drawn_in_callback);
PG_FUNCTION_INFO_V1(wait_after_end);
PG_FUNCTION_INFO_V1(release_owner);

static PGFunction next = NULL;	/* if it is to draw, */
static Oid	sequence;			/* from this */
static char message[256];		/* what came of that */
static bool waits = false;

/* draw_in_callback(regclass) returns boolean: of the transaction that calls it */
Datum
draw_in_callback(PG_FUNCTION_ARGS)
{
	next = load_external_function("fast_feed", "feed_next", true, NULL);
	sequence = PG_GETARG_OID(0);
	PG_RETURN_BOOL(true);
}

/* drawn_in_callback() returns text: the number, or the error */
Datum
drawn_in_callback(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_TEXT_P(cstring_to_text(message));
}

/* wait_after_end() returns boolean: that of the transaction that calls it */
Datum
wait_after_end(PG_FUNCTION_ARGS pg_attribute_unused())
{
	waits = true;
	PG_RETURN_BOOL(true);
}

/* release_owner() returns boolean: one that belongs to no transaction, in a transaction */
Datum
release_owner(PG_FUNCTION_ARGS pg_attribute_unused())
{
	ResourceOwner owner = ResourceOwnerCreate(NULL, "xact_callback");

	ResourceOwnerRelease(owner, RESOURCE_RELEASE_BEFORE_LOCKS, true, true);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_LOCKS, true, true);
	ResourceOwnerRelease(owner, RESOURCE_RELEASE_AFTER_LOCKS, true, true);
	ResourceOwnerDelete(owner);
	PG_RETURN_BOOL(true);
}

static void
draw(void)
{
	PGFunction	function = next;
	MemoryContext caller = CurrentMemoryContext;

	next = NULL;
	PG_TRY();
	{
		int64		number = DatumGetInt64(DirectFunctionCall1(function, ObjectIdGetDatum(sequence)));

		snprintf(message, sizeof(message), INT64_FORMAT, number);
	}
	PG_CATCH();
	{
		MemoryContextSwitchTo(caller);
		strlcpy(message, CopyErrorData()->message, sizeof(message));
		FlushErrorState();
	}
	PG_END_TRY();
}

/* In a subtransaction, which releases what it holds. */
static void
draw_in_vain(PGFunction function)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	next = NULL;				/* not as this is rolled back */
	BeginInternalSubTransaction(NULL);
	(void) DirectFunctionCall1(function, ObjectIdGetDatum(sequence));
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	next = function;
}

static void
sub_callback(SubXactEvent event, SubTransactionId mySubid pg_attribute_unused(),
			 SubTransactionId parentSubid pg_attribute_unused(), void *arg pg_attribute_unused())
{
	if (event == SUBXACT_EVENT_ABORT_SUB && next != NULL)
		draw();
}

static void
callback(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_ABORT && proc_exit_inprogress)
		elog(ERROR, "raised at exit");
	if (event == XACT_EVENT_PRE_PREPARE && next != NULL)
		draw_in_vain(next);
	if ((event == XACT_EVENT_PRE_COMMIT || event == XACT_EVENT_PRE_PREPARE) && next != NULL)
		draw();
	if (waits && (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT ||
				  event == XACT_EVENT_PREPARE))
	{
		waits = false;
		fclose(fopen(FILE_NAME, "w"));
		while (access(FILE_NAME, F_OK) == 0)
			pg_usleep(1000);
	}
}

void
_PG_init(void)
{
	RegisterXactCallback(callback, NULL);
	RegisterSubXactCallback(sub_callback, NULL);
}
