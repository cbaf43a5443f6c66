/*
 * write.c
 *	  The SQL-callable functions for writers: the triggers that publish, guard
 *	  and stamp, and what takes the place of nextval().
 */
#include "postgres.h"

#include "catalog/pg_authid.h"
#include "commands/sequence.h"
#include "compat.h"
#include "feed.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"

PG_FUNCTION_INFO_V1(feed_follow);
PG_FUNCTION_INFO_V1(feed_guard);
PG_FUNCTION_INFO_V1(feed_stamp);
PG_FUNCTION_INFO_V1(feed_next);

/*
 * Remember that the file of a sequence was looked at when feed_column_changes had
 * this value and, unless it is InvalidOid, that this role may draw from it.
 */
static FeedPublished *
looked_at(FeedPublished *entry, uint64 changes, Oid drawer)
{
	entry->changes = changes;
	entry->drawer = drawer;
	return entry;
}

/*
 * Publish the sequence of a trigger's column.  Once that is done, and while
 * nothing has changed about any relation, nothing need be opened.  While the
 * sequence's lock is waited for, the column may be given another one.
 */
static FeedPublished *
publish_of_call(FunctionCallInfo fcinfo, bool for_each_row,
				const FeedColumn **column)
{
	Oid			sequence = InvalidOid;
	uint64		changes;
	FeedOpen	open;
	FeedPublished *entry;

	for (;;)
	{
		changes = feed_column_changes;
		*column = feed_column_of_call(fcinfo, for_each_row);
		if ((*column)->sequence == sequence)
			break;
		if (OidIsValid(sequence))
			feed_sequence_close(&open);
		sequence = (*column)->sequence;
		feed_column_require_privilege(*column);
		entry = feed_in_flight_find(sequence, changes);
		if (entry != NULL)
			return entry;
		if (feed_in_flight_open(&open, sequence) != NULL)
			break;
		feed_sequence_open_to_draw(&open, sequence);
	}
	entry = feed_in_flight_publish(&open);
	feed_sequence_close(&open);
	return looked_at(entry, changes, InvalidOid);
}

/*
 * Publish the sequence of a column, before the statement's defaults draw from
 * it.
 */
Datum
feed_follow(PG_FUNCTION_ARGS)
{
	const FeedColumn *column;

	(void) publish_of_call(fcinfo, false, &column);
	return PointerGetDatum(NULL);
}

/*
 * Draw a number from a sequence that has been published.  One that is not above
 * what was published is from before: the sequence has gone back since.
 */
static int64
draw(const FeedPublished *entry)
{
	int64		number = nextval_internal(entry->relid, false);

	FEED_TEST_POINT("drawn");
	if (number <= entry->v0)
		FEED_STATE_ERROR(errmsg("sequence \"%s\" has gone back during this transaction",
								get_rel_name(entry->relid)),
						 errhint("Retry the transaction."));
	return number;
}

/*
 * Draw a number from a sequence, as nextval() does, so that readers know of it.
 * Raises an error unless the caller may, before anything is published.  What was
 * found holds, in this transaction and for this role, until a relation changes.
 */
Datum
feed_next(PG_FUNCTION_ARGS)
{
	Oid			relid = PG_GETARG_OID(0);
	uint64		changes = feed_column_changes;
	FeedPublished *entry = feed_in_flight_find(relid, changes);
	FeedOpen	open;

	if (entry == NULL || entry->drawer != GetUserId())
	{
		if (feed_in_flight_open(&open, relid) == NULL)
			feed_sequence_open_to_draw(&open, relid);
		if (pg_class_aclcheck(relid, GetUserId(), ACL_USAGE | ACL_UPDATE) != ACLCHECK_OK)
			aclcheck_error(ACLCHECK_NO_PRIV, OBJECT_SEQUENCE,
						   RelationGetRelationName(open.relation));
		entry = looked_at(feed_in_flight_publish(&open), changes, GetUserId());
		feed_sequence_close(&open);
	}
	PG_RETURN_INT64(draw(entry));
}

/* What this transaction has published of a sequence, as it is now, or NULL. */
static FeedPublished *
published_before(Oid relid)
{
	uint64		changes = feed_column_changes;
	FeedPublished *entry = feed_in_flight_find(relid, changes);
	FeedOpen	open;

	if (entry != NULL || feed_in_flight_open(&open, relid) == NULL)
		return entry;
	entry = feed_in_flight_publish(&open);	/* repeats the error, if that failed */
	feed_sequence_close(&open);
	return looked_at(entry, changes, InvalidOid);
}

/* The new row of an INSERT or UPDATE. */
static HeapTuple
new_row(const TriggerData *trigger)
{
	return TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
}

/*
 * Set a column of a new or changed row to a new number.  A BEFORE trigger of an
 * UPDATE is fired when the row is locked, so that the numbers of a row ascend in
 * the order of its changes.
 */
Datum
feed_stamp(PG_FUNCTION_ARGS)
{
	const FeedColumn *column;
	FeedPublished *entry = publish_of_call(fcinfo, true, &column);
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	int			attnum = column->attnum;
	Oid			type = column->type;
	Datum		number;
	bool		isnull = false;

	entry->passed = draw(entry);
	number = Int64GetDatum(entry->passed);
	if (type == INT4OID)
		number = DirectFunctionCall1(int84, number);
	return PointerGetDatum(
		heap_modify_tuple_by_cols(new_row(trigger),
								  RelationGetDescr(trigger->tg_relation),
								  1, &attnum, &number, &isnull));
}

