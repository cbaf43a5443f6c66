/*
 * watermark.c
 *	  The bound below which every UUID belongs to a transaction that has ended.
 *	  doc/ordering.md says why it is one.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "catalog/pg_class.h"
#include "clock.h"
#include "compat.h"
#include "fmgr.h"
#include "in_flight.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "nodes/pathnodes.h"
#include "nodes/supportnodes.h"
#include "ordering.h"
#include "ordering_durable.h"
#include "ordering_instance.h"
#include "shared_ordering.h"
#include "test_point.h"
#include "uuid_layout.h"
#include "watermark.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_watermark);
PG_FUNCTION_INFO_V1(uuidv7_fast_watermark_support);

/*
 * The smallest UUID of a nanosecond; palloc'd.
 */
pg_uuid_t *
fuuid_watermark_uuid(uint64 ns)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	fuuid_uuid_encode(uuid->data, ns / FUUID_NS_PER_S, ns % FUUID_NS_PER_S, 0);
	return uuid;
}

/*
 * The watermark: a nanosecond below which no transaction can generate any more, and
 * all that have generated have ended.  It goes with the clock while no
 * transaction holds it back.
 *
 * The latest value comes before the transactions: of any that is greater the
 * transaction need not be found.  A watermark below the one before, since a
 * transaction has published what it read earlier, would be right but go back.
 */
static uint64
advance_watermark(void)
{
	InFlightHolder holder;
	uint64		epoch;
	uint64		last_ns;
	uint64		watermark_ns;

	for (;;)
	{
		CHECK_FOR_INTERRUPTS();
		epoch = fuuid_instance_epoch();
		if (!fuuid_instance_raise_to_clock(epoch, &last_ns) ||
			!fuuid_durable_cover_if_used(last_ns, epoch, fuuid_ordering_scope == FUUID_ORDERING_DURABLE))
			continue;
		FUUID_TEST_POINT("watermark");
		watermark_ns = fuuid_in_flight_first(last_ns + 1, &holder);
		if (fuuid_instance_raise_watermark(watermark_ns, epoch, &watermark_ns))
			return watermark_ns;
	}
}

/*
 * uuidv7_fast_watermark() returns uuid
 *
 * Smaller than every UUID, of the order of the instance, that belongs to a
 * transaction which has not ended, or that is generated after the call.
 */
Datum
uuidv7_fast_watermark(PG_FUNCTION_ARGS pg_attribute_unused())
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot execute %s during recovery", "uuidv7_fast_watermark()"),
				 errhint("Call it on the primary.")));
	if (IsolationUsesXactSnapshot())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("uuidv7_fast_watermark() requires isolation level READ COMMITTED"),
				 errdetail("This transaction's snapshot is older than the watermark would be, and might not show all rows below it."),
				 errhint("Call it in a transaction that begins with BEGIN ISOLATION LEVEL READ COMMITTED.")));
	fuuid_shared_require();

	return UUIDPGetDatum(fuuid_watermark_uuid(advance_watermark()));
}

/*
 * What the watermark is at least, 0 where nothing says so yet, and who would hold
 * it back now.  False where there is none: no shared memory, or a standby.
 */
bool
fuuid_watermark_stats(uint64 *watermark_ns, InFlightHolder *holder)
{
	struct timespec now;
	uint64		last_ns;
	uint64		first_ns;
	uint64		returned_ns;
	uint64		epoch;

	if (RecoveryInProgress() || !fuuid_shared_attach())
		return false;
	last_ns = pg_atomic_read_u64(&fuuid_shared->last_ns);
	fuuid_clock_read(&now);
	first_ns = fuuid_in_flight_first(Max(last_ns, fuuid_ns_of_time(&now)) + 1, holder);

	/* The latest value was not raised to the clock: further ones may be behind it. */
	returned_ns = pg_atomic_read_u64(&fuuid_shared->watermark_ns);
	epoch = pg_atomic_read_u64(&fuuid_shared->epoch);
	*watermark_ns = Max(last_ns > epoch ? Min(first_ns, last_ns + 1) : 0, returned_ns > epoch ? returned_ns : 0);
	return true;
}

/*
 * Is it a table that its query reads?  inFromCl does not say it alone: a table that
 * is written to through a view, the one of the number "written_to", has it as well,
 * and with it its children and the views between.
 */
static bool
is_read(const RangeTblEntry *entry, int number, int written_to)
{
	return entry->rtekind == RTE_RELATION && entry->inFromCl && number != written_to &&
		entry->relkind != RELKIND_VIEW && FUUID_RTE_IS_PARENT(entry);
}

/*
 * Is there a table that is read in a query, or in one in it?  OLD and NEW of a rule do
 * not count.
 */
static bool
has_table(Node *node, void *context)
{
	Query	   *query = (Query *) node;
	ListCell   *cell;

	if (node == NULL)
		return false;
	if (!IsA(node, Query))
		return expression_tree_walker(node, has_table, context);
	foreach(cell, query->rtable)
		if (is_read(lfirst(cell), foreach_current_index(cell) + 1, query->resultRelation))
			return true;
	return query_tree_walker(query, has_table, context, 0);
}

/*
 * The same of the query that is planned, those that it is a part of, and those in
 * the statement that are planned already.  Not of an expression by itself, such as
 * a column's default.
 */
static bool
reads_table(const PlannerInfo *root)
{
	ListCell   *cell;

	if (root == NULL)
		return false;
	foreach(cell, root->glob->subroots)
		if (has_table((Node *) ((PlannerInfo *) lfirst(cell))->parse, NULL))
			return true;
	for (; root != NULL; root = root->parent_root)
		if (has_table((Node *) root->parse, NULL))
			return true;
	return false;
}

/*
 * Planner support for uuidv7_fast_watermark: refuses the statement that is as
 * obvious as wrong, SELECT ... FROM t WHERE id < uuidv7_fast_watermark(), whose
 * snapshot is older than the watermark.  Not every way to write that is seen.
 */
Datum
uuidv7_fast_watermark_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	const PlannerInfo *root = NULL;

	/* A function in FROM of a subquery is simplified without a way to the query around. */
	if (IsA(request, SupportRequestSimplify))
		root = ((SupportRequestSimplify *) request)->root;
	else if (IsA(request, SupportRequestCost))
		root = ((SupportRequestCost *) request)->root;
	if (reads_table(root))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("uuidv7_fast_watermark() cannot be called in a statement that reads a table"),
				 errdetail("The statement's snapshot is older than the watermark, and might not show all rows below it."),
				 errhint("Call it in a statement of its own, and read the table in the next one.")));
	PG_RETURN_POINTER(NULL);
}
