/*
 * convert.c
 *	  Times in and out: the bounds of a millisecond, the time of a UUID.
 */
#include "postgres.h"

#include "keys/arguments.h"
#include "utils/timestamp.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_min);
PG_FUNCTION_INFO_V1(uuidv7_fast_max);
PG_FUNCTION_INFO_V1(uuidv7_fast_timestamp);
PG_FUNCTION_INFO_V1(uuidv7_fast_ns);

static Datum
bound_of_millisecond(TimestampTz ts, void (*bound) (unsigned char *, uint64))
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	bound(uuid->data, fuuid_unix_us(ts) / FUUID_US_PER_MS);
	return UUIDPGetDatum(uuid);
}

/* The smallest version 7 UUID of the millisecond, of any generator. */
Datum
uuidv7_fast_min(PG_FUNCTION_ARGS)
{
	return bound_of_millisecond(PG_GETARG_TIMESTAMPTZ(0), fuuid_uuid_min);
}

/* The largest version 7 UUID of the millisecond, of any generator. */
Datum
uuidv7_fast_max(PG_FUNCTION_ARGS)
{
	return bound_of_millisecond(PG_GETARG_TIMESTAMPTZ(0), fuuid_uuid_max);
}

/*
 * The time of a version 7 UUID to the millisecond, or with sub_ms to the
 * microsecond, which means something only if the generator stored it.  NULL
 * for any other version or variant.
 */
Datum
uuidv7_fast_timestamp(PG_FUNCTION_ARGS)
{
	const unsigned char *uuid = PG_GETARG_UUID_P(0)->data;
	uint64		unix_us;

	if (!fuuid_uuid_is_v7(uuid))
		PG_RETURN_NULL();
	unix_us = fuuid_uuid_unix_ms(uuid) * FUUID_US_PER_MS;
	if (PG_GETARG_BOOL(1))
		unix_us += fuuid_uuid_sub_ns(uuid) / FUUID_NS_PER_US;
	PG_RETURN_TIMESTAMPTZ((TimestampTz) unix_us - FUUID_UNIX_TO_POSTGRES_US);
}

/*
 * The nanoseconds from 1970-01-01 UTC to the time of a version 7 UUID:
 * exact for those generated here, and never descending where UUIDs ascend.
 * NULL for any other version or variant.
 */
Datum
uuidv7_fast_ns(PG_FUNCTION_ARGS)
{
	const unsigned char *uuid = PG_GETARG_UUID_P(0)->data;
	uint64		unix_ms = fuuid_uuid_unix_ms(uuid);

	if (!fuuid_uuid_is_v7(uuid))
		PG_RETURN_NULL();

	/* 2^48 milliseconds exceed 64 bits; their limit exceeds the result's. */
	return fuuid_bigint_of_ns(Min(unix_ms, PG_INT64_MAX / FUUID_NS_PER_MS + 1) *
							  FUUID_NS_PER_MS + fuuid_uuid_sub_ns(uuid));
}