/*
 * The number that this session has drawn last from a sequence; 0 if none.  A
 * writer may have no privilege on it, and it is not told.
 */
static int64
drawn_last(Oid sequence)
{
	MemoryContext caller = CurrentMemoryContext;
	volatile int64 number = 0;
	Oid			role;
	int			context;

	GetUserIdAndSecContext(&role, &context);
	SetUserIdAndSecContext(BOOTSTRAP_SUPERUSERID,
						   context | SECURITY_LOCAL_USERID_CHANGE);
	PG_TRY();
	{
		number = DatumGetInt64(DirectFunctionCall1(currval_oid,
												   ObjectIdGetDatum(sequence)));
	}
	PG_CATCH();
	{
		/* If there is none yet, the caller raises another error instead. */
		if (geterrcode() != ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE)
			PG_RE_THROW();
		MemoryContextSwitchTo(caller);
		FlushErrorState();
	}
	PG_END_TRY();
	SetUserIdAndSecContext(role, context);
	return number;
}

/*
 * Why readers could miss a row with this number, or read it twice; NULL if they
 * cannot.  A number counts if it was drawn since this transaction published the
 * sequence.  Without a unique index it must also be another one than that of any
 * row: the one that this session drew last, and above those before.
 */
static const char *
why_not(const FeedColumn *column, FeedPublished *entry, int64 number)
{
	if (entry == NULL)
		return column->relation != column->followed ?
			"The row was not inserted through the table that is followed, or an UPDATE moves it to another partition." :
			"No fast_feed trigger for INSERT was fired, nor fast_feed.next() called, before the number was drawn.";
	if (number <= entry->v0)
		return "The number was not drawn since the transaction's first INSERT or fast_feed.next().";
	if (number > feed_sequence_last(&entry->location, entry->relid))
		return psprintf("Sequence \"%s\" has not given this number.",
						get_rel_name(entry->relid));
	if (column->unique)
		return NULL;
	if (number <= entry->passed)
		return "Without a unique index on the column and a sequence of its own, numbers must ascend within a transaction.";
	if (number != drawn_last(column->sequence))
		return "Without a unique index on the column and a sequence of its own, the number must be the one that the session has drawn last.";
	return NULL;
}

/*
 * Raise the error for a row that readers could miss; if its transaction has not
 * published, perhaps because a partition was named.
 */
static void
refuse(const FeedColumn *column, Relation relation, bool is_update,
	   bool is_published, const char *why)
{
	const char *name = get_attname(column->relation, column->attnum, false);

	ereport(ERROR,
			(errcode(ERRCODE_CHECK_VIOLATION),
			 errmsg("new row for relation \"%s\" could be missed by readers",
					RelationGetRelationName(relation)),
			 errdetail_internal("%s", why),
			 is_update ?
			 errhint("Leave column \"%s\" as it is, or let fast_feed.enable() number updates.", name) :
			 column->relation != column->followed && !is_published ?
			 errhint("Insert through \"%s\", and leave column \"%s\" to its default.",
					 get_rel_name(column->followed), name) :
			 is_published && !column->unique ?
			 errhint("Leave column \"%s\" to its default, or insert each row as soon as fast_feed.next() has drawn its number.", name) :
			 errhint("Leave column \"%s\" to its default, or draw its numbers with fast_feed.next().", name),
			 errtablecol(relation, column->attnum)));
}

/* A column's number in a row, as an int8. */
static int64
number_of(HeapTuple row, const FeedColumn *column, TupleDesc desc, bool *isnull)
{
	Datum		value = heap_getattr(row, column->attnum, desc, isnull);

	if (*isnull)
		return 0;
	return column->type == INT4OID ? DatumGetInt32(value) : DatumGetInt64(value);
}

/*
 * Raise an error if readers could miss a new row, or if an UPDATE sets the
 * column to what they could miss.
 */
Datum
feed_guard(PG_FUNCTION_ARGS)
{
	const FeedColumn *column = feed_column_of_call(fcinfo, true);
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Relation	relation = trigger->tg_relation;
	TupleDesc	desc = RelationGetDescr(relation);
	HeapTuple	row = new_row(trigger);
	bool		isnull;
	int64		number = number_of(row, column, desc, &isnull);
	FeedPublished *entry = NULL;
	const char *why = "The column is null.";

	if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
	{
		bool		was_null;

		if (number_of(trigger->tg_trigtuple, column, desc, &was_null) == number &&
			was_null == isnull)
			return PointerGetDatum(row);
	}
	feed_column_require_privilege(column);
	if (!isnull)
	{
		entry = published_before(column->sequence);
		FEED_TEST_POINT("guarding");
		why = why_not(column, entry, number);
		if (why == NULL)
			entry->passed = Max(entry->passed, number);
	}
	if (why != NULL)
		refuse(column, relation, TRIGGER_FIRED_BY_UPDATE(trigger->tg_event),
			   isnull || entry != NULL, why);
	return PointerGetDatum(row);
}
