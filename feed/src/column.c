/*
 * column.c
 *	  Columns that are followed, and their sequences.
 *
 *	  A trigger has as its argument the name of a column, and its sequence is
 *	  the one that the column owns, as an identity column does; so no name that
 *	  a session can shadow decides.  A sequence that the column does not own is
 *	  the second argument, with its schema.
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/dependency.h"
#include "catalog/indexing.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_class.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_trigger.h"
#include "compat.h"
#include "feed.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

/* By trigger.  What is in it stays, because calls and other columns point to it. */
static HTAB *columns = NULL;
uint64		feed_column_changes = 1;	/* invalidations of any relation */
uint64		feed_column_own_changes = 1;	/* of those that columns are about */

/*
 * What was found out about this relation, or a sequence of this hash, is not
 * valid any more.  A column of which nothing is known yet has zeros.
 */
static void
invalidate(bool all, Oid relid, uint32 hash)
{
	HASH_SEQ_STATUS scan;
	FeedColumn *column;

	feed_column_changes++;
	hash_seq_init(&scan, columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		if (all ||
			(OidIsValid(relid) &&
			 (column->relation == relid || column->followed == relid ||
			  column->sequence == relid)) ||
			(hash != 0 && column->sequence_hash == hash))
		{
			column->valid = false;
			feed_column_own_changes++;
		}
}

/* Something has changed about a relation, or about all. */
static void
relation_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	invalidate(!OidIsValid(relid), relid, 0);
}

/*
 * Something has changed about a sequence, such as the column that owns it, or
 * about a schema, whose name can be in any trigger's arguments.
 */
static void
catalog_changed(Datum arg pg_attribute_unused(), int cache_id, uint32 hash)
{
	if (cache_id == NAMESPACEOID)
		hash = 0;
	invalidate(hash == 0, InvalidOid, hash);
}

