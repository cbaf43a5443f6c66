/*
 * stat_pack.c
 *	  The random bits of many values as one stream, for tests of randomness.
 */
#include "postgres.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "port/pg_bswap.h"
#include "utils/array.h"
#include "utils/uuid.h"

#define TAIL_BITS 54

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(stat_pack);

/*
 * stat_pack(ids uuid[], cleared bigint, every integer) returns bytea
 *
 * The lowest 54 bits of each value, one after the other without gaps.  For a
 * broken generator the bits that are set in "cleared" are zero in each "every"th
 * value.
 */
Datum
stat_pack(PG_FUNCTION_ARGS)
{
	ArrayType  *array = PG_GETARG_ARRAYTYPE_P(0);
	uint64		cleared = PG_GETARG_INT64(1);
	int			every = PG_GETARG_INT32(2);
	int			count = ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array));
	const pg_uuid_t *ids = (const pg_uuid_t *) ARR_DATA_PTR(array);
	bytea	   *packed = palloc(VARHDRSZ + (Size) count * TAIL_BITS / 8);
	uint8	   *next = (uint8 *) VARDATA(packed);
	uint64		waiting = 0;
	int			bits = 0;

	/* Four tails are 27 bytes; no bit must wait at the end. */
	if (ARR_ELEMTYPE(array) != UUIDOID || ARR_HASNULL(array) || count % 4 != 0 || every < 1)
		elog(ERROR, "stat_pack takes a multiple of four uuids");

	for (int i = 0; i < count; i++)
	{
		uint64		tail;

		memcpy(&tail, ids[i].data + 8, sizeof(tail));
		tail = pg_ntoh64(tail);
		if (i % every == 0)
			tail &= ~cleared;
		waiting = waiting << TAIL_BITS | (tail & ((UINT64CONST(1) << TAIL_BITS) - 1));
		for (bits += TAIL_BITS; bits >= 8; bits -= 8)
			*next++ = (uint8) (waiting >> (bits - 8));
	}

	SET_VARSIZE(packed, (char *) next - (char *) packed);
	PG_RETURN_BYTEA_P(packed);
}
