/*
 * horizon.c
 *	  The sequence that holds the horizon of durable order: a time, in microseconds
 *	  since 1970-01-01 UTC, up to which UUIDs may have been generated.
 *
 *	  It is read and written in place, and not by nextval() or setval(), which
 *	  need privileges on it and refuse READ ONLY transactions and parallel workers.
 *	  Where a sequence counts what it may hand out without another WAL record
 *	  (log_cnt), which this one never does, there stands who has set the value.
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
#include "catalog/pg_auth_members.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_extension.h"
#include "commands/extension.h"
#include "commands/sequence.h"
#include "horizon.h"
#include "miscadmin.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "test_point.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/syscache.h"

/*
 * Is it the extension's own, and not one that the extension's owner, who need not
 * be a superuser, has added to it?
 */
static bool
is_horizon(Oid relation)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
	Form_pg_class form;
	bool		is;

	if (!HeapTupleIsValid(tuple))
		return false;
	form = (Form_pg_class) GETSTRUCT(tuple);
	is = form->relkind == RELKIND_SEQUENCE && strcmp(NameStr(form->relname), FUUID_HORIZON_NAME) == 0 &&
		superuser_arg(form->relowner);
	ReleaseSysCache(tuple);
	return is;
}

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
			is_horizon(member->objid))
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
 * The horizon of a sequence that is locked.
 */
static HorizonValue
read_value(const Horizon *horizon)
{
	Form_pg_sequence_data data = sequence_data(BufferGetPage(horizon->buffer));

	if (!data->is_called || data->last_value <= 0)
		return (HorizonValue) {0};
	return (HorizonValue) {data->last_value, data->log_cnt};
}

/*
 * The same of a sequence that is not locked, during recovery as well; none where
 * it has been dropped, or is not logged.
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
		value = read_value(&horizon);
		UnlockReleaseBuffer(horizon.buffer);
	}
	relation_close(horizon.sequence, AccessShareLock);
	return value;
}

/*
 * Has pg_write_all_data, which may call setval() on every sequence, a member that is
 * no superuser?
 */
static bool
others_may_write_all(void)
{
	Relation	members = table_open(AuthMemRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		others = false;

	ScanKeyInit(&key, Anum_pg_auth_members_roleid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(ROLE_PG_WRITE_ALL_DATA));
	scan = systable_beginscan(members, AuthMemRoleMemIndexId, true, NULL, 1, &key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
		if (!superuser_arg(((Form_pg_auth_members) GETSTRUCT(tuple))->member))
			others = true;
	systable_endscan(scan);
	table_close(members, AccessShareLock);
	return others;
}

/*
 * Can none but superusers call setval()?  Reads the catalog, which can wait for a
 * lock: not while the sequence is locked.
 */
static bool
is_protected(Oid sequence)
{
	HeapTuple	tuple;
	bool		protected = true;
	bool		is_null = true;
	Datum		list = (Datum) 0;

	/* A GRANT of this moment, also where this backend has the sequence open already. */
	AcceptInvalidationMessages();
	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(sequence));

	if (HeapTupleIsValid(tuple))
		list = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relacl, &is_null);
	if (!is_null)
	{
		Acl		   *acl = DatumGetAclPCopy(list);
		AclItem    *item = ACL_DAT(acl);

		for (int i = 0; i < ACL_NUM(acl); i++)
			if ((ACLITEM_GET_PRIVS(item[i]) & ACL_UPDATE) &&
				(item[i].ai_grantee == ACL_ID_PUBLIC || !superuser_arg(item[i].ai_grantee)))
				protected = false;
	}
	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
	return protected && !others_may_write_all();
}

/*
 * Open the sequence and lock it against everybody else.  False where it has been
 * dropped, or where somebody else has locked it and the caller does not want to
 * wait.
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
 * The same, and read it, and tell whether the value can be believed: there is none,
 * durable order has written it, or none but superusers can have set it.
 */
bool
fuuid_horizon_lock_and_read(Horizon *horizon, Oid sequence, bool wait, HorizonValue *value, bool *believed)
{
	int64		asked_us = 0;
	bool		protected = false;

	for (;;)
	{
		if (!fuuid_horizon_lock(horizon, sequence, wait))
			return false;
		*value = read_value(horizon);
		*believed = value->us == 0 || value->life != 0 || (protected && value->us == asked_us);
		if (*believed || value->us == asked_us)
			return true;

		/* Under the lock, a wait for the catalog would answer no cancel. */
		fuuid_horizon_unlock(horizon);
		asked_us = value->us;
		protected = is_protected(sequence);
	}
}

/*
 * Set the horizon, and return when that cannot be lost any more.
 */
void
fuuid_horizon_write(const Horizon *horizon, HorizonValue value)
{
	GenericXLogState *state = GenericXLogStart(horizon->sequence);
	Form_pg_sequence_data data = sequence_data(GenericXLogRegisterBuffer(state, horizon->buffer, 0));
	XLogRecPtr	written;

	data->last_value = value.us;
	data->log_cnt = value.life;
	data->is_called = true;
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
