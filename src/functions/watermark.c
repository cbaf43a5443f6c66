/*
 * watermark.c
 *	  The SQL-callable function that returns the watermark.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "common/uuid_layout.h"
#include "fmgr.h"
#include "ordering/in_flight.h"
#include "ordering/watermark.h"
#include "require_session.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_watermark);

/*
 * uuidv7_fast_watermark() returns uuid
 *
 * Return a bound.  Every row of this database with a smaller id, generated
 * under instance or durable order by the transaction that inserted it, is
 * visible to the calling statement, or will never be visible to any.
 */
Datum
uuidv7_fast_watermark(PG_FUNCTION_ARGS pg_attribute_unused())
{
	pg_uuid_t  *uuid;
	uint64		ns;

	fuuid_require_session("execute uuidv7_fast_watermark()");
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot execute %s during recovery", "uuidv7_fast_watermark()"),
				 errhint("Call it on the primary.")));
	if (!ActiveSnapshotSet())
		elog(ERROR, "uuidv7_fast_watermark() requires a snapshot");
	fuuid_in_flight_join();

	ns = fuuid_watermark_for(GetActiveSnapshot());
	uuid = palloc(sizeof(pg_uuid_t));
	fuuid_uuid_encode_ns(uuid->data, ns, 0);
	return UUIDPGetDatum(uuid);
}
