/*
 * ordering_durable.c
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
#include "horizon.h"
#include "miscadmin.h"
#include "ordering_durable.h"
#include "ordering_instance.h"
#include "shared_ordering.h"
#include "storage/latch.h"
#include "test_point.h"
#include "utils/inval.h"
#include "utils/wait_event.h"

#define STRIDE_NS	FUUID_NS_PER_S
#define NS_PER_US	1000

/* How far a horizon is ahead of a clock that is right: an observed UUID adds to it. */
#define REACH_NS	(2 * STRIDE_NS)

#ifdef FUUID_HAVE_NAMED_SEGMENTS

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
 * Raise an error where durable order cannot be had: during recovery, outside of a
 * transaction, or where the sequence is missing.
 */
void
fuuid_durable_require(void)
{
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
				 errdetail("The sequence does not exist, is not a member of the extension, or is not owned by a superuser."),
				 errhint("Restore the sequence or its owner, or drop and re-create the extension, which discards the horizon.")));
	fuuid_shared_require();
}

static uint64
ns_of(HorizonValue value)
{
	return Min((uint64) value.us, FUUID_CLOCK_END_NS / NS_PER_US) * NS_PER_US;
}

static uint64
read_clock_ns(void)
{
	struct timespec now;

	fuuid_clock_read(&now);
	return fuuid_ns_of_time(&now);
}

static void
write_horizon(const Horizon *horizon, uint64 ns)
{
	HorizonValue value = {ns / NS_PER_US, fuuid_shared->life};

	fuuid_horizon_write(horizon, value);
}

/*
 * Is the horizon one to begin after, of another life of the server or set by
 * setval(), which is how a dump restores it?
 */
static bool
is_foreign(HorizonValue value)
{
	return value.us != 0 && value.life != fuuid_shared->life;
}

/*
 * Where others than superusers may call setval(), they do not move the time of the
 * whole instance ahead by it; nobody moves it beyond what there is.
 */
static void
check_foreign(HorizonValue value, bool believed)
{
	uint64		clock_ns = read_clock_ns();
	uint64		horizon_ns = ns_of(value);

	if (believed)
	{
		if (horizon_ns > FUUID_CLOCK_END_NS - REACH_NS)
			ereport(ERROR,
					(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
					 errmsg("horizon of ordering \"durable\" is out of range"),
					 errdetail("Sequence \"%s\" holds a time after the year 2554.", FUUID_HORIZON_NAME),
					 errhint("Call fast_uuid_reset_ordering() with ordering \"durable\" in force.")));
		return;
	}
	if (horizon_ns <= clock_ns + STRIDE_NS)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("horizon of ordering \"durable\" is too far ahead of the clock"),
			 errdetail("The horizon is " UINT64_FORMAT " ms ahead of the clock. It was set by setval(), "
					   "which a role other than a superuser may call on the sequence.",
					   (horizon_ns - clock_ns) / FUUID_NS_PER_MS),
			 errhint("If the value is correct, revoke the UPDATE privilege on sequence \"%s\", and membership in "
					 "\"pg_write_all_data\", from such roles. Otherwise, call fast_uuid_reset_ordering() with ordering "
					 "\"durable\" in force.", FUUID_HORIZON_NAME)));
}

/*
 * Learn how far values may be handed out, after moving the horizon to a stride
 * beyond this nanosecond, if it is less than half a stride ahead; without wait not
 * while another backend is at it.  False where the nanosecond, which was reserved
 * in this epoch, does not count: there was a horizon to begin after, or a reset,
 * whose end is not waited for here, because under the lock no cancel would be
 * answered.
 */
static bool
move_horizon(Oid locked, uint64 last_ns, uint64 epoch, bool wait)
{
	Horizon		horizon;
	HorizonValue found;
	uint64		horizon_ns;
	bool		foreign;
	bool		believed;
	bool		counts;

	/* Dropped at this moment, of which forget_sequence() was told; or it can do without. */
	if (!fuuid_horizon_lock_and_read(&horizon, locked, wait, &found, &believed))
		return !wait;
	foreign = is_foreign(found);
	horizon_ns = ns_of(found);
	if (foreign)
		check_foreign(found, believed);
	fuuid_clock_check_end(Max(last_ns, horizon_ns), REACH_NS);
	counts = fuuid_instance_is_epoch(epoch);
	if (foreign)
	{
		uint64		latest_ns;

		counts = counts && fuuid_instance_raise(horizon_ns, epoch, &latest_ns);
		if (counts)
			last_ns = Max(last_ns, latest_ns);
	}
	FUUID_TEST_POINT("horizon_read");
	counts = counts && fuuid_instance_is_epoch(epoch);
	if (counts)
	{
		if (foreign || horizon_ns < last_ns + STRIDE_NS / 2)
		{
			horizon_ns = last_ns + STRIDE_NS;
			write_horizon(&horizon, horizon_ns);
		}

		/* Opening the sequence may have let this backend forget it. */
		sequence = locked;
		covered_ns = horizon_ns / NS_PER_US * NS_PER_US;
		covered_epoch = epoch;
	}
	fuuid_horizon_unlock(&horizon);
	return counts && !foreign;
}

