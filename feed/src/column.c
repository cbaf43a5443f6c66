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

#include "access/table.h"
#include "catalog/dependency.h"
#include "catalog/namespace.h"
#include "catalog/partition.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "compat.h"
#include "feed.h"
#include "utils/builtins.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/varlena.h"

static HTAB *columns = NULL;
static uint64 changes = 0;		/* of relations, while something is found out */

/* Something has changed about a relation, or about all. */
static void
relation_changed(Datum arg pg_attribute_unused(), Oid relid)
{
	HASH_SEQ_STATUS scan;
	FeedColumn *column;

	changes++;
	hash_seq_init(&scan, columns);
	while ((column = hash_seq_search(&scan)) != NULL)
		if (!OidIsValid(relid) || column->relation == relid ||
			column->followed == relid || column->sequence == relid)
			column->valid = false;
}

/* Something has changed about a sequence, such as the column that owns it. */
static void
sequence_changed(Datum arg, int cache_id pg_attribute_unused(),
				 uint32 hash pg_attribute_unused())
{
	relation_changed(arg, InvalidOid);
}

/* As we are loaded: a callback cannot be taken back. */
void
feed_column_init(void)
{
	HASHCTL		control = {.keysize = sizeof(Oid),.entrysize = sizeof(FeedColumn)};

	columns = hash_create("fast_feed columns", 16, &control, HASH_ELEM | HASH_BLOBS);
	CacheRegisterRelcacheCallback(relation_changed, (Datum) 0);
	CacheRegisterSyscacheCallback(SEQRELID, sequence_changed, (Datum) 0);
}

/* The sequence that a column owns; InvalidOid if there is not exactly one. */
static Oid
sequence_of(Oid relid, AttrNumber attnum)
{
	Oid			found = InvalidOid;
	ListCell   *cell;

	foreach(cell, getOwnedSequences(relid))
	{
		Oid			sequence = lfirst_oid(cell);
		Oid			table;
		int32		column;

		if (!(sequenceIsOwned(sequence, DEPENDENCY_AUTO, &table, &column) ||
			  sequenceIsOwned(sequence, DEPENDENCY_INTERNAL, &table, &column)) ||
			column != attnum)
			continue;
		if (OidIsValid(found))
			return InvalidOid;
		found = sequence;
	}
	return found;
}

/* Does a unique index of a table have this column alone? */
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

	if (count != 1 && count != 2)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must have as arguments the name of a column and, unless the column owns it, of a sequence",
						trigger->tgname)));
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
						arguments[0], RelationGetRelationName(relation))));

	/* A partition's columns own nothing. */
	if (relation->rd_rel->relispartition)
		ancestors = get_partition_ancestors(column->relation);
	column->followed = ancestors == NIL ? column->relation : llast_oid(ancestors);
	attnum = get_attnum(column->followed, arguments[0]);
	column->owned = count == 1;
	if (column->owned)
		column->sequence = sequence_of(column->followed, attnum);
	else
	{
		sequence = textToQualifiedNameList(cstring_to_text(arguments[1]));
		column->sequence = list_length(sequence) < 2 ? InvalidOid :
			RangeVarGetRelid(makeRangeVarFromNameList(sequence), NoLock, false);
	}
	if (!OidIsValid(column->sequence))
		FEED_STATE_ERROR(errmsg("column \"%s\" of relation \"%s\" does not own exactly one sequence",
								arguments[0], get_rel_name(column->followed)),
						 errhint("Use ALTER SEQUENCE ... OWNED BY, or name a sequence, with its schema, in fast_feed.enable()."));
	followed = table_open(column->followed, AccessShareLock);
	column->unique = has_unique_index(followed, attnum);
	column->owner = followed->rd_rel->relowner;
	table_close(followed, AccessShareLock);
}

/*
 * The column of one of our triggers, on an open relation.  Raises an error if
 * there is none, or if it has no sequence.
 */
