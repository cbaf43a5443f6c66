/*
 * bulk.c
 *	  The SQL-callable generators of many values.
 *
 *	  Values are made in chunks: one reading of the clock gives the nanosecond
 *	  of a chunk's first value, each further one has the next.
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

/* To make a value takes longer than 1 ns, so that a chunk ends in the past. */
#define CHUNK_VALUES 256

/* An array must fit in one allocation, with its header. */
#define ARRAY_VALUES_MAX \
	((int) ((MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(pg_uuid_t)))

PG_FUNCTION_INFO_V1(uuidv7_fast_array);
PG_FUNCTION_INFO_V1(uuidv7_fast_set);
PG_FUNCTION_INFO_V1(uuidv7_fast_set_support);

typedef struct Chunk
{
	struct timespec next;		/* time of the next value */
	uint32		left;			/* values that may still be taken */
	uint64		last_ns;		/* latest nanosecond of the backend after this chunk */
} Chunk;

static void
chunk_begin(Chunk *chunk, int source, int64 wanted)
{
	chunk->left = Min(wanted, CHUNK_VALUES);
	fuuid_clock_read(&chunk->next);
	if (fuuid_clock_resolution > 1)
		fuuid_clock_randomize_below_resolution(&chunk->next, fuuid_entropy_draw(source) >> FUUID_RANDOM_BITS);
	fuuid_ordering_reserve(&chunk->next, chunk->left);
	chunk->last_ns = fuuid_ordering_last_ns;
}

static inline void
chunk_take(Chunk *chunk, int source, pg_uuid_t *uuid)
{
	uint64		random = fuuid_entropy_draw(source);

	fuuid_uuid_encode(uuid->data, chunk->next.tv_sec, chunk->next.tv_nsec, random);
	if (++chunk->next.tv_nsec == (long) FUUID_NS_PER_S)
	{
		chunk->next.tv_sec++;
		chunk->next.tv_nsec = 0;
	}
	chunk->left--;
}

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
				 errmsg("count must be between 0 and %d", ARRAY_VALUES_MAX)));
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
		Chunk		chunk;

		CHECK_FOR_INTERRUPTS();
		chunk_begin(&chunk, source, end - next);
		while (chunk.left > 0)
			chunk_take(&chunk, source, next++);
	}
	PG_RETURN_ARRAYTYPE_P(array);
}

typedef struct SetState
{
	int			source;			/* index of the one in the argument; -1: the session's */
	int64		wanted;			/* values that are still to be returned */
	Chunk		chunk;
} SetState;

/*
 * uuidv7_fast_set(count bigint, source text DEFAULT NULL) returns setof uuid
 *
 * Ascending values, one row each, none made before it is asked for.
 */
Datum
uuidv7_fast_set(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	SetState   *state;
	int			source;
	pg_uuid_t  *uuid;

	if (SRF_IS_FIRSTCALL())
	{
		source = PG_ARGISNULL(1) ? -1 : fuuid_source_by_name(PG_GETARG_DATUM(1));

		fuuid_require_argument(fcinfo, 0, "count");
		if (PG_GETARG_INT64(0) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("count must not be negative")));

		context = SRF_FIRSTCALL_INIT();
		state = MemoryContextAllocZero(context->multi_call_memory_ctx, sizeof(SetState));
		state->source = source;
		state->wanted = PG_GETARG_INT64(0);
		context->user_fctx = state;
	}

	context = SRF_PERCALL_SETUP();
	state = context->user_fctx;
	if (state->wanted == 0)
		SRF_RETURN_DONE(context);
	source = state->source >= 0 ? state->source : fuuid_source;

	/*
	 * Another call may have made values since this one returned the last; those
	 * that are left of the chunk would then be smaller.  One of another session
	 * would not be seen here: under instance order each row is a chunk.
	 */
	if (state->chunk.left == 0 || state->chunk.last_ns != fuuid_ordering_last_ns ||
		fuuid_ordering_scope == FUUID_ORDERING_INSTANCE)
		chunk_begin(&state->chunk, source,
					fuuid_ordering_scope == FUUID_ORDERING_INSTANCE ? 1 : state->wanted);

	uuid = palloc(sizeof(pg_uuid_t));
	chunk_take(&state->chunk, source, uuid);
	state->wanted--;
	SRF_RETURN_NEXT(context, UUIDPGetDatum(uuid));
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
