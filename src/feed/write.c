/*
 * write.c
 *	  The SQL-callable functions for writers: they generate feed ids and
 *	  positions; the triggers stamp rows, and guard them.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "clock.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "feed/feed.h"
#include "functions/arguments.h"
#include "utils/datum.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(uuidv7_feed_id);
PG_FUNCTION_INFO_V1(uuidv7_feed_id_from);
PG_FUNCTION_INFO_V1(uuidv7_feed_position);
PG_FUNCTION_INFO_V1(uuidv7_feed_stamp);
PG_FUNCTION_INFO_V1(uuidv7_feed_guard);

/* A feed id with random bits from this source. */
static pg_attribute_always_inline Datum
next_id(int source)
{
	uint64		ns;
	uint64		random;

	fuuid_require_session("generate feed ids");
	ns = fuuid_clock_read();
	random = fuuid_entropy_draw(source);
	return fuuid_uuid_of_ns(fuuid_feed_reserve(ns), random);
}

/*
 * Generate a UUID greater than every feed id and position of this database,
 * with random bits from the source in fast_uuid.source.
 */
Datum
uuidv7_feed_id(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return next_id(fuuid_source);
}

/* The same from another source; NULL stands for that in fast_uuid.source. */
Datum
uuidv7_feed_id_from(PG_FUNCTION_ARGS)
{
	return next_id(FUUID_GETARG_SOURCE(0));
}

/* Generate the nanosecond of a feed id alone, without random bits. */
Datum
uuidv7_feed_position(PG_FUNCTION_ARGS pg_attribute_unused())
{
	fuuid_require_session("generate positions");
	return fuuid_bigint_of_ns(fuuid_feed_reserve(fuuid_clock_read()));
}

/*
 * The column that a trigger's argument names.  Raises an error unless this is
 * a BEFORE ROW trigger for INSERT or UPDATE with one argument, and the column
 * can have ids.  No domain: its constraints are not checked after triggers.
 */
static Form_pg_attribute
trigger_column(FunctionCallInfo fcinfo, const char *function)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Relation	relation;
	Form_pg_attribute column;
	const char *name;
	int			attnum;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						function)));
	if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be fired BEFORE ROW for INSERT or UPDATE",
						function)));
	if (trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must have one argument, the name of a column",
						trigger->tg_trigger->tgname)));

	relation = trigger->tg_relation;
	name = trigger->tg_trigger->tgargs[0];
	attnum = SPI_fnumber(RelationGetDescr(relation), name);
	if (attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(relation))));
	column = TupleDescAttr(RelationGetDescr(relation), attnum - 1);
	if (column->atttypid != UUIDOID && column->atttypid != INT8OID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" is not of type uuid or bigint",
						name, RelationGetRelationName(relation))));
	if (column->attgenerated)
		ereport(ERROR,
				(errcode(ERRCODE_GENERATED_ALWAYS),
				 errmsg("column \"%s\" of relation \"%s\" is a generated column",
						name, RelationGetRelationName(relation))));
	return column;
}

/* The new row of an INSERT or UPDATE. */
static HeapTuple
new_row(const TriggerData *trigger)
{
	return TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
}

/*
 * Set a column of a new or changed row to a new feed id or position.  A BEFORE
 * trigger of an UPDATE is fired when the row is locked, so that the ids of a
 * row ascend in the order of its changes.
 */
Datum
uuidv7_feed_stamp(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Form_pg_attribute column = trigger_column(fcinfo, "uuidv7_feed_stamp");
	int			attnum = column->attnum;
	bool		isnull = false;
	Datum		id = column->atttypid == INT8OID ?
		uuidv7_feed_position(fcinfo) : uuidv7_feed_id(fcinfo);

	return PointerGetDatum(
		heap_modify_tuple_by_cols(new_row(trigger),
								  RelationGetDescr(trigger->tg_relation),
								  1, &attnum, &id, &isnull));
}

/*
 * Is an id covered by this transaction?  It is from the first nanosecond on
 * that the transaction was given: what it has published holds back every
 * watermark that is computed after that was reserved.  From what was published
 * to there it is not, as a watermark may have been handed out in between, nor
 * in what was reserved and not given: an earlier run of the server may have
 * used that.  Later calls will generate what is beyond the latest.
 */
static bool
is_covered(Datum id, Oid type)
{
	unsigned char first[UUID_LEN];
	unsigned char last[UUID_LEN];
	const unsigned char *uuid;

	if (type == INT8OID)
		return (uint64) DatumGetInt64(id) >= fuuid_feed_first_ns &&
			(uint64) DatumGetInt64(id) <= fuuid_feed_latest_ns;
	uuid = DatumGetUUIDP(id)->data;
	fuuid_uuid_encode_ns(first, fuuid_feed_first_ns, 0);
	fuuid_uuid_encode_ns(last, fuuid_feed_latest_ns, PG_UINT64_MAX);
	return memcmp(uuid, first, UUID_LEN) >= 0 &&
		memcmp(uuid, last, UUID_LEN) <= 0;
}

/*
 * Raise an error if a column of a new row has an id that readers below the
 * watermark could miss, or if an UPDATE sets it to one.
 */
Datum
uuidv7_feed_guard(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	Form_pg_attribute column = trigger_column(fcinfo, "uuidv7_feed_guard");
	TupleDesc	desc = RelationGetDescr(trigger->tg_relation);
	HeapTuple	row = new_row(trigger);
	bool		isnull;
	Datum		id = SPI_getbinval(row, desc, column->attnum, &isnull);

	if (TRIGGER_FIRED_BY_UPDATE(trigger->tg_event))
	{
		bool		old_isnull;
		Datum		old = SPI_getbinval(trigger->tg_trigtuple, desc,
										column->attnum, &old_isnull);

		if (isnull == old_isnull &&
			(isnull ||
			 datumIsEqual(old, id, column->attbyval, column->attlen)))
			return PointerGetDatum(row);
	}
	if (isnull || !is_covered(id, column->atttypid))
		ereport(ERROR,
				(errcode(ERRCODE_CHECK_VIOLATION),
				 errmsg("readers could miss the new row of relation \"%s\"",
						RelationGetRelationName(trigger->tg_relation)),
				 errdetail("Column \"%s\" does not have an id that this transaction has generated for a feed.",
						   trigger->tg_trigger->tgargs[0]),
				 errhint("Make %s the default of the column, and leave the column to it.",
						 column->atttypid == INT8OID ?
						 "uuidv7_feed_position()" : "uuidv7_feed_id()"),
				 errtablecol(trigger->tg_relation, column->attnum)));
	return PointerGetDatum(row);
}
