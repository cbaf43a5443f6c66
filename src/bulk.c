/*
 * bulk.c
 *	  The SQL-callable generators of many values.
 */
#include "postgres.h"

#include "arguments.h"
#include "catalog/pg_type.h"
#include "clock.h"
#include "entropy.h"
#include "funcapi.h"
#include "nodes/nodeFuncs.h"
#include "nodes/supportnodes.h"
#include "optimizer/optimizer.h"
#include "ordering.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/uuid.h"
#include "uuid_layout.h"

/*
 * Values of an array for each reading of the clock.  Each takes longer than the 1 ns
 * by which it is after the one before, so that the last ends in the past.
 */
#define CHUNK_VALUES 256

/* An array must fit in one allocation, with its header. */
#define ARRAY_VALUES_MAX \
	((int) ((MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(pg_uuid_t)))

PG_FUNCTION_INFO_V1(uuidv7_fast_array);
PG_FUNCTION_INFO_V1(uuidv7_fast_set);
PG_FUNCTION_INFO_V1(uuidv7_fast_set_support);

/*
 * uuidv7_fast_array(count integer, source text DEFAULT NULL) returns uuid[]
 *
 * Ascending values, in the order of the backend with all others.
 */
Datum
uuidv7_fast_array(PG_FUNCTION_ARGS)
{
	int			source = FUUID_GETARG_SOURCE(1);
	int			count;
	Size		size;
	ArrayType  *array;
	pg_uuid_t  *next;
	pg_uuid_t  *end;

	fuuid_require_argument(fcinfo, 0, "count");
	count = PG_GETARG_INT32(0);
	if (count < 0 || count > ARRAY_VALUES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"count\" must be between 0 and %d", ARRAY_VALUES_MAX)));
	if (count == 0)
		PG_RETURN_ARRAYTYPE_P(construct_empty_array(UUIDOID));

	size = ARR_OVERHEAD_NONULLS(1) + count * sizeof(pg_uuid_t);
	array = palloc(size);
	SET_VARSIZE(array, size);
	array->ndim = 1;
	array->dataoffset = 0;
	array->elemtype = UUIDOID;
	ARR_DIMS(array)[0] = count;
	ARR_LBOUND(array)[0] = 1;

	next = (pg_uuid_t *) ARR_DATA_PTR(array);
	end = next + count;
	while (next < end)
	{
		uint32		left = Min(end - next, CHUNK_VALUES);
		uint64		ns;

		CHECK_FOR_INTERRUPTS();
		ns = fuuid_clock_read();
		if (fuuid_clock_resolution > 1)
			ns = fuuid_clock_randomize_below_resolution(ns, fuuid_entropy_draw(source) >> FUUID_RANDOM_BITS);
		ns = fuuid_ordering_reserve(ns, left);
		for (; left > 0; left--)
		{
			uint64		random = fuuid_entropy_draw(source);

			fuuid_uuid_encode_ns(next++->data, ns++, random);
		}
	}
	PG_RETURN_ARRAYTYPE_P(array);
}

/*
 * uuidv7_fast_set(count bigint, source text DEFAULT NULL) returns setof uuid
 *
 * Ascending values, one row each, none made before it is asked for.
 */
Datum
uuidv7_fast_set(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	int		   *source;			/* index of the one in the argument; -1: the session's */

	if (SRF_IS_FIRSTCALL())
	{
		int			named = PG_ARGISNULL(1) ? -1 : fuuid_source_by_name(PG_GETARG_DATUM(1));

		fuuid_require_argument(fcinfo, 0, "count");
		if (PG_GETARG_INT64(0) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument \"count\" must not be negative")));

		context = SRF_FIRSTCALL_INIT();
		context->max_calls = PG_GETARG_INT64(0);
		source = MemoryContextAlloc(context->multi_call_memory_ctx, sizeof(int));
		*source = named;
		context->user_fctx = source;
	}

	context = SRF_PERCALL_SETUP();
	if (context->call_cntr == context->max_calls)
		SRF_RETURN_DONE(context);
	source = context->user_fctx;
	SRF_RETURN_NEXT(context, fuuid_value_now(*source >= 0 ? *source : fuuid_source));
}

/*
 * Planner support for uuidv7_fast_set: the number of rows, where it is known.
 */
Datum
uuidv7_fast_set_support(PG_FUNCTION_ARGS)
{
	Node	   *request = (Node *) PG_GETARG_POINTER(0);
	Node	   *result = NULL;

	if (IsA(request, SupportRequestRows))
	{
		SupportRequestRows *rows = (SupportRequestRows *) request;

		if (is_funcclause(rows->node))
		{
			List	   *args = ((FuncExpr *) rows->node)->args;
			Node	   *count = estimate_expression_value(rows->root, linitial(args));

			if (IsA(count, Const) && !((Const *) count)->constisnull)
			{
				rows->rows = Max(DatumGetInt64(((Const *) count)->constvalue), 0);
				result = request;
			}
		}
	}
	PG_RETURN_POINTER(result);
}
