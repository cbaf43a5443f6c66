/*
 * array.c
 *	  The SQL-callable function that generates an array of UUIDs.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "clock.h"
#include "common/uuid_layout.h"
#include "entropy/entropy.h"
#include "functions/arguments.h"
#include "ordering/ordering.h"
#include "require_session.h"
#include "utils/array.h"
#include "utils/memutils.h"
#include "utils/uuid.h"

/*
 * UUIDs per reading of the clock, if it is ahead of the order.  Each takes
 * longer than the nanosecond by which it is later than the one before, so that
 * the last one's time has passed when it is generated.
 */
#define CHUNK_VALUES 256

/* An array must fit in one allocation, with its header. */
#define ARRAY_VALUES_MAX \
	((int) ((MaxAllocSize - ARR_OVERHEAD_NONULLS(1)) / sizeof(pg_uuid_t)))

PG_FUNCTION_INFO_V1(uuidv7_fast_array);

/*
 * uuidv7_fast_array(count integer, source text DEFAULT NULL) returns uuid[]
 *
 * Generate ascending UUIDs, in one order with all others of this backend.
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

	fuuid_require_session("generate UUIDs");
	fuuid_require_argument(fcinfo, 0, "count");
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
		ns = fuuid_ordering_reserve(ns, &chunk);
		fuuid_uuid_encode_ns(next++->data, ns++, random);
		for (; chunk > 1; chunk--)
			fuuid_uuid_encode_ns(next++->data, ns++,
								 fuuid_entropy_draw(source));
	}
	PG_RETURN_ARRAYTYPE_P(array);
}