/*
 * After a quick restart the horizon is ahead of a clock that is right: then that is
 * waited for, but no longer than a clock that is right would take.
 */
static void
wait_for_clock(Oid found)
{
	uint64		began_ns = fuuid_clock_monotonic_ns();
	uint64		longest_ns = 0;

	for (;;)
	{
		HorizonValue value = fuuid_horizon_peek(found);
		uint64		clock_ns = read_clock_ns();
		uint64		lead_ns = ns_of(value) > clock_ns ? ns_of(value) - clock_ns : 0;
		uint64		waited_ns = fuuid_clock_monotonic_ns() - began_ns;

		if (longest_ns == 0)
			longest_ns = lead_ns;

		/* Another backend may have begun; or it was a backward step. */
		if (!is_foreign(value) || lead_ns == 0 || lead_ns > REACH_NS || waited_ns >= longest_ns)
			break;
		(void) WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(lead_ns, longest_ns - waited_ns) / FUUID_NS_PER_MS + 1, PG_WAIT_EXTENSION);
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
 * knew of no horizon when it reserved them, the instance was reset, or another
 * horizon restored.  Raises an error where durable order cannot be had.
 */
bool
fuuid_durable_cover(uint64 last_ns, uint64 epoch)
{
	bool		looked = covered_ns != 0 && covered_epoch == epoch;
	Oid			found;

	if (is_well_covered(last_ns, epoch))
		return true;
	CHECK_FOR_INTERRUPTS();
	fuuid_durable_require();

	/* From here on each opening of the sequence may let this backend forget it. */
	found = sequence;
	if (!looked)
		wait_for_clock(found);
	return move_horizon(found, last_ns, epoch, !looked || last_ns > covered_ns) && looked;
}

/*
 * The same for a bound that nothing later may be below: where this database has a
 * horizon, or its sequence and durable order in force; else true.
 */
bool
fuuid_durable_cover_if_used(uint64 last_ns, uint64 epoch, bool in_force)
{
	if (covered_ns == 0 && (!find_sequence() || (!in_force && fuuid_durable_horizon() == 0)))
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
	while (unlikely(!is_well_covered(fuuid_session_last_ns, fuuid_instance_own_epoch)) &&
		   !fuuid_durable_cover(fuuid_session_last_ns, fuuid_instance_own_epoch))
	{
		(void) fuuid_instance_epoch();
		fuuid_clock_read(now);
		fuuid_instance_reserve(now, count);
	}
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

	for (;;)
	{
		fuuid_durable_require();
		if (!fuuid_horizon_lock(&horizon, sequence, true))
			continue;
		if (fuuid_instance_try_reset())
			break;

		/* Under the lock no cancel would end the wait for another one. */
		fuuid_horizon_unlock(&horizon);
		(void) fuuid_instance_epoch();
	}
	write_horizon(&horizon, read_clock_ns() + STRIDE_NS);
	fuuid_horizon_unlock(&horizon);
}

#else							/* !FUUID_HAVE_NAMED_SEGMENTS */

void
fuuid_durable_require(void)
{
	ereport(ERROR,
			(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
			 errmsg("ordering \"durable\" requires PostgreSQL 17 or later"),
			 errhint("Lower \"fast_uuid.ordering\" and \"fast_uuid.required_ordering\" to \"instance\" or \"session\".")));
}

void
fuuid_durable_reserve(struct timespec *now pg_attribute_unused(), uint32 count pg_attribute_unused())
{
	fuuid_durable_require();
}

bool
fuuid_durable_cover(uint64 last_ns pg_attribute_unused(), uint64 epoch pg_attribute_unused())
{
	fuuid_durable_require();
	return false;
}

bool
fuuid_durable_cover_if_used(uint64 last_ns pg_attribute_unused(), uint64 epoch pg_attribute_unused(),
							bool in_force pg_attribute_unused())
{
	return true;
}

int64
fuuid_durable_horizon(void)
{
	return 0;
}

void
fuuid_durable_reset(void)
{
	fuuid_durable_require();
}
#endif							/* FUUID_HAVE_NAMED_SEGMENTS */
