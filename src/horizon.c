/*
 * horizon.c
 *	  The sequence that holds the horizon of durable order: a time, in microseconds
 *	  since 1970-01-01 UTC, up to which UUIDs may have been generated.
 *
 *	  It is read and written in place, and not by nextval() or setval(), which
 *	  need privileges on it and refuse READ ONLY transactions and parallel workers.
 */
#include "postgres.h"

#include "access/generic_xlog.h"
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/table.h"
#include "access/xlog.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "horizon.h"
#include "storage/bufmgr.h"
#include "test_point.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"

/*
 * The sequence of the extension in this database, whichever schema it is in, or
 * InvalidOid.
 */
Oid
fuuid_horizon_find(void)
{
	Oid			extension = get_extension_oid("fast_uuid", true);
	Oid			sequence = InvalidOid;
	Relation	depend;
	SysScanDesc scan;
	ScanKeyData key[2];
	HeapTuple	tuple;

	if (!OidIsValid(extension))
		return InvalidOid;

	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(ExtensionRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(extension));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, lengthof(key), key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend member = (Form_pg_depend) GETSTRUCT(tuple);

		if (member->deptype == DEPENDENCY_EXTENSION && member->classid == RelationRelationId &&
			get_rel_relkind(member->objid) == RELKIND_SEQUENCE)
			sequence = member->objid;
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return sequence;
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
 * The horizon; 0: none was ever set.
 */
int64
fuuid_horizon_read(const Horizon *horizon)
{
	Form_pg_sequence_data data = sequence_data(BufferGetPage(horizon->buffer));

	return data->is_called ? data->last_value : 0;
}

/*
 * The same of a sequence that is not locked, during recovery as well; 0 also
 * where it has been dropped.
 */
int64
fuuid_horizon_peek(Oid sequence)
{
	Horizon		horizon;
	int64		us;

	horizon.sequence = try_relation_open(sequence, AccessShareLock);
	if (horizon.sequence == NULL)
		return 0;
	horizon.buffer = ReadBuffer(horizon.sequence, 0);
	LockBuffer(horizon.buffer, BUFFER_LOCK_SHARE);
	us = fuuid_horizon_read(&horizon);
	UnlockReleaseBuffer(horizon.buffer);
	relation_close(horizon.sequence, AccessShareLock);
	return us;
}

/*
 * Open the sequence and lock it against everybody else.  False where it has been
 * dropped, or where somebody else has locked it and the caller does not want to
 * wait.
 */
bool
fuuid_horizon_lock(Horizon *horizon, Oid sequence, bool wait)
{
	horizon->sequence = try_relation_open(sequence, RowExclusiveLock);
	if (horizon->sequence == NULL)
		return false;
	if (horizon->sequence->rd_rel->relpersistence != RELPERSISTENCE_PERMANENT)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("sequence \"%s\" is not logged", FUUID_HORIZON_NAME),
				 errhint("ALTER SEQUENCE %s SET LOGGED.", FUUID_HORIZON_NAME)));

	horizon->buffer = ReadBuffer(horizon->sequence, 0);
	if (wait)
		LockBuffer(horizon->buffer, BUFFER_LOCK_EXCLUSIVE);
	else if (!ConditionalLockBuffer(horizon->buffer))
	{
		ReleaseBuffer(horizon->buffer);
		relation_close(horizon->sequence, RowExclusiveLock);
		return false;
	}
	return true;
}

/*
 * Set the horizon, and return when that cannot be lost any more.
 */
void
fuuid_horizon_write(const Horizon *horizon, int64 us)
{
	GenericXLogState *state = GenericXLogStart(horizon->sequence);
	Form_pg_sequence_data data = sequence_data(GenericXLogRegisterBuffer(state, horizon->buffer, 0));
	XLogRecPtr	written;

	data->last_value = us;
	data->is_called = true;
	data->log_cnt = 0;
	written = GenericXLogFinish(state);
	FUUID_TEST_POINT("horizon_written");
	XLogFlush(written);
}

void
fuuid_horizon_unlock(const Horizon *horizon)
{
	UnlockReleaseBuffer(horizon->buffer);
	relation_close(horizon->sequence, RowExclusiveLock);
}
