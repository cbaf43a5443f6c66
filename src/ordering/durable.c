/*
 * durable.c
 *	  The order of all backends, across restart, crash and promotion as well.
 *
 *	  A value is handed out only if the horizon of its database, which is flushed
 *	  to disk, is beyond it.  In its next life the server begins after the horizon.
 *	  A horizon lasts for a second: half a second before it is reached one backend
 *	  moves it ahead while the others go on.
 *
 *	  With the horizon stands the life of the server that it was set in, so that
 *	  whoever finds it knows whether to begin after it or to go on up to it.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "compat.h"
#include "miscadmin.h"
#include "ordering/durable.h"
#include "ordering/horizon.h"
#include "ordering/instance.h"
#include "ordering/shared.h"
#include "storage/latch.h"
#include "test_point.h"
#include "utils/inval.h"
#include "utils/wait_event.h"

#define STRIDE_NS	FUUID_NS_PER_S

/* How far a horizon is ahead of a clock that is right: an observed UUID adds to it. */
#define REACH_NS	(2 * STRIDE_NS)

/* How far ahead of the clock a horizon may be that setval() has set, whoever called it. */
#define RESTORED_LEAD_NS (60 * FUUID_NS_PER_S)

#ifdef FUUID_HAVE_NAMED_SEGMENTS
#define SUPPORTED	true
#else
#define SUPPORTED	false
#endif

/* The sequence of this database; to be found. */
static Oid	sequence = InvalidOid;

/*
 * Up to where values that are reserved in that epoch may be handed out, as this
 * backend knows; 0: it has not looked yet.
 */
static uint64 covered_ns = 0;
static uint64 covered_epoch = 0;

/*
 * The sequence may have been dropped, rewritten, or created again.
 */
static void
forget_sequence(Datum arg pg_attribute_unused(), Oid relation)
{
	if (relation == sequence || relation == InvalidOid)
	{
		sequence = InvalidOid;
		covered_ns = 0;
	}
}

/*
 * False where the sequence is missing.
 */
static bool
find_sequence(void)
{
	static bool registered = false;

	if (OidIsValid(sequence))
		return true;
	if (!registered)
		CacheRegisterRelcacheCallback(forget_sequence, (Datum) 0);
	registered = true;
	sequence = fuuid_horizon_find();
	return OidIsValid(sequence);
}

/*
 * Raise an error where durable order cannot be had: before 17, during recovery,
 * outside of a transaction, or where the sequence is missing.
 */
static void
require_durable(void)
{
	if (!SUPPORTED)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("ordering \"durable\" requires PostgreSQL 17 or later"),
				 errhint("Lower \"fast_uuid.ordering\" and \"fast_uuid.required_ordering\" to \"instance\" or \"session\".")));
	if (!IsTransactionState())
		ereport(ERROR,
				(errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION),
				 errmsg("ordering \"durable\" requires a transaction")));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot use ordering \"durable\" during recovery"),
				 errdetail("A standby cannot write the horizon of ordering \"durable\"."),
				 errhint("Generate UUIDs on the primary, or lower \"fast_uuid.ordering\" and \"fast_uuid.required_ordering\" "
						 "to \"instance\" or \"session\".")));
	if (!find_sequence())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ordering \"durable\" requires sequence \"%s\" of extension \"fast_uuid\"", FUUID_HORIZON_NAME),
				 errdetail("The extension has no such sequence in its schema."),
				 errhint("Restore the sequence, or drop and re-create the extension, which discards the horizon.")));
}

static uint64
ns_of(HorizonValue value)
{
	return Min((uint64) value.us, FUUID_CLOCK_END_NS / FUUID_NS_PER_US) * FUUID_NS_PER_US;
}

static void
write_horizon(const Horizon *horizon, uint64 ns)
{
	HorizonValue value = {ns / FUUID_NS_PER_US, fuuid_shared->life};

	fuuid_horizon_write(horizon, value);
}

/*
 * Is the horizon one to begin after, of another life of the server or set by
 * setval(), which is how a dump restores it?
 */
static bool
must_begin_after(HorizonValue value)
{
	return value.us != 0 && value.life != fuuid_shared->life;
}

/*
 * The instance begins after what setval() has set, which need not have been a
 * superuser: that moves the time of all by a minute at most.
 */
static void
require_near_clock(const Horizon *horizon, HorizonValue value)
{
	uint64		clock_ns = fuuid_clock_read();

	if (value.life != 0 || ns_of(value) <= clock_ns + RESTORED_LEAD_NS)
		return;

	/* A client that does not read the message would keep the lock. */
	fuuid_horizon_unlock(horizon);
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("horizon of ordering \"durable\" is too far ahead of the clock"),
			 errdetail("It was set by setval(), as a restored dump does, and is " UINT64_FORMAT " ms ahead; the limit is "
					   UINT64_FORMAT " ms.",
					   (ns_of(value) - clock_ns) / FUUID_NS_PER_MS, RESTORED_LEAD_NS / FUUID_NS_PER_MS),
			 errhint("If the clock is wrong, correct it. To continue from the horizon, call fast_uuid_observe() with "
					 "uuidv7_fast_max() of it, with ordering \"durable\" in force. To give up the order with UUIDs "
					 "ahead of the clock, set sequence \"%s\" to the present time with setval(), or call "
					 "fast_uuid_reset_ordering().",
					 FUUID_HORIZON_NAME)));
}

