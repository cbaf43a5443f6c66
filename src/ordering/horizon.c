/*
 * horizon.c
 *	  The sequence that holds the horizon of durable order: a time, in microseconds
 *	  since 1970-01-01 UTC, up to which UUIDs may have been generated.
 *
 *	  It is read and written in place, instead of by nextval() and setval(), which need
 *	  privileges on it and refuse READ ONLY transactions and parallel operations.
 *	  log_cnt, which counts what other sequences may return without another WAL record,
 *	  holds the life of the server (see SharedOrdering) that has set the horizon.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "compat.h"
#include "ordering/horizon.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "test_point.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/* What the server writes at the end of a sequence's page. */
#define SEQUENCE_MAGIC 0x1717

/*
 * Find the sequence in the extension's schema in this database; InvalidOid if missing.
 */
Oid
fuuid_horizon_find(void)
{
	Oid			extension = get_extension_oid("fast_uuid", true);
	Oid			sequence = InvalidOid;
	Oid			schema = InvalidOid;

	/*
	 * ALTER EXTENSION ... SET SCHEMA may move it between the two look-ups.  Before 17
	 * neither is made.
	 */
	while (OidIsValid(extension) && !OidIsValid(sequence) && schema != FUUID_EXTENSION_SCHEMA(extension))
	{
		schema = FUUID_EXTENSION_SCHEMA(extension);
		FUUID_TEST_POINT("horizon_schema");
		sequence = get_relname_relid(FUUID_HORIZON_NAME, schema);
	}
	if (!OidIsValid(sequence) || get_rel_relkind(sequence) != RELKIND_SEQUENCE ||
		getExtensionOfObject(RelationRelationId, sequence) != extension)
		return InvalidOid;
	return sequence;
}

/*
 * Raise an error if a locked page is not a sequence's.  It is unlocked before, because a
 * client that does not read the message would keep the lock.
 */
static void
require_sequence_page(Buffer buffer)
{
	Page		page = BufferGetPage(buffer);

	if (PageGetSpecialSize(page) == MAXALIGN(sizeof(uint32)) &&
		*(uint32 *) PageGetSpecialPointer(page) == SEQUENCE_MAGIC)
		return;
	UnlockReleaseBuffer(buffer);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("bad magic number in sequence \"%s\"", FUUID_HORIZON_NAME)));
}

/*
 * The only tuple of a sequence, in its page.
 */
static Form_pg_sequence_data
sequence_data(Page page)
{
	char	   *tuple = (char *) PageGetItem(page, PageGetItemId(page, FirstOffsetNumber));

	return (Form_pg_sequence_data) (tuple + ((HeapTupleHeader) tuple)->t_hoff);
}

/*
 * Read the horizon of a sequence that is locked.
 */
HorizonValue
fuuid_horizon_read(const Horizon *horizon)
{
	Form_pg_sequence_data data = sequence_data(BufferGetPage(horizon->buffer));

	if (!data->is_called || data->last_value <= 0)
		return (HorizonValue) {0};

	/* A life is at least 2^32; what the server counts there is smaller. */
	return (HorizonValue) {data->last_value, data->log_cnt > PG_UINT32_MAX ? data->log_cnt : 0};
}

/*
 * Read the horizon of a sequence that is not locked; also works during recovery.  There
 * is none if the sequence has been dropped, or is not logged.
 */
HorizonValue
fuuid_horizon_peek(Oid sequence)
{
	Horizon		horizon;
	HorizonValue value = {0};

	horizon.sequence = try_relation_open(sequence, AccessShareLock);
	if (horizon.sequence == NULL)
		return value;
	if (horizon.sequence->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT)
	{
		horizon.buffer = ReadBuffer(horizon.sequence, 0);
		LockBuffer(horizon.buffer, BUFFER_LOCK_SHARE);
		require_sequence_page(horizon.buffer);
		value = fuuid_horizon_read(&horizon);
		UnlockReleaseBuffer(horizon.buffer);
	}
	relation_close(horizon.sequence, AccessShareLock);
	return value;
}

/*
 * Open the sequence and lock its page against all others.  Returns false if it has been
 * dropped or, without "wait", is locked.  Raises an error if it is unlogged, was altered
 * in this transaction, or its page is not a sequence's.
 */
bool
fuuid_horizon_lock(Horizon *horizon, Oid sequence, bool wait)
{
	if (!wait && !ConditionalLockRelationOid(sequence, RowExclusiveLock))
		return false;
	horizon->sequence = try_relation_open(sequence, RowExclusiveLock);
	if (!wait)
		UnlockRelationOid(sequence, RowExclusiveLock);
	if (horizon->sequence == NULL)
		return false;
	if (horizon->sequence->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" is unlogged", FUUID_HORIZON_NAME),
				 errdetail("A crash would reset the horizon of ordering \"durable\"."),
				 errhint("Use ALTER SEQUENCE ... SET LOGGED.")));
	if (FUUID_IS_REWRITTEN(horizon->sequence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" was altered in this transaction", FUUID_HORIZON_NAME),
				 errdetail("A rollback would also undo the horizon that is written to it."),
				 errhint("Commit the transaction first.")));

	/* Memory may run out here, and must not with the page locked. */
	horizon->record = GenericXLogStart(horizon->sequence);
	horizon->buffer = ReadBuffer(horizon->sequence, 0);
	if (wait)
		LockBuffer(horizon->buffer, BUFFER_LOCK_EXCLUSIVE);
	else if (!ConditionalLockBuffer(horizon->buffer))
	{
		GenericXLogAbort(horizon->record);
		ReleaseBuffer(horizon->buffer);
		relation_close(horizon->sequence, RowExclusiveLock);
		return false;
	}
	require_sequence_page(horizon->buffer);
	return true;
}

/*
 * Set the horizon, and return when a crash cannot lose it any more.
 */
void
fuuid_horizon_write(Horizon *horizon, HorizonValue value)
{
	Form_pg_sequence_data data = sequence_data(GenericXLogRegisterBuffer(horizon->record, horizon->buffer, 0));
	XLogRecPtr	written;

	data->last_value = value.us;
	data->log_cnt = value.life;
	data->is_called = true;
	written = GenericXLogFinish(horizon->record);
	horizon->record = NULL;
	FUUID_TEST_POINT("horizon_written");
	XLogFlush(written);
}

void
fuuid_horizon_unlock(Horizon *horizon)
{
	if (horizon->record != NULL)
		GenericXLogAbort(horizon->record);
	UnlockReleaseBuffer(horizon->buffer);
	relation_close(horizon->sequence, RowExclusiveLock);
}