static const FeedColumn *
column_of(Relation relation, const Trigger *trigger)
{
	bool		found;
	FeedColumn *column = hash_search(columns, &trigger->tgoid, HASH_ENTER,
									 &found);

	if (!found || !column->valid)
	{
		FeedColumn	fresh = {.trigger = trigger->tgoid,
		.relation = RelationGetRelid(relation)};
		uint64		before = changes;

		column->valid = false;
		find_out(&fresh, relation, trigger);
		fresh.valid = changes == before;
		*column = fresh;
	}
	return column;
}

/*
 * Raise an error unless a column's sequence may be used.  One that belongs to
 * the column may be, whoever inserts or reads, as an identity draws from it.
 * From another one the table's owner must be allowed to draw, or anyone could
 * hold it back, or learn its numbers, by a table of his own.
 */
static void
require_privilege(const FeedColumn *column)
{
	if (!column->owned && pg_class_aclcheck(column->sequence, column->owner,
											ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
		aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE,
					   get_rel_name(column->sequence));
}

/*
 * The column of a call by the trigger manager.  Raises an error unless the
 * trigger is one BEFORE INSERT, or for rows perhaps UPDATE.
 */
const FeedColumn *
feed_column_of_call(FunctionCallInfo fcinfo, bool for_each_row)
{
	TriggerData *data = (TriggerData *) fcinfo->context;
	const FeedColumn *column;

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
	column = column_of(data->tg_relation, data->tg_trigger);
	require_privilege(column);
	return column;
}

/*
 * Does a trigger see to every row, whoever writes it?  In the schema of these
 * functions, those that are fired so are guard() and stamp().
 */
static bool
covers(const Trigger *trigger, Oid namespace)
{
	return trigger->tgenabled == TRIGGER_FIRES_ALWAYS &&
		trigger->tgqual == NULL && trigger->tgnattr == 0 &&
		TRIGGER_FOR_ROW(trigger->tgtype) &&
		TRIGGER_FOR_BEFORE(trigger->tgtype) &&
		TRIGGER_FOR_INSERT(trigger->tgtype) &&
		TRIGGER_FOR_UPDATE(trigger->tgtype) &&
		get_func_namespace(trigger->tgfoid) == namespace;
}

/*
 * The sequence by which a table is followed, by the column of this name or,
 * with NULL, by the only one.  Raises an error unless a trigger covers every
 * row, as readers could miss some, and the role may select the column.
 */
Oid
feed_column_followed(Oid table, const char *name, Oid namespace)
{
	Relation	relation = table_open(table, AccessShareLock);
	const TriggerDesc *triggers = relation->trigdesc;
	const FeedColumn *found = NULL;
	AclResult	result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);
	Oid			sequence;

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		const FeedColumn *column;

		if (!covers(trigger, namespace) ||
			(name != NULL && strcmp(name, trigger->tgargs[0]) != 0))
			continue;
		column = column_of(relation, trigger);
		if (found != NULL && found->sequence != column->sequence)
			ereport(ERROR,
					(errcode(ERRCODE_AMBIGUOUS_COLUMN),
					 errmsg("relation \"%s\" is followed by more than one column",
							RelationGetRelationName(relation)),
					 errhint("Name the column as the second argument.")));
		found = column;
	}
	if (result != ACLCHECK_OK && found != NULL)
		result = pg_attribute_aclcheck(table, found->attnum, GetUserId(),
									   ACL_SELECT);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(relation->rd_rel->relkind),
					   RelationGetRelationName(relation));
	if (found == NULL)
		FEED_STATE_ERROR(errmsg("relation \"%s\" is not followed",
								RelationGetRelationName(relation)),
						 errhint("Its owner uses fast_feed.enable(), again if triggers have been disabled, or enabled without ALWAYS."));
	require_privilege(found);
	sequence = found->sequence;

	/* They have none of its triggers; partitions do. */
	if (relation->rd_rel->relhassubclass &&
		relation->rd_rel->relkind != RELKIND_PARTITIONED_TABLE &&
		find_inheritance_children(table, NoLock) != NIL)
		FEED_STATE_ERROR(errmsg("relation \"%s\" cannot be followed while others inherit from it",
								RelationGetRelationName(relation)),
						 errdetail("Its readers would miss rows of these."));
	table_close(relation, NoLock);
	return sequence;
}