/*
 * Learn how far values may be handed out, after moving the horizon to a stride
 * beyond this nanosecond, if it is less than half a stride ahead; without wait not
 * while another backend is at it.  False where the nanosecond, which was reserved
 * in this epoch, does not count: there was a horizon to begin after, or a reset.
 */
static bool
move_horizon(Oid locked, uint64 last_ns, uint64 epoch, bool wait)
{
	Horizon		horizon;
	HorizonValue found;
	uint64		horizon_ns;
	bool		begin_after;
	bool		counts;

	/* Dropped at this moment, of which forget_sequence() was told; or it can do without. */
	if (!fuuid_horizon_lock(&horizon, locked, wait))
		return !wait;
	found = fuuid_horizon_read(&horizon);
	horizon_ns = ns_of(found);
	begin_after = must_begin_after(found) && horizon_ns >= last_ns;
	if (begin_after)
		require_near_clock(&horizon, found);
	if (Max(last_ns, horizon_ns) > FUUID_CLOCK_END_NS - 1 - REACH_NS)
	{
		fuuid_horizon_unlock(&horizon);
		fuuid_clock_error(0);
	}
	counts = !begin_after || fuuid_instance_advance_to(horizon_ns, epoch, &last_ns);
	FUUID_TEST_POINT("horizon_read");
	counts = counts && fuuid_instance_epoch() == epoch;
	if (counts)
	{
		if (begin_after || horizon_ns < last_ns + STRIDE_NS / 2)
		{
			horizon_ns = last_ns + STRIDE_NS;
			write_horizon(&horizon, horizon_ns);
		}

		/* Opening the sequence may have let this backend forget it. */
		sequence = locked;
		covered_ns = horizon_ns / FUUID_NS_PER_US * FUUID_NS_PER_US;
		covered_epoch = epoch;
	}
	fuuid_horizon_unlock(&horizon);
	return counts && !begin_after;
}

/*
 * After a quick restart the horizon is ahead of a clock that is right: then that is
 * waited for, but no longer than a clock that is right would take.
 */
static void
wait_for_clock(Oid found)
{
	uint64		until_ns = fuuid_clock_monotonic_ns() + REACH_NS;

	for (;;)
	{
		HorizonValue value = fuuid_horizon_peek(found);
		uint64		clock_ns = fuuid_clock_read();
		uint64		lead_ns = ns_of(value) > clock_ns ? ns_of(value) - clock_ns : 0;
		uint64		monotonic_ns = fuuid_clock_monotonic_ns();

		/* Another backend may have begun; or it was a backward step. */
		if (!must_begin_after(value) || lead_ns == 0 || lead_ns > REACH_NS || monotonic_ns >= until_ns)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(lead_ns, until_ns - monotonic_ns) / FUUID_NS_PER_MS + 1, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Is there half a stride left beyond a nanosecond that was reserved in this epoch?
 */
static inline bool
is_well_covered(uint64 last_ns, uint64 epoch)
{
	return covered_epoch == epoch && last_ns + STRIDE_NS / 2 <= covered_ns;
}

/*
 * Let values up to this nanosecond, reserved in this epoch, be handed out; moves
 * the horizon ahead if need be.  False: they do not count, because this backend
 * knew of no horizon when it reserved them, the instance was reset, another horizon
 * restored, or the sequence dropped.  Raises an error where durable order cannot be had.
 */
bool
fuuid_durable_cover(uint64 last_ns, uint64 epoch)
{
	bool		looked = covered_ns != 0 && covered_epoch == epoch;
	Oid			found;

	if (is_well_covered(last_ns, epoch))
		return true;
	CHECK_FOR_INTERRUPTS();
	require_durable();

	/* From here on each opening of the sequence may let this backend forget it. */
	found = sequence;
	if (!looked)
		wait_for_clock(found);
	return move_horizon(found, last_ns, epoch, !looked || last_ns > covered_ns) && looked;
}

/*
 * fuuid_ordering_reserve() in the order that outlives the server.
 */
uint64
fuuid_durable_reserve(uint64 clock_ns, uint32 count)
{
	uint64		first_ns;

	if (!SUPPORTED)
		require_durable();
	first_ns = fuuid_instance_reserve(clock_ns, count);
	while (unlikely(!is_well_covered(fuuid_session_last_ns, fuuid_instance_last_epoch)) &&
		   !fuuid_durable_cover(fuuid_session_last_ns, fuuid_instance_last_epoch))
		first_ns = fuuid_instance_reserve(fuuid_clock_read(), count);
	return first_ns;
}

/*
 * The horizon, in microseconds since 1970-01-01 UTC; 0: none.
 */
int64
fuuid_durable_horizon(void)
{
	return find_sequence() ? fuuid_horizon_peek(sequence).us : 0;
}

/*
 * fuuid_instance_reset(), and return the horizon to the clock.
 */
void
fuuid_durable_reset(void)
{
	Horizon		horizon;
	uint64		clock_ns = fuuid_clock_read();	/* where that fails nothing is reset */

	do
		require_durable();
	while (!fuuid_horizon_lock(&horizon, sequence, true));
	(void) fuuid_horizon_read(&horizon);

	/* Under the lock, so that what was reserved before does not move the horizon after it. */
	fuuid_instance_reset();
	write_horizon(&horizon, clock_ns + STRIDE_NS);
	fuuid_horizon_unlock(&horizon);
}
