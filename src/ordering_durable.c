/*
 * ordering_durable.c
 *	  The order of all backends, across restart, crash and promotion as well.
 *
 *	  A value is handed out only if the horizon of its database, which is flushed
 *	  to disk, is beyond it.  In its next life the server begins after the horizon.
 *	  A horizon lasts for a second: half a second before it is reached one backend
 *	  moves it ahead while the others go on.
 */
#include "postgres.h"

#include "access/xlog.h"
#include "clock.h"
#include "compat.h"
#include "horizon.h"
#include "miscadmin.h"
#include "ordering_durable.h"
#include "ordering_instance.h"
#include "port/atomics.h"
#include "shared_ordering.h"
#include "storage/latch.h"
#include "test_point.h"
#include "utils/inval.h"
#include "utils/wait_event.h"

#define STRIDE_NS	FUUID_NS_PER_S
#define NS_PER_US	1000

#ifdef FUUID_HAVE_NAMED_SEGMENTS

/* Of one database, in this life of the server. */
typedef struct DurableOrdering
{
	pg_atomic_uint64 covered_ns;	/* values up to here may be handed out; 0: none */

	/* The horizon as it was last written here; under the horizon's lock. */
	int64		written_us;
} DurableOrdering;

/* The sequence that is in use, and what belongs to it; NULL: to be found. */
static Oid	sequence = InvalidOid;
static DurableOrdering *shared = NULL;

static void
init_segment(FUUID_SEGMENT_INIT_ARGS)
{
	DurableOrdering *durable = segment;

	pg_atomic_init_u64(&durable->covered_ns, 0);
	durable->written_us = 0;
}

/*
 * The extension may have been dropped, and created again.
 */
static void
forget_sequence(Datum arg pg_attribute_unused(), Oid relation)
{
	if (relation == sequence || relation == InvalidOid)
		shared = NULL;
}

/*
 * What this database shares.  NULL where the sequence is missing.
 */
static DurableOrdering *
find_shared(void)
{
	static bool registered = false;
	char		name[64];
	bool		found;

	if (likely(shared != NULL))
		return shared;
	if (!registered)
		CacheRegisterRelcacheCallback(forget_sequence, (Datum) 0);
	registered = true;

	sequence = fuuid_horizon_find();
	if (!OidIsValid(sequence))
		return NULL;
	snprintf(name, sizeof(name), "fast_uuid horizon %u %u", MyDatabaseId, sequence);
	shared = FUUID_GET_NAMED_SEGMENT(name, sizeof(DurableOrdering), init_segment, &found);
	return shared;
}

static DurableOrdering *
require_shared(void)
{
	DurableOrdering *durable = find_shared();

	if (durable == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ordering \"durable\" requires the sequence %s of the extension fast_uuid", FUUID_HORIZON_NAME),
				 errhint("Create the extension in this database again, or set fast_uuid.ordering to \"instance\" or \"session\".")));
	return durable;
}

static void
require_writable(void)
{
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("recovery is in progress"),
				 errdetail("A standby cannot write the horizon of ordering \"durable\"."),
				 errhint("Generate on the primary, or set fast_uuid.ordering to \"instance\" or \"session\".")));
}

/*
 * Lock the horizon, and return what belongs to it.  Without wait, NULL where
 * another backend has locked it.
 */
static DurableOrdering *
lock_horizon(Horizon *horizon, bool wait)
{
	for (;;)
	{
		DurableOrdering *durable = require_shared();

		if (fuuid_horizon_lock(horizon, sequence, wait))
			return durable;
		if (!wait)
			return NULL;

		/* Dropped at this moment. */
		shared = NULL;
	}
}

static void
write_horizon(const Horizon *horizon, DurableOrdering *durable, uint64 ns)
{
	int64		us = ns / NS_PER_US;

	fuuid_horizon_write(horizon, us);
	durable->written_us = us;
	pg_atomic_exchange_u64(&durable->covered_ns, (uint64) us * NS_PER_US);
}

/*
 * Move the horizon to a stride beyond this nanosecond, unless another backend has
 * done so meanwhile; without wait, not while another one is at it either.  False
 * where the nanosecond, which was reserved in this epoch, does not count any more.
 *
 * A horizon that is beyond the one written last is of an earlier life of the server,
 * or was restored from a dump: all further values are beyond that, too.
 */
