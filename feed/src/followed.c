/*
 * followed.c
 *	  Is a table followed, so that a reader misses none of its rows?
 */
#include "postgres.h"

#include "access/genam.h"
#include "access/table.h"
#include "access/transam.h"
#include "access/xact.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_trigger.h"
#include "compat.h"
#include "feed.h"
#include "utils/fmgroids.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * The column of a trigger that fires for every row of a table, whoever writes it:
 * the one of this name or, with NULL, any; NULL if there is none.  In the schema
 * of these functions, those that are fired so are guard() and stamp().  Raises
 * an error if there are several of different sequences, or if another trigger,
 * in the order of their names, comes later and could change the column.
 */
static FeedColumn *
find_covered(Relation relation, const char *name, Oid namespace)
{
	FeedColumn *found = NULL;
	const char *later = NULL;

	/* A copy, as an invalidation meanwhile would free the relation's. */
	const TriggerDesc *triggers = CopyTriggerDesc(relation->trigdesc);

	for (int i = 0; triggers != NULL && i < triggers->numtriggers; i++)
	{
		const Trigger *trigger = &triggers->triggers[i];
		bool		is_ours = get_func_namespace(trigger->tgfoid) == namespace;
		FeedColumn *column;

		if (trigger->tgenabled == TRIGGER_DISABLED ||
			!TRIGGER_FOR_ROW(trigger->tgtype) ||
			!TRIGGER_FOR_BEFORE(trigger->tgtype) ||
			!(TRIGGER_FOR_INSERT(trigger->tgtype) ||
			  TRIGGER_FOR_UPDATE(trigger->tgtype)))
			continue;
		if (!is_ours || trigger->tgenabled != TRIGGER_FIRES_ALWAYS ||
			trigger->tgqual != NULL || trigger->tgnattr != 0 ||
			!TRIGGER_FOR_INSERT(trigger->tgtype) ||
			!TRIGGER_FOR_UPDATE(trigger->tgtype))
		{
			/* A guard changes nothing. */
			if (!is_ours || strcmp(get_func_name(trigger->tgfoid), "guard") != 0)
				later = trigger->tgname;
			continue;
		}
		if (name != NULL && (trigger->tgnargs == 0 ||
							 strcmp(name, trigger->tgargs[0]) != 0))
			continue;			/* it changes another column, if any */
		column = feed_column_of(relation, trigger);
		if (found != NULL && found->sequence != column->sequence)
			ereport(ERROR,
					(errcode(ERRCODE_AMBIGUOUS_COLUMN),
					 errmsg("relation \"%s\" is followed by more than one column",
							RelationGetRelationName(relation)),
					 errhint("Name the column as the second argument.")));
		if (found == NULL || found->attnum == column->attnum)
			later = NULL;
		found = column;
	}
	if (found != NULL && later != NULL)
		FEED_STATE_ERROR(errmsg("relation \"%s\" is not followed",
								RelationGetRelationName(relation)),
						 errdetail("Its trigger \"%s\" fires after that of fast_feed, and could change the number.", later),
						 errhint("Rename it, so that it fires before."));
	return found;
}

/*
 * Does a snapshot know of the transaction that has created a column's trigger?
 * The answer is not kept: a cursor, or an imported snapshot, can be older than
 * one that has asked before.
 */
static bool
is_known(const FeedColumn *column, Snapshot snapshot)
{
	TransactionId xid = (TransactionId) column->created;

	if (column->created == 0 || TransactionIdPrecedes(xid, snapshot->xmin))
		return true;

	if (TransactionIdIsCurrentTransactionId(xid) ?
		column->command < snapshot->curcid : !XidInMVCCSnapshot(xid, snapshot))
		return true;

	/* Its ID comes after the snapshot's, or is so old that it only seems to. */
	return U64FromFullTransactionId(ReadNextFullTransactionId()) -
		column->created > PG_INT32_MAX;
}

/* Has the transaction that created a column's trigger made its table a partition? */
static bool
came_with_trigger(const FeedColumn *column)
{
	Relation	inherits = table_open(InheritsRelationId, AccessShareLock);
	ScanKeyData key;
	SysScanDesc scan;
	HeapTuple	tuple;
	bool		result;

	ScanKeyInit(&key, Anum_pg_inherits_inhrelid, BTEqualStrategyNumber, F_OIDEQ,
				ObjectIdGetDatum(column->relation));
	scan = systable_beginscan(inherits, InheritsRelidSeqnoIndexId, true, NULL, 1,
							  &key);
	tuple = systable_getnext(scan);
	result = HeapTupleIsValid(tuple) &&
		HeapTupleHeaderGetXmin(tuple->t_data) == (TransactionId) column->created;
	systable_endscan(scan);
	table_close(inherits, AccessShareLock);
	return result;
}

