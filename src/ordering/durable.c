/*
 * durable.c
 *	  The order of all backends, also across restart, crash and promotion.
 *
 *	  A UUID is returned only if it is not beyond the horizon of its database, a time
 *	  that is flushed to disk.  In its next life (see SharedOrdering.life) the server
 *	  begins after the horizon.  A horizon lasts for a second: half a second before it
 *	  is reached, one backend moves it ahead while the others continue.
 *
 *	  The horizon is stored with the life of the server that set it, so that a backend
 *	  knows whether to begin after it, or to continue up to it.
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

#define STRIDE_NS	FUUID_NS_PER_S	/* how far the horizon is moved ahead */

/* How far a horizon is ahead of a correct clock at most; an observed UUID adds to it. */
#define REACH_NS	(2 * STRIDE_NS)

/* How far a horizon set by setval(), whoever called that, may be ahead of the clock. */
#define RESTORED_LEAD_NS (60 * FUUID_NS_PER_S)

/* The sequence in this database; InvalidOid if it has to be looked for. */
static Oid	sequence = InvalidOid;

/*
 * As far as this backend knows, UUIDs that are reserved in covered_epoch may be returned
 * up to covered_ns; 0 if it has not looked yet.
 */
static uint64 covered_ns = 0;
static uint64 covered_epoch = 0;

/*
 * Forget the sequence, which may have been dropped, rewritten, or created again.
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
 * Find the sequence.  Returns false if it is missing.
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
 * Raise an error if durable order is not available: before 17, outside of a transaction,
 * during recovery, or if the sequence is missing.
 */
static void
require_durable(void)
{
	if (!FUUID_DURABLE_SUPPORTED)
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

	/* An error of this has to come before the horizon's page is locked. */
	fuuid_shared_require();
}

static uint64
ns_of(HorizonValue value)
{
	return Min((uint64) value.us, FUUID_CLOCK_END_NS / FUUID_NS_PER_US) * FUUID_NS_PER_US;
}

static void
write_horizon(Horizon *horizon, uint64 ns)
{
	HorizonValue value = {ns / FUUID_NS_PER_US, fuuid_shared->life};

	fuuid_horizon_write(horizon, value);
}

/*
 * Must this life of the server begin after a horizon, because another life has set it, or
 * setval(), as a restored dump does?
 */
static bool
must_begin_after(HorizonValue value)
{
	return value.us != 0 && value.life != fuuid_shared->life;
}

/*
 * Raise an error if setval() has set the horizon too far ahead of the clock.  The caller
 * of setval() need not be a superuser, and the instance would begin after that horizon.
 */
static void
require_near_clock(Horizon *horizon, HorizonValue value, uint64 clock_ns)
{
	if (value.life != 0 || ns_of(value) <= clock_ns + RESTORED_LEAD_NS)
		return;

	/* Otherwise a client that does not read the message would keep the lock. */
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
 * Learn how far UUIDs may be returned.  If the horizon is less than half a stride ahead
 * of last_ns, first move it to a stride beyond last_ns; without "wait", do nothing if
 * another backend has the lock.  Returns false if last_ns, reserved in this epoch, does
 * not count, because there was a horizon to begin after, or a reset.
 */
static bool
move_horizon(Oid locked, uint64 last_ns, uint64 epoch, bool wait)
{
	uint64		clock_ns = fuuid_clock_read();	/* not with the page locked: it can fail */
	Horizon		horizon;
	HorizonValue found;
	uint64		horizon_ns;
	bool		begin_after;
	bool		counts;

	/*
	 * Without "wait", moving the horizon is left to others.  With "wait", the sequence
	 * has just been dropped, of which forget_sequence() was told.
	 */
	if (!fuuid_horizon_lock(&horizon, locked, wait))
		return !wait;
	found = fuuid_horizon_read(&horizon);
	horizon_ns = ns_of(found);
	begin_after = must_begin_after(found) && horizon_ns >= last_ns;
	if (begin_after)
		require_near_clock(&horizon, found, clock_ns);
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

		/* Opening the sequence may have called forget_sequence(). */
		sequence = locked;
		covered_ns = horizon_ns / FUUID_NS_PER_US * FUUID_NS_PER_US;
		covered_epoch = epoch;
	}
	fuuid_horizon_unlock(&horizon);
	return counts && !begin_after;
}

/*
 * Wait for the clock to reach the horizon.  After a quick restart the horizon is ahead of
 * a correct clock; wait no longer than such a clock would take.
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

		/* Another backend has begun, or the clock has stepped backwards. */
		if (!must_begin_after(value) || lead_ns == 0 || lead_ns > REACH_NS || monotonic_ns >= until_ns)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(lead_ns, until_ns - monotonic_ns) / FUUID_NS_PER_MS + 1, PG_WAIT_EXTENSION);
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Is half a stride left beyond a nanosecond that was reserved in this epoch?
 */
static inline bool
is_well_covered(uint64 last_ns, uint64 epoch)
{
	return covered_epoch == epoch && last_ns + STRIDE_NS / 2 <= covered_ns;
}

/*
 * Make sure that UUIDs up to this nanosecond, reserved in this epoch, may be returned;
 * move the horizon ahead if need be.  Returns false if they do not count, because this
 * backend knew of no horizon when it reserved them, the instance was reset, another
 * horizon was restored, or the sequence was dropped.  Raises an error if durable order is
 * not available.
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

	/* From here on, opening the sequence may call forget_sequence(). */
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

	if (!FUUID_DURABLE_SUPPORTED)
		require_durable();
	first_ns = fuuid_instance_reserve(clock_ns, count);
	while (unlikely(!is_well_covered(fuuid_session_last_ns, fuuid_instance_last_epoch)) &&
		   !fuuid_durable_cover(fuuid_session_last_ns, fuuid_instance_last_epoch))
		first_ns = fuuid_instance_reserve(fuuid_clock_read(), count);
	return first_ns;
}

/*
 * The horizon, in microseconds since 1970-01-01 UTC; 0 if there is none.
 */
int64
fuuid_durable_horizon(void)
{
	return find_sequence() ? fuuid_horizon_peek(sequence).us : 0;
}

/*
 * Reset the instance, and return the horizon to the clock.
 */
void
fuuid_durable_reset(void)
{
	Horizon		horizon;
	uint64		clock_ns = fuuid_clock_read();	/* if that fails, nothing is reset */

	do
		require_durable();
	while (!fuuid_horizon_lock(&horizon, sequence, true));

	/* Under the lock: no earlier reservation can move the horizon after the reset. */
	fuuid_instance_reset();
	write_horizon(&horizon, clock_ns + STRIDE_NS);
	fuuid_horizon_unlock(&horizon);
}