/* At load time, because a callback cannot be taken back. */
void
feed_column_init(void)
{
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(FeedColumn)};

	columns = hash_create("fast_feed columns", 16, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(SEQRELID, catalog_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(NAMESPACEOID, catalog_changed, (Datum) 0);
}

/*
 * The sequence that a column owns; InvalidOid if there is not exactly one.
 * getOwnedSequences() would look at all that depends on the table, and so at
 * each of its partitions, for each of them.
 */
static Oid
sequence_of(Oid relid, AttrNumber attnum)
{
	Relation	depend = table_open(DependRelationId, AccessShareLock);
	ScanKeyData key[3];
	SysScanDesc scan;
	HeapTuple	tuple;
	Oid			found = InvalidOid;
	int			count = 0;

	ScanKeyInit(&key[0], Anum_pg_depend_refclassid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(RelationRelationId));
	ScanKeyInit(&key[1], Anum_pg_depend_refobjid, BTEqualStrategyNumber,
				F_OIDEQ, ObjectIdGetDatum(relid));
	ScanKeyInit(&key[2], Anum_pg_depend_refobjsubid, BTEqualStrategyNumber,
				F_INT4EQ, Int32GetDatum(attnum));
	scan = systable_beginscan(depend, DependReferenceIndexId, true, NULL, 3, key);
	while (HeapTupleIsValid(tuple = systable_getnext(scan)))
	{
		Form_pg_depend form = (Form_pg_depend) GETSTRUCT(tuple);

		if (form->classid == RelationRelationId && form->objsubid == 0 &&
			(form->deptype == DEPENDENCY_AUTO ||
			 form->deptype == DEPENDENCY_INTERNAL) &&
			get_rel_relkind(form->objid) == RELKIND_SEQUENCE)
		{
			found = form->objid;
			count++;
		}
	}
	systable_endscan(scan);
	table_close(depend, AccessShareLock);
	return count == 1 ? found : InvalidOid;
}

/*
 * Does a unique index of a table have this column alone?  One that is deferrable
 * is enough, because what it finds at COMMIT is not committed.
 */
static bool
has_unique_index(Relation relation, AttrNumber attnum)
{
	bool		found = false;
	ListCell   *cell;

	foreach(cell, RelationGetIndexList(relation))
	{
		HeapTuple	tuple = SearchSysCache1(INDEXRELID,
											ObjectIdGetDatum(lfirst_oid(cell)));
		Form_pg_index index;

		if (!HeapTupleIsValid(tuple))
			continue;
		index = (Form_pg_index) GETSTRUCT(tuple);
		if (index->indisunique && index->indisvalid && index->indnkeyatts == 1 &&
			index->indkey.values[0] == attnum &&
			heap_attisnull(tuple, Anum_pg_index_indpred, NULL))
			found = true;
		ReleaseSysCache(tuple);
	}
	return found;
}

/* The full ID of a transaction, which is not as old as that its ID is used again. */
static uint64
full_of(TransactionId xid)
{
	uint64		next = U64FromFullTransactionId(ReadNextFullTransactionId());

	return next - (uint32) ((TransactionId) next - xid);
}

/*
 * Find out when a trigger was created, or changed last.  Sets *parent to the
 * trigger of which it is a clone, as partitions have them, and *relation to the
 * table that it is on.
 */
static void
creation_of(FeedColumn *column, Oid trigger, Oid *parent, Oid *relation)
{
	Relation	triggers = table_open(TriggerRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	TransactionId xmin;

	ScanKeyInit(&key, Anum_pg_trigger_oid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(trigger));
	scan = systable_beginscan(triggers, TriggerOidIndexId, true, NULL, 1, &key);
	tuple = systable_getnext(scan);
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "could not find tuple for trigger %u", trigger);
	xmin = HeapTupleHeaderGetXmin(tuple->t_data);
	column->created = TransactionIdIsNormal(xmin) ? full_of(xmin) : 0;
	column->command = TransactionIdIsCurrentTransactionId(xmin) ?
		HeapTupleHeaderGetCmin(tuple->t_data) : FirstCommandId;
	*parent = ((Form_pg_trigger) GETSTRUCT(tuple))->tgparentid;
	*relation = ((Form_pg_trigger) GETSTRUCT(tuple))->tgrelid;
	systable_endscan(scan);
	table_close(triggers, AccessShareLock);
}

/*
 * The table on which the owner of a table has created a trigger: its own or, of
 * a partition, that of which the trigger is a clone.  Raises an error unless it
 * depends on this extension, which only an owner can make so: a role with the
 * privilege TRIGGER must not draw from, or hold back, sequences of another one.
 */
static Oid
created_on(FeedColumn *column, const Trigger *trigger, Oid function)
{
	Oid			first = trigger->tgoid;
	Oid			parent;
	Oid			relation;

	creation_of(column, first, &parent, &relation);
	while (OidIsValid(parent))
	{
		FeedColumn	ignored;

		first = parent;
		creation_of(&ignored, first, &parent, &relation);
	}
	if (!list_member_oid(getAutoExtensionsOfObject(TriggerRelationId, first),
						 getExtensionOfObject(ProcedureRelationId, function)))
		FEED_STATE_ERROR(errmsg("trigger \"%s\" of relation \"%s\" was not created by fast_feed.enable()",
								trigger->tgname, get_rel_name(relation)),
						 errdetail("It does not depend on the extension, which the owner of a table alone can make it do."),
						 errhint("Use fast_feed.enable()."));
	return relation;
}

/* Who owns a relation. */
static Oid
owner_of(Oid relid)
{
	HeapTuple	tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relid));
	Oid			owner;

	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for relation %u", relid);
	owner = ((Form_pg_class) GETSTRUCT(tuple))->relowner;
	ReleaseSysCache(tuple);
	return owner;
}

