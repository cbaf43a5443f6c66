/*
 * generate.c
 *	  The SQL-callable functions that generate one UUID, or one per row.
 */
#include "postgres.h"

#include "clock.h"
#include "common/uuid_layout.h"
#include "entropy/entropy.h"
#include "funcapi.h"
#include "functions/arguments.h"
#include "ordering/ordering.h"
#include "require_session.h"
#include "utils/fmgrprotos.h"
#include "utils/timestamp.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(uuidv7_fast);
PG_FUNCTION_INFO_V1(uuidv7_fast_from);
PG_FUNCTION_INFO_V1(uuidv7_fast_shift);
PG_FUNCTION_INFO_V1(uuidv7_fast_at);
PG_FUNCTION_INFO_V1(uuidv7_fast_set);

/*
 * Return the nanosecond of the next UUID in this backend's order, and in
 * *random 64 random bits for it from a source (index into
 * fuuid_entropy_sources).
 *
 * The clock is read first, because meanwhile the processor gets on with what
 * does not depend on it.
 */
static pg_attribute_always_inline uint64
next_time_and_random(int source, uint64 *random)
{
	uint64		now_ns;
	uint32		count = 1;

	fuuid_require_session("generate UUIDs");
	now_ns = fuuid_clock_read();
	*random = fuuid_entropy_draw(source);
	return fuuid_ordering_reserve(now_ns, &count);
}

/*
 * Generate a UUID for the current time, greater than all that this backend has
 * generated for the current time before.
 */
static pg_attribute_always_inline Datum
value_now(int source)
{
	uint64		random;
	uint64		ns = next_time_and_random(source, &random);
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	fuuid_uuid_encode_ns(uuid->data, ns, random);
	return UUIDPGetDatum(uuid);
}

/*
 * uuidv7_fast() returns uuid
 *
 * Generate a UUID from the source in fast_uuid.source.  This is not the next
 * function with a default argument, so that the planner has less to do.
 */
Datum
uuidv7_fast(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return value_now(fuuid_source);
}

/*
 * uuidv7_fast(source text) returns uuid
 *
 * Generate a UUID from a source; NULL stands for that in fast_uuid.source.
 */
Datum
uuidv7_fast_from(PG_FUNCTION_ARGS)
{
	return value_now(FUUID_GETARG_SOURCE(0));
}

/*
 * Encode a UUID for a given time: microseconds since 1970-01-01 UTC, and the
 * nanoseconds below them (0 to 999).
 */
static Datum
value_at(uint64 unix_us, uint32 ns, uint64 random)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	fuuid_uuid_encode(uuid->data, unix_us / FUUID_US_PER_MS,
					  unix_us % FUUID_US_PER_MS * FUUID_NS_PER_US + ns, random);
	return UUIDPGetDatum(uuid);
}

/*
 * uuidv7_fast(shift interval, source text DEFAULT NULL) returns uuid
 *
 * Generate a UUID for the current time shifted by an interval, like
 * uuidv7(shift) of PostgreSQL 18.  The time before the shift is in this
 * backend's order; the UUID is not.
 */
Datum
uuidv7_fast_shift(PG_FUNCTION_ARGS)
{
	int			source = FUUID_GETARG_SOURCE(1);
	uint64		ns;
	uint64		random;
	TimestampTz ts;

	fuuid_require_argument(fcinfo, 0, "shift");
	ns = next_time_and_random(source, &random);

	ts = (TimestampTz) (ns / FUUID_NS_PER_US) - FUUID_UNIX_TO_POSTGRES_US;
	ts = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												 TimestampTzGetDatum(ts),
												 PG_GETARG_DATUM(0)));
	return value_at(fuuid_unix_us(ts), ns % FUUID_NS_PER_US, random);
}

/*
 * uuidv7_fast_at(ts timestamptz, source text DEFAULT NULL) returns uuid
 *
 * Generate a UUID for a given time, for rows that are older than their id.
 * The digits below a microsecond are random too.
 */
Datum
uuidv7_fast_at(PG_FUNCTION_ARGS)
{
	int			source = FUUID_GETARG_SOURCE(1);
	uint64		unix_us;
	uint64		random;
	uint64		ns;

	fuuid_require_session("generate UUIDs");
	fuuid_require_argument(fcinfo, 0, "ts");
	unix_us = fuuid_unix_us(PG_GETARG_TIMESTAMPTZ(0));
	random = fuuid_entropy_draw(source);
	ns = (random >> FUUID_RANDOM_BITS) * FUUID_NS_PER_US >>
		(64 - FUUID_RANDOM_BITS);
	return value_at(unix_us, ns, random);
}

/*
 * uuidv7_fast_set(count bigint, source text DEFAULT NULL) returns setof uuid
 *
 * Generate ascending UUIDs, one per row, each when its row is asked for.
 */
Datum
uuidv7_fast_set(PG_FUNCTION_ARGS)
{
	FuncCallContext *context;
	int		   *source;			/* -1: that of fast_uuid.source */

	if (SRF_IS_FIRSTCALL())
	{
		int			named = PG_ARGISNULL(1) ? -1 :
			fuuid_source_by_name(PG_GETARG_DATUM(1));

		fuuid_require_argument(fcinfo, 0, "count");
		if (PG_GETARG_INT64(0) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("argument \"count\" must not be negative")));

		context = SRF_FIRSTCALL_INIT();
		context->max_calls = PG_GETARG_INT64(0);
		source = MemoryContextAlloc(context->multi_call_memory_ctx,
									sizeof(int));
		*source = named;
		context->user_fctx = source;
	}

	context = SRF_PERCALL_SETUP();
	if (context->call_cntr == context->max_calls)
		SRF_RETURN_DONE(context);
	source = context->user_fctx;
	SRF_RETURN_NEXT(context, value_now(*source >= 0 ? *source : fuuid_source));
}
