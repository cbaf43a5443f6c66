/*
 * noop.c
 *	  The baseline of every comparison: a C function that does nothing but return
 *	  a fixed uuid in palloc'd memory.
 */
#include "postgres.h"

#include "fmgr.h"
#include "utils/uuid.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(fast_uuid_noop);

Datum
fast_uuid_noop(PG_FUNCTION_ARGS pg_attribute_unused())
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	memset(uuid->data, 0x42, UUID_LEN);
	PG_RETURN_UUID_P(uuid);
}