/* Find out all about a trigger's column. */
static void
find_out(FeedColumn *column, Relation relation, const Trigger *trigger)
{
	char	  **arguments = trigger->tgargs;
	int			count = trigger->tgnargs;
	List	   *ancestors = NIL;
	List	   *sequence;
	AttrNumber	attnum;
	Relation	followed;
	Oid			creator = created_on(column, trigger, trigger->tgfoid);

	if (count != 1 && count != 2)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" has the wrong number of arguments",
						trigger->tgname),
				 errdetail("They are the name of a column and, unless the column owns it, of a sequence.")));
	FEED_TEST_POINT("finding_out");
	column->attnum = get_attnum(column->relation, arguments[0]);
	if (column->attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						arguments[0], RelationGetRelationName(relation)),
				 errhint("If it was renamed, call fast_feed.enable() with its new name.")));
	column->type = get_atttype(column->relation, column->attnum);
	if (column->type != INT8OID && column->type != INT4OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" is not of type bigint or integer",
						arguments[0], RelationGetRelationName(relation)),
				 errhint("To add such a column while others write, see \"A table without a number\" in the guide of fast_feed.")));

	/* A partition's columns own nothing. */
	if (relation->rd_rel->relispartition)
		ancestors = get_partition_ancestors(column->relation);
	column->followed = ancestors == NIL ? column->relation : llast_oid(ancestors);
	attnum = get_attnum(column->followed, arguments[0]);
	if (count == 1)
		column->sequence = sequence_of(column->followed, attnum);
	else
	{
		/* Without asking for a privilege on the schema, which a writer may lack. */
		sequence = textToQualifiedNameList(cstring_to_text(arguments[1]));
		column->sequence = list_length(sequence) != 2 ? InvalidOid :
			get_relname_relid(strVal(lsecond(sequence)),
							  get_namespace_oid(strVal(linitial(sequence)), true));
		if (!OidIsValid(column->sequence))
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_TABLE),
					 errmsg("sequence \"%s\" does not exist", arguments[1]),
					 errhint("Call fast_feed.enable() with its name, also if it was renamed.")));
	}
	if (!OidIsValid(column->sequence))
		FEED_STATE_ERROR(errmsg("column \"%s\" of relation \"%s\" does not own exactly one sequence",
								arguments[0], get_rel_name(column->followed)),
						 errhint("Use ALTER TABLE ... ALTER COLUMN ... ADD GENERATED BY DEFAULT AS IDENTITY or ALTER SEQUENCE ... OWNED BY, or name a sequence, with its schema, in fast_feed.enable()."));
	if (get_attgenerated(column->relation, column->attnum) != '\0')
		FEED_STATE_ERROR(errmsg("column \"%s\" of relation \"%s\" is a generated column",
								arguments[0], RelationGetRelationName(relation)));

	/*
	 * A trigger that the owner of a partition has created gets no rights from the
	 * table's owner.  And an index on this table cannot exclude that another table
	 * has the same number of a sequence that they share.
	 */
	followed = table_open(column->followed, AccessShareLock);
	column->owned = count == 1 && creator == column->followed;
	column->unique = count == 1 && has_unique_index(followed, attnum);
	table_close(followed, AccessShareLock);
	column->owner = owner_of(creator);
	FEED_TEST_POINT("found_out");
	column->sequence_owner = owner_of(column->sequence);
	column->sequence_hash = GetSysCacheHashValue1(SEQRELID,
												  ObjectIdGetDatum(column->sequence));
}

/*
 * The column of one of our triggers, on an open relation.  Raises an error if
 * there is none, or if it has no sequence.
 */
FeedColumn *
feed_column_of(Relation relation, const Trigger *trigger)
{
	bool		found;
	FeedColumn *column = hash_search(columns, &trigger->tgoid, HASH_ENTER,
									 &found);

	if (!found)
		*column = (FeedColumn) {.trigger = trigger->tgoid,
		.relation = RelationGetRelid(relation)};
	if (!column->valid)
	{
		FeedColumn	fresh = {.trigger = trigger->tgoid,
		.relation = RelationGetRelid(relation),.partitions = column->partitions};
		uint64		before = feed_column_changes;

		find_out(&fresh, relation, trigger);
		fresh.valid = feed_column_changes == before;
		*column = fresh;
	}
	return column;
}

/*
 * Raise an error unless a column's sequence may be used.  One that belongs to
 * the column may be, whoever inserts or reads, as an identity draws from it.
 * From another one the table's owner must be allowed to draw, or anyone could
 * hold it back, or learn its numbers, by a table of his own; as superusers may
 * draw from all, theirs only from what they own, or who may create a trigger on
 * a table of theirs could do so, too.
 */
void
feed_column_require_privilege(const FeedColumn *column)
{
	if (!column->owned &&
		!(superuser_arg(column->owner) ?
		  column->sequence_owner == column->owner :
		  pg_class_aclcheck(column->sequence, column->owner,
							ACL_USAGE | ACL_UPDATE) == ACLCHECK_OK))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied for sequence %s",
						get_rel_name(column->sequence)),
				 errdetail("The owner of table \"%s\" must have USAGE on it or, if a superuser, own it.",
						   get_rel_name(column->relation))));
}

/*
 * The column of a call by the trigger manager.  Raises an error unless the
 * trigger is one BEFORE INSERT, or for rows perhaps UPDATE.
 */
const FeedColumn *
feed_column_of_call(FunctionCallInfo fcinfo, bool for_each_row)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	FeedColumn *column = fcinfo->flinfo->fn_extra;

	/* In one statement a trigger is always called in the same way. */
	if (column != NULL && column->valid &&
		column->trigger == data->tg_trigger->tgoid)
		return column;
	if (!CALLED_AS_TRIGGER(fcinfo) || !TRIGGER_FIRED_BEFORE(data->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(data->tg_event) != !for_each_row ||
		!(TRIGGER_FIRED_BY_INSERT(data->tg_event) ||
		  (for_each_row && TRIGGER_FIRED_BY_UPDATE(data->tg_event))))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be fired %s",
						get_func_name(fcinfo->flinfo->fn_oid),
						for_each_row ? "BEFORE INSERT OR UPDATE for each row" :
						"BEFORE INSERT for each statement")));
	column = feed_column_of(data->tg_relation, data->tg_trigger);
	fcinfo->flinfo->fn_extra = column;
	return column;
}
