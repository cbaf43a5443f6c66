/*
 * stamp.c
 *	  The trigger that gives a row a new UUID with each change.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "commands/trigger.h"
#include "executor/spi.h"
#include "functions/arguments.h"
#include "ordering/ordering.h"
#include "utils/rel.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_stamp);

/*
 * Raise an error unless this is a BEFORE ROW trigger for INSERT or UPDATE, with
 * one argument.
 */
static void
require_trigger_protocol(FunctionCallInfo fcinfo)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;

	if (!CALLED_AS_TRIGGER(fcinfo))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" was not called by trigger manager",
						"uuidv7_fast_stamp")));
	if (!TRIGGER_FIRED_BEFORE(trigger->tg_event) ||
		!TRIGGER_FIRED_FOR_ROW(trigger->tg_event) ||
		TRIGGER_FIRED_BY_DELETE(trigger->tg_event))
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("function \"%s\" must be fired BEFORE ROW for INSERT or UPDATE",
						"uuidv7_fast_stamp")));
	if (trigger->tg_trigger->tgnargs != 1)
		ereport(ERROR,
				(errcode(ERRCODE_E_R_I_E_TRIGGER_PROTOCOL_VIOLATED),
				 errmsg("trigger \"%s\" must have one argument, the name of a column",
						trigger->tg_trigger->tgname)));
}

/*
 * The number of the column to set.  Its type must be uuid itself: constraints
 * of a domain are not checked after triggers.
 */
static int
stamped_column(Relation relation, const char *name)
{
	int			attnum = SPI_fnumber(RelationGetDescr(relation), name);
	Form_pg_attribute attribute;

	if (attnum <= 0)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_COLUMN),
				 errmsg("column \"%s\" of relation \"%s\" does not exist",
						name, RelationGetRelationName(relation))));
	attribute = TupleDescAttr(RelationGetDescr(relation), attnum - 1);
	if (attribute->atttypid != UUIDOID)
		ereport(ERROR,
				(errcode(ERRCODE_DATATYPE_MISMATCH),
				 errmsg("column \"%s\" of relation \"%s\" is not of type uuid",
						name, RelationGetRelationName(relation))));
	if (attribute->attgenerated)
		ereport(ERROR,
				(errcode(ERRCODE_GENERATED_ALWAYS),
				 errmsg("column \"%s\" of relation \"%s\" is a generated column",
						name, RelationGetRelationName(relation))));
	return attnum;
}

/*
 * uuidv7_fast_stamp() returns trigger
 *
 * Set a column of a new or changed row to a new UUID, as uuidv7_fast()
 * generates it.  A BEFORE trigger of an UPDATE is fired when the row is locked,
 * so that the UUIDs of a row ascend in the order of its changes.
 */
Datum
uuidv7_fast_stamp(PG_FUNCTION_ARGS)
{
	TriggerData *trigger = (TriggerData *) fcinfo->context;
	HeapTuple	row;
	TupleDesc	desc;
	int			column;
	Datum		uuid;
	bool		isnull = false;

	require_trigger_protocol(fcinfo);
	row = TRIGGER_FIRED_BY_UPDATE(trigger->tg_event) ?
		trigger->tg_newtuple : trigger->tg_trigtuple;
	desc = RelationGetDescr(trigger->tg_relation);
	column = stamped_column(trigger->tg_relation,
							trigger->tg_trigger->tgargs[0]);

	/* A reader below the watermark would miss the change without an error. */
	if (fuuid_ordering_scope == FUUID_ORDERING_SESSION)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("trigger \"%s\" requires instance or durable order",
						trigger->tg_trigger->tgname),
				 errhint("Set \"fast_uuid.ordering\" to \"instance\" or \"durable\".")));

	uuid = uuidv7_fast(fcinfo);
	row = heap_modify_tuple_by_cols(row, desc, 1, &column, &uuid, &isnull);
	return PointerGetDatum(row);
}
