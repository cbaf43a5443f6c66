/*
 * generate.c
 *	  The SQL-callable functions that generate keys.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "entropy/seed.h"
#include "keys/arguments.h"
#include "keys/session.h"
#include "utils/array.h"
#include "utils/fmgrprotos.h"
#include "utils/memutils.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(uuidv7_fast);
PG_FUNCTION_INFO_V1(uuidv7_fast_from);
PG_FUNCTION_INFO_V1(uuidv7_fast_shift);
PG_FUNCTION_INFO_V1(uuidv7_fast_at);
PG_FUNCTION_INFO_V1(uuidv7_fast_array);

uint64		fuuid_session_last_ns = 0;

/*
 * UUIDs of an array per reading of the clock, if it is ahead of the order: each
 * takes longer than the nanosecond by which it is later than the one before.
 */
#define CHUNK_VALUES 256

/* An array must fit in one allocation, with its header. */
#define ARRAY_VALUES_MAX \
	((int) ((MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(pg_uuid_t)))

/*
 * Reserve *count nanoseconds, as fuuid_session_reserve() does; or, from a seed
 * that has a start time, the next step, one at a time.
 */
static pg_attribute_always_inline uint64
reserve(uint64 clock_ns, uint32 *count)
{
	if (fuuid_seed_has_time())
	{
		*count = 1;
		return fuuid_seed_next_ns();
	}
	return fuuid_session_reserve(clock_ns, count);
}

/*
 * Return the nanosecond of the next UUID in this backend's order, and in
 * *random 64 random bits for it from a source.  The clock is read first,
 * because meanwhile the processor gets on with what does not depend on it.
 */
static pg_attribute_always_inline uint64
next_time_and_random(int source, uint64 *random)
{
	uint64		now_ns;
	uint32		count = 1;

	fuuid_require_session();
	now_ns = fuuid_clock_read();
	*random = fuuid_entropy_draw(source);
	return reserve(now_ns, &count);
}

/* Generate a UUID for the current time, in this backend's order. */
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
 * Generate a UUID from the source in fast_uuid.source.  This is not the next
 * function with a default argument, so that the planner has less to do.
 */
Datum
uuidv7_fast(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return value_now(fuuid_source);
}

/* Generate a UUID from a source; NULL stands for that in fast_uuid.source. */
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

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	ns = next_time_and_random(source, &random);

	ts = (TimestampTz) (ns / FUUID_NS_PER_US) - FUUID_UNIX_TO_POSTGRES_US;
	ts = DatumGetTimestampTz(DirectFunctionCall2(timestamptz_pl_interval,
												 TimestampTzGetDatum(ts),
												 PG_GETARG_DATUM(0)));
	return value_at(fuuid_unix_us(ts), ns % FUUID_NS_PER_US, random);
}

/*
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

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	fuuid_require_session();
	unix_us = fuuid_unix_us(PG_GETARG_TIMESTAMPTZ(0));
	random = fuuid_entropy_draw(source);
	ns = (random >> FUUID_RANDOM_BITS) * FUUID_NS_PER_US >>
		(64 - FUUID_RANDOM_BITS);
	return value_at(unix_us, ns, random);
}

/* Generate an array of UUIDs, in one order with all others of this backend. */
Datum
uuidv7_fast_array(PG_FUNCTION_ARGS)
{
	int			source = FUUID_GETARG_SOURCE(1);
	int			count;
	Size		size;
	ArrayType  *array;
	pg_uuid_t  *next;
	pg_uuid_t  *end;

	if (PG_ARGISNULL(0))
		PG_RETURN_NULL();
	fuuid_require_session();
	count = PG_GETARG_INT32(0);
	if (count < 0 || count > ARRAY_VALUES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument \"count\" must be between 0 and %d",
						ARRAY_VALUES_MAX)));
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
		uint32		chunk = Min(end - next, CHUNK_VALUES);
		uint64		ns;
		uint64		random;

		CHECK_FOR_INTERRUPTS();
		ns = fuuid_clock_read();

		/* If the source is refused, nothing must have been reserved. */
		random = fuuid_entropy_draw(source);
		ns = reserve(ns, &chunk);
		fuuid_uuid_encode_ns(next++->data, ns++, random);
		for (; chunk > 1; chunk--)
			fuuid_uuid_encode_ns(next++->data, ns++,
								 fuuid_entropy_draw(source));
	}
	PG_RETURN_ARRAYTYPE_P(array);
}