static bool
move_horizon(uint64 last_ns, uint64 epoch, bool wait)
{
	Horizon		horizon;
	DurableOrdering *durable;
	uint64		found_ns;
	bool		moved;
	bool		counts;

	require_writable();
	fuuid_clock_check_end(last_ns, 2 * STRIDE_NS);
	durable = lock_horizon(&horizon, wait);
	if (durable == NULL)
		return true;

	found_ns = (uint64) fuuid_horizon_read(&horizon) * NS_PER_US;
	moved = found_ns / NS_PER_US > (uint64) durable->written_us;
	if (moved)
	{
		uint64		unused;

		while (!fuuid_instance_raise(found_ns, fuuid_instance_epoch(), &unused))
			;
		last_ns = Max(last_ns, found_ns);
	}
	FUUID_TEST_POINT("horizon_read");
	counts = !moved && fuuid_instance_epoch() == epoch;
	if ((moved || counts) && pg_atomic_read_u64(&durable->covered_ns) < last_ns + STRIDE_NS / 2)
		write_horizon(&horizon, durable, last_ns + STRIDE_NS);
	fuuid_horizon_unlock(&horizon);
	return counts;
}

/*
 * Begin, in this life of the server, after the horizon of the one before.
 *
 * After a quick restart the horizon is ahead of a clock that is right, by no more
 * than the stride: then it is the clock that is waited for.
 */
static void
begin(void)
{
	struct timespec now;
	uint64		horizon_ns;

	require_writable();
	(void) require_shared();
	horizon_ns = (uint64) fuuid_horizon_peek(sequence) * NS_PER_US;
	for (;;)
	{
		uint64		lead;

		fuuid_clock_read(&now);
		lead = horizon_ns > fuuid_ns_of_time(&now) ? horizon_ns - fuuid_ns_of_time(&now) : 0;
		if (lead == 0 || lead > STRIDE_NS)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 lead / FUUID_NS_PER_MS + 1, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
	(void) move_horizon(fuuid_ns_of_time(&now), fuuid_instance_epoch(), true);
}

/*
 * Let values up to this nanosecond, reserved in this epoch, be handed out; moves
 * the horizon ahead if need be.  False: they do not count any more, because the
 * instance was reset, or a horizon beyond them was found.  Raises an error during
 * recovery, and where the sequence is missing.
 */
bool
fuuid_durable_cover(uint64 last_ns, uint64 epoch)
{
	uint64		covered = pg_atomic_read_u64(&require_shared()->covered_ns);

	if (likely(last_ns + STRIDE_NS / 2 <= covered))
		return true;
	if (covered == 0)
	{
		begin();
		return false;
	}
	return move_horizon(last_ns, epoch, last_ns > covered);
}

/*
 * The same where durable order has ever been used in this database; else true.
 */
bool
fuuid_durable_cover_if_used(uint64 last_ns, uint64 epoch)
{
	int64		us;

	if (find_shared() == NULL ||
		(pg_atomic_read_u64(&shared->covered_ns) == 0 && !fuuid_durable_horizon(&us)))
		return true;
	return fuuid_durable_cover(last_ns, epoch);
}

/*
 * fuuid_ordering_reserve() in the order that outlives the server.
 */
void
fuuid_durable_reserve(struct timespec *now, uint32 count)
{
	fuuid_instance_reserve(now, count);
	while (!fuuid_durable_cover(fuuid_ns_of_time(now) + (count - 1), fuuid_instance_own_epoch))
	{
		fuuid_clock_read(now);
		fuuid_instance_reserve(now, count);
	}
}

/*
 * The horizon, in microseconds since 1970-01-01 UTC.  False where there is none.
 */
bool
fuuid_durable_horizon(int64 *us)
{
	*us = find_shared() == NULL ? 0 : fuuid_horizon_peek(sequence);
	return *us != 0;
}

/*
 * fuuid_instance_reset(), and forget the horizon too.
 */
void
fuuid_durable_reset(void)
{
	Horizon		horizon;
	DurableOrdering *durable;
	struct timespec now;

	fuuid_shared_require();
	require_writable();
	durable = lock_horizon(&horizon, true);
	fuuid_instance_reset();
	fuuid_clock_read(&now);
	write_horizon(&horizon, durable, fuuid_ns_of_time(&now) + STRIDE_NS);
	fuuid_horizon_unlock(&horizon);
}

#else							/* !FUUID_HAVE_NAMED_SEGMENTS */

FUUID_NORETURN static void
not_supported(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("ordering \"durable\" requires PostgreSQL 17 or later"),
			 errhint("Set fast_uuid.ordering to \"instance\" or \"session\".")));
}

void
fuuid_durable_reserve(struct timespec *now pg_attribute_unused(), uint32 count pg_attribute_unused())
{
	not_supported();
}

bool
fuuid_durable_cover(uint64 last_ns pg_attribute_unused(), uint64 epoch pg_attribute_unused())
{
	not_supported();
}

bool
fuuid_durable_cover_if_used(uint64 last_ns pg_attribute_unused(), uint64 epoch pg_attribute_unused())
{
	return true;
}

bool
fuuid_durable_horizon(int64 *us pg_attribute_unused())
{
	return false;
}

void
fuuid_durable_reset(void)
{
	not_supported();
}
#endif							/* FUUID_HAVE_NAMED_SEGMENTS */
