/*
 * xact_callback.c
 *	  Another library at the end of a transaction: its callback raises an error as
 *	  the process ends, before those of the libraries that were there earlier; and
 *	  if it is told to, generates as a transaction is prepared, as a savepoint is
 *	  rolled back, or after a commit, where there is no transaction, or waits after
 *	  its end until a file is removed.  And what it may release meanwhile.
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

PG_FUNCTION_INFO_V1(generate_in_callback);
PG_FUNCTION_INFO_V1(generated_in_callback);
PG_FUNCTION_INFO_V1(wait_after_end);
PG_FUNCTION_INFO_V1(release_owner);

static PGFunction uuidv7_feed_id = NULL;	/* if it is to generate */
static char message[256];					/* what came of that */
static bool waits = false;

/* generate_in_callback() returns boolean: of the transaction that calls it */
Datum
generate_in_callback(PG_FUNCTION_ARGS pg_attribute_unused())
{
	uuidv7_feed_id = load_external_function("fast_uuid", "uuidv7_feed_id", true, NULL);
	PG_RETURN_BOOL(true);
}

/* generated_in_callback() returns text: the UUID, or the error */
Datum
generated_in_callback(PG_FUNCTION_ARGS pg_attribute_unused())
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
generate(void)
{
	PGFunction	function = uuidv7_feed_id;
	MemoryContext caller = CurrentMemoryContext;

	uuidv7_feed_id = NULL;
	PG_TRY();
	{
		Datum		uuid = DirectFunctionCall1(function, (Datum) 0);

		strlcpy(message, DatumGetCString(DirectFunctionCall1(uuid_out, uuid)), sizeof(message));
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
generate_in_vain(PGFunction function)
{
	MemoryContext caller = CurrentMemoryContext;
	ResourceOwner owner = CurrentResourceOwner;

	uuidv7_feed_id = NULL;		/* not as this is rolled back */
	BeginInternalSubTransaction(NULL);
	(void) DirectFunctionCall1(function, (Datum) 0);
	RollbackAndReleaseCurrentSubTransaction();
	MemoryContextSwitchTo(caller);
	CurrentResourceOwner = owner;
	uuidv7_feed_id = function;
}

static void
sub_callback(SubXactEvent event, SubTransactionId mySubid pg_attribute_unused(),
			 SubTransactionId parentSubid pg_attribute_unused(), void *arg pg_attribute_unused())
{
	if (event == SUBXACT_EVENT_ABORT_SUB && uuidv7_feed_id != NULL)
		generate();
}

static void
callback(XactEvent event, void *arg pg_attribute_unused())
{
	if (event == XACT_EVENT_ABORT && proc_exit_inprogress)
		elog(ERROR, "raised at exit");
	if (event == XACT_EVENT_PRE_PREPARE && uuidv7_feed_id != NULL)
		generate_in_vain(uuidv7_feed_id);
	if ((event == XACT_EVENT_COMMIT || event == XACT_EVENT_PRE_PREPARE) && uuidv7_feed_id != NULL)
		generate();
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
