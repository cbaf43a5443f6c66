/*
 * upper_bound.c
 *	  The sequence that holds the upper bound: a time up to which feed ids may
 *	  have been generated.
 *
 *	  It is read and written in place, instead of by nextval() and setval(),
 *	  which need privileges on it and refuse READ ONLY transactions.  log_cnt,
 *	  which counts what other sequences may return without another WAL record,
 *	  holds the incarnation of the server that has set the upper bound.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/generic_xlog.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/pg_class.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "compat.h"
#include "feed/feed.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "test_point.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/* What the server writes at the end of a sequence's page. */
#define SEQUENCE_MAGIC 0x1717

/* The schema of the extension in this database; InvalidOid if there is none. */
static Oid
extension_schema(Oid extension)
{
	Oid			schema = InvalidOid;
	Relation	extensions = table_open(ExtensionRelationId, AccessShareLock);
	SysScanDesc scan;
	HeapTuple	tuple;
	ScanKeyData key;

	ScanKeyInit(&key, Anum_pg_extension_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(extension));
	scan = systable_beginscan(extensions, ExtensionOidIndexId, true, NULL, 1,
							  &key);
	if (HeapTupleIsValid(tuple = systable_getnext(scan)))
		schema = ((Form_pg_extension) GETSTRUCT(tuple))->extnamespace;
	systable_endscan(scan);
	table_close(extensions, AccessShareLock);
	return schema;
}

/* The role that owns a relation, whose row may just have been deleted. */
static Oid
relation_owner(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Oid			owner = InvalidOid;

	if (HeapTupleIsValid(tuple))
	{
		owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
		ReleaseSysCache(tuple);
	}
	return owner;
}

/*
 * Find the sequence of the extension; InvalidOid if it is missing.  Whoever
 * created the extension need not be a superuser, and can add sequences of his
 * own to it, which would move the time of all databases.  So it counts only in
 * the extension's schema, where no other has its name, and as a superuser's.
 */
Oid
fuuid_upper_bound_find(void)
{
	Oid			extension = get_extension_oid("fast_uuid", true);
	Oid			found;

	if (!OidIsValid(extension))
		return InvalidOid;
	found = get_relname_relid(FUUID_UPPER_BOUND_NAME,
							  extension_schema(extension));
	if (!OidIsValid(found) || get_rel_relkind(found) != RELKIND_SEQUENCE ||
		!superuser_arg(relation_owner(found)) ||
		getExtensionOfObject(RelationRelationId, found) != extension)
		return InvalidOid;
	return found;
}

/*
 * Unless the page is a sequence's, release it and raise an error: the message
 * may be sent to a client that does not read it, while others need the page.
 */
static void
require_sequence_page(Buffer locked)
{
	Page		page = BufferGetPage(locked);

	if (PageGetSpecialSize(page) == MAXALIGN(sizeof(uint32)) &&
		*(uint32 *) PageGetSpecialPointer(page) == SEQUENCE_MAGIC)
		return;
	UnlockReleaseBuffer(locked);
	ereport(ERROR,
			(errcode(ERRCODE_DATA_CORRUPTED),
			 errmsg("bad magic number in sequence \"%s\"", FUUID_UPPER_BOUND_NAME)));
}

/* The only tuple of a sequence, in its page. */
static Form_pg_sequence_data
sequence_data(Page page)
{
	HeapTupleHeader tuple = (HeapTupleHeader)
		PageGetItem(page, PageGetItemId(page, FirstOffsetNumber));

	return (Form_pg_sequence_data) ((char *) tuple + tuple->t_hoff);
}

/* Read the upper bound of a sequence that is locked. */
UpperBoundValue
fuuid_upper_bound_read(const UpperBound *bound)
{
	Form_pg_sequence_data data = sequence_data(BufferGetPage(bound->buffer));
	UpperBoundValue value = {0};

	if (data->is_called && data->last_value > 0)
		value.us = data->last_value;

	/* An incarnation is at least 2^32; the server's counts are smaller. */
	if (value.us != 0 && data->log_cnt > PG_UINT32_MAX)
		value.incarnation = data->log_cnt;
	return value;
}

/*
 * Read the upper bound of a sequence that is not locked; also works during
 * recovery.  There is none if the sequence was dropped, or is not logged.
 */
UpperBoundValue
fuuid_upper_bound_peek(Oid sequence)
{
	UpperBound	bound;
	UpperBoundValue value = {0};

	bound.sequence = try_relation_open(sequence, AccessShareLock);
	if (bound.sequence == NULL)
		return value;
	if (bound.sequence->rd_rel->relpersistence == RELPERSISTENCE_PERMANENT)
	{
		bound.buffer = ReadBuffer(bound.sequence, 0);
		LockBuffer(bound.buffer, BUFFER_LOCK_SHARE);
		require_sequence_page(bound.buffer);
		value = fuuid_upper_bound_read(&bound);
		UnlockReleaseBuffer(bound.buffer);
	}
	relation_close(bound.sequence, AccessShareLock);
	return value;
}

/*
 * Open the sequence and lock its page against all others.  Returns false if it
 * has been dropped or, without "wait", is locked.  Raises an error if it is
 * unlogged, was altered in this transaction, or its page is not a sequence's.
 */
bool
fuuid_upper_bound_lock(UpperBound *bound, Oid sequence, bool wait)
{
	if (!wait && !ConditionalLockRelationOid(sequence, RowExclusiveLock))
		return false;
	bound->sequence = try_relation_open(sequence, RowExclusiveLock);
	if (!wait)
		UnlockRelationOid(sequence, RowExclusiveLock);
	if (bound->sequence == NULL)
		return false;
	if (bound->sequence->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" is unlogged", FUUID_UPPER_BOUND_NAME),
				 errdetail("A crash would reset the upper bound of feed ids."),
				 errhint("Use ALTER SEQUENCE ... SET LOGGED.")));
	if (FUUID_IS_REWRITTEN(bound->sequence))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" was altered in this transaction", FUUID_UPPER_BOUND_NAME),
				 errdetail("A rollback would also undo the upper bound that is written to it."),
				 errhint("Commit the transaction first.")));

	/* Memory may run out here, and must not with the page locked. */
	bound->record = GenericXLogStart(bound->sequence);
	bound->buffer = ReadBuffer(bound->sequence, 0);
	if (wait)
		LockBuffer(bound->buffer, BUFFER_LOCK_EXCLUSIVE);
	else if (!ConditionalLockBuffer(bound->buffer))
	{
		GenericXLogAbort(bound->record);
		ReleaseBuffer(bound->buffer);
		relation_close(bound->sequence, RowExclusiveLock);
		return false;
	}
	require_sequence_page(bound->buffer);
	return true;
}

/* Set the upper bound, and return when a crash cannot lose it any more. */
void
fuuid_upper_bound_write(UpperBound *bound, UpperBoundValue value)
{
	Form_pg_sequence_data data = sequence_data(
		GenericXLogRegisterBuffer(bound->record, bound->buffer, 0));
	XLogRecPtr	written;

	data->last_value = value.us;
	data->log_cnt = value.incarnation;
	data->is_called = true;
	written = GenericXLogFinish(bound->record);
	bound->record = NULL;
	FUUID_TEST_POINT("upper_bound_written");
	XLogFlush(written);
}

void
fuuid_upper_bound_unlock(UpperBound *bound)
{
	if (bound->record != NULL)
		GenericXLogAbort(bound->record);
	UnlockReleaseBuffer(bound->buffer);
	relation_close(bound->sequence, RowExclusiveLock);
}
