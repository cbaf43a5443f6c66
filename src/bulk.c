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

/*
 * Values of one reading of the clock at most.  Each takes longer than 1 ns, so
 * that a chunk ends in the past.
 */
#define CHUNK_VALUES 256

/* An array must fit in one allocation, with its header. */
#define ARRAY_VALUES_MAX \
	((int) ((MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(pg_uuid_t)))

PG_FUNCTION_INFO_V1(uuidv7_fast_array);
PG_FUNCTION_INFO_V1(uuidv7_fast_set);
PG_FUNCTION_INFO_V1(uuidv7_fast_set_support);

/* Values of one reading of the clock. */
typedef struct Chunk
{
	struct timespec next;		/* time of the next value */
	uint32		left;			/* values that may still be taken */
} Chunk;

/*
 * Read the clock for a chunk and reserve its values, so many that the caller
 * takes at once.  False where they are not of the clock's time, which is behind
 * the latest value.
 */
static bool
chunk_begin(Chunk *chunk, int source, uint32 values)
{
	uint64		clock_ns;

	chunk->left = values;
	fuuid_clock_read(&chunk->next);
	if (fuuid_clock_resolution > 1)
		fuuid_clock_randomize_below_resolution(&chunk->next, fuuid_entropy_draw(source) >> FUUID_RANDOM_BITS);
	clock_ns = fuuid_ns_of_time(&chunk->next);
	fuuid_ordering_reserve(&chunk->next, values);
	return fuuid_ns_of_time(&chunk->next) == clock_ns;
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
		Chunk		chunk;

		CHECK_FOR_INTERRUPTS();
		(void) chunk_begin(&chunk, source, Min(end - next, CHUNK_VALUES));
		while (chunk.left > 0)
			chunk_take(&chunk, source, next++);
	}
	PG_RETURN_ARRAYTYPE_P(array);
}

typedef struct SetState
{
	int			source;			/* index of the one in the argument; -1: the session's */
	int64		wanted;			/* values that are still to be returned */
	Chunk		chunk;			/* unlike an array's, reserved value by value */
	FuuidClockTick tick;		/* in which the clock was read for the chunk */
	uint64		last_ns;		/* the backend's latest value, if it is this set's */
} SetState;

/*
 * May the set go on from its latest value, which then is the backend's, by a
 * nanosecond, without another reading of the clock?  Only as long as that would
 * tell the same: no other value came in between, which is known of this backend
 * alone; no reset either, after which this value would be taken for one from
 * before; and the clock is still in the same tick, hence did not step.
 */
static bool
set_goes_on(const SetState *state)
{
	return state->chunk.left > 0 &&
		state->last_ns == fuuid_session_last_ns &&
		fuuid_ordering_is_own() &&
		fuuid_clock_in_tick(&state->tick);
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
					 errmsg("argument \"count\" must not be negative")));

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

	if (set_goes_on(state))
		fuuid_session_last_ns++;
	else
	{
		fuuid_clock_begin_tick(&state->tick);

		/* Ahead of the clock, each value has to be held against the limit. */
		if (chunk_begin(&state->chunk, source, 1))
			state->chunk.left = CHUNK_VALUES;
	}
	state->last_ns = fuuid_session_last_ns;

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
