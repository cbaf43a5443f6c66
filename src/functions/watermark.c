/*
 * watermark.c
 *	  The bound below which a statement sees every row that it ever could.
 *	  doc/internals/ordering-proof.md proves it.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "clock.h"
#include "fmgr.h"
#include "miscadmin.h"
#include "ordering/durable.h"
#include "ordering/in_flight.h"
#include "ordering/instance.h"
#include "ordering/ordering.h"
#include "ordering/shared.h"
#include "ordering/watermark_history.h"
#include "common/uuid_layout.h"
#include "require_session.h"
#include "storage/procarray.h"
#include "test_point.h"
#include "utils/snapmgr.h"
#include "utils/uuid.h"

PG_FUNCTION_INFO_V1(uuidv7_fast_watermark);

/*
 * Take a snapshot now, in static memory.
 */
static Snapshot
snapshot_of_now(void)
{
	static SnapshotData now = {.snapshot_type = SNAPSHOT_MVCC};

	/* The server allocates both arrays if xip is missing; subxip alone may have failed. */
	if (now.subxip == NULL)
		now.xip = NULL;
	return GetSnapshotData(&now);
}

/*
 * Compute a watermark: a nanosecond below which no transaction of this database can
 * generate any more, and all that have generated had ended when *taken was taken.  It
 * follows the clock unless a transaction holds it back.  This call has made sure of
 * nothing beyond *limit_ns.  Returns false if the instance was reset since the epoch, or
 * if last_ns does not count for fuuid_durable_cover().
 *
 * last_ns is read before the transactions, because those of later UUIDs need not be
 * found. The snapshot is taken after them, because it must know of all that were found to
 * have ended.
 */
static bool
compute_watermark(uint64 epoch, uint64 *watermark_ns, uint64 *limit_ns, Snapshot *taken)
{
	int			held_back_by;
	uint64		last_ns;

	if (!fuuid_instance_advance_to(fuuid_clock_read(), epoch, &last_ns) ||
		(fuuid_ordering_scope == FUUID_ORDERING_DURABLE && !fuuid_durable_cover(last_ns, epoch)))
		return false;
	FUUID_TEST_POINT("watermark");
	*limit_ns = last_ns + 1;
	*watermark_ns = fuuid_in_flight_first(*limit_ns, &held_back_by);
	*taken = snapshot_of_now();
	return true;
}

/*
 * The watermark for a snapshot: the greatest that is right for it, computed now or by an
 * earlier call, but at most what this call has made sure of.  If none is right it is 0,
 * which no UUID is below.
 */
static uint64
watermark_for(Snapshot snapshot)
{
	uint64		epoch;
	uint64		watermark_ns;
	uint64		limit_ns;
	Snapshot	taken;

	/* xip of a snapshot taken during recovery does not list the running transactions. */
	if (snapshot->snapshot_type != SNAPSHOT_MVCC || snapshot->takenDuringRecovery)
		return 0;
	do
	{
		CHECK_FOR_INTERRUPTS();
		epoch = fuuid_instance_epoch();
	} while (!compute_watermark(epoch, &watermark_ns, &limit_ns, &taken) ||
			 !fuuid_watermark_history_add(&watermark_ns, taken, epoch, snapshot));
	return Min(watermark_ns, limit_ns);
}

/*
 * uuidv7_fast_watermark() returns uuid
 *
 * Return a bound.  Every row of this database with a smaller id, generated under instance
 * or durable order by the transaction that inserted it, is visible to the calling
 * statement, or will never be visible to any.
 *
 * All calls in a statement must have the same result.  With two results, the greater of
 * two rows could be below one of them, while the smaller is not below the other.  So the
 * result, plus 1, is kept in the statement's snapshot, in snapXactCompletionCount, which
 * the server uses only in the snapshots that it copies from, and sets to 0 in each copy.
 */
Datum
uuidv7_fast_watermark(PG_FUNCTION_ARGS pg_attribute_unused())
{
	Snapshot	snapshot;
	uint64	   *kept;
	pg_uuid_t  *uuid;

	fuuid_require_session("execute uuidv7_fast_watermark()");
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot execute %s during recovery", "uuidv7_fast_watermark()"),
				 errhint("Call it on the primary.")));
	fuuid_shared_require();

	if (!ActiveSnapshotSet())
		elog(ERROR, "uuidv7_fast_watermark() requires a snapshot");
	snapshot = GetActiveSnapshot();
	Assert(snapshot->copied);
	kept = &snapshot->snapXactCompletionCount;
	if (*kept == 0)
		*kept = watermark_for(snapshot) + 1;

	uuid = palloc(sizeof(pg_uuid_t));
	fuuid_uuid_encode_ns(uuid->data, *kept - 1, 0);
	return UUIDPGetDatum(uuid);
}
