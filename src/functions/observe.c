/*
 * observe.c
 *	  Take note of UUIDs that other generators have made.
 */
#include "postgres.h"

#include "clock.h"
#include "common/uuid_layout.h"
#include "fmgr.h"
#include "ordering/ordering.h"
#include "require_session.h"
#include "utils/fmgrprotos.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(fast_uuid_observe);

/*
 * fast_uuid_observe(id uuid) returns void
 *
 * Make further UUIDs greater than this one: those of this backend, and under a
 * wider order those of all (the receive event of a hybrid logical clock:
 * Kulkarni et al., "Logical Physical Clocks", 2014).
 */
Datum
fast_uuid_observe(PG_FUNCTION_ARGS)
{
	Datum		id = PG_GETARG_DATUM(0);
	const unsigned char *uuid = DatumGetUUIDP(id)->data;
	uint64		unix_ms = fuuid_uuid_unix_ms(uuid);

	fuuid_require_session("execute fast_uuid_observe()");
	if (!fuuid_uuid_is_v7(uuid))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("UUID \"%s\" is not a version 7 UUID",
						DatumGetCString(DirectFunctionCall1(uuid_out, id)))));
	if (unix_ms >= FUUID_CLOCK_END_S * FUUID_MS_PER_S)
		fuuid_clock_error(0);
	fuuid_ordering_advance_past(unix_ms * FUUID_NS_PER_MS +
								fuuid_uuid_last_sub_ns(uuid));
	PG_RETURN_VOID();
}