/*
 * Raise an error unless the trigger of a column covered every row when the
 * snapshot was taken: of transactions that wrote before, nobody knows.  A
 * partition that has got it as it became one was not written to before.
 */
static void
require_known(const FeedColumn *column, Snapshot snapshot)
{
	if (!is_known(column, snapshot) &&
		(column->relation == column->followed || !came_with_trigger(column)))
		FEED_STATE_ERROR(errmsg("relation \"%s\" was not yet followed when this snapshot was taken",
								get_rel_name(column->relation)),
						 errhint("Begin another transaction."));
}

/*
 * Raise an error unless each partition has the trigger as well, and its rows
 * are of this server; or if there are children, which have none.
 */
static void
look_at_tree(Relation relation, FeedColumn *column, Oid namespace)
{
	const char *name;
	uint64		before = feed_column_changes;
	MemoryContext caller;
	ListCell   *cell;

	list_free(column->partitions);
	column->partitions = NIL;
	column->latest = 0;
	name = get_attname(column->relation, column->attnum, false);
	foreach(cell, find_all_inheritors(column->relation, AccessShareLock, NULL))
	{
		Relation	child = table_open(lfirst_oid(cell), NoLock);
		bool		is_local = child->rd_rel->relispartition &&
			child->rd_rel->relkind != RELKIND_FOREIGN_TABLE;
		FeedColumn *of_child = is_local ?
			find_covered(child, name, namespace) : NULL;

		if (lfirst_oid(cell) != column->relation &&
			(of_child == NULL || of_child->sequence != column->sequence))
			FEED_STATE_ERROR(errmsg("relation \"%s\" is not followed",
									RelationGetRelationName(relation)),
							 errdetail(!child->rd_rel->relispartition ?
									   "Readers would miss rows of \"%s\", which inherits from it." :
									   child->rd_rel->relkind == RELKIND_FOREIGN_TABLE ?
									   "Readers would miss rows of \"%s\", which is a foreign table." :
									   "Readers would miss rows of partition \"%s\", whose trigger is not enabled ALWAYS, or is of another sequence.",
									   RelationGetRelationName(child)),
							 is_local ?
							 errhint("Call fast_feed.enable() again.") : 0);
		table_close(child, NoLock);
		if (of_child == NULL)
			continue;			/* the table itself, as find_all_inheritors() has it */
		caller = MemoryContextSwitchTo(TopMemoryContext);
		column->partitions = lappend(column->partitions, of_child);
		MemoryContextSwitchTo(caller);
		column->latest = Max(column->latest, of_child->created);
	}
	if (feed_column_changes == before)
		column->tree_changes = feed_column_own_changes;
}

/*
 * The sequence by which a table is followed, by the column of this name or,
 * with NULL, by the only one.  Raises an error unless a trigger covers every
 * row, and did so when the snapshot was taken, as readers could miss some; and
 * unless the role may select the column.
 */
Oid
feed_followed(Oid table, const char *name, Oid namespace,
			  Snapshot snapshot)
{
	Relation	relation;
	FeedColumn *found = NULL;
	ListCell   *cell;
	AclResult	result = pg_class_aclcheck(table, GetUserId(), ACL_SELECT);

	/* A lock that is already held may process no invalidations, so do it here. */
	AcceptInvalidationMessages();
	relation = table_open(table, AccessShareLock);

	/* Reveal nothing to a role that may select nothing. */
	if (result == ACLCHECK_OK ||
		pg_attribute_aclcheck_all(table, GetUserId(), ACL_SELECT,
								  ACLMASK_ANY) == ACLCHECK_OK)
		found = find_covered(relation, name, namespace);
	if (result != ACLCHECK_OK && found != NULL)
		result = pg_attribute_aclcheck(table, found->attnum, GetUserId(),
									   ACL_SELECT);
	if (result != ACLCHECK_OK)
		aclcheck_error(result, get_relkind_objtype(relation->rd_rel->relkind),
					   RelationGetRelationName(relation));
	if (found == NULL)
		FEED_STATE_ERROR(name == NULL ?
						 errmsg("relation \"%s\" is not followed",
								RelationGetRelationName(relation)) :
						 errmsg("relation \"%s\" is not followed by column \"%s\"",
								RelationGetRelationName(relation), name),
						 relation->rd_rel->relkind == RELKIND_VIEW ?
						 errhint("Name the table from which the view selects.") :
						 errhint("Its owner has to call fast_feed.enable(), again if triggers were disabled since."));
	feed_column_require_privilege(found);
	if (relation->rd_rel->relhassubclass &&
		found->tree_changes != feed_column_own_changes)
		look_at_tree(relation, found, namespace);
	require_known(found, snapshot);
	if (found->latest != 0 &&
		!TransactionIdPrecedes((TransactionId) found->latest, snapshot->xmin))
		foreach(cell, found->partitions)
			require_known(lfirst(cell), snapshot);
	table_close(relation, NoLock);
	return found->sequence;
}
