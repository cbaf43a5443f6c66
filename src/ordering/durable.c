/*
 * durable.c
 *	  The order of all backends, also across restart, crash and promotion.
 *
 *	  A UUID is returned only if it is not beyond the upper bound of its
 *	  database, a time that is flushed to disk and that the next incarnation
 *	  of the server begins after.  A bound lasts for a second: half a second
 *	  before it is reached, one backend moves it ahead, while others continue.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "compat.h"
#include "miscadmin.h"
#include "ordering/ordering.h"
#include "ordering/shared.h"
#include "ordering/upper_bound.h"
#include "storage/latch.h"
#include "test_point.h"
#include "utils/inval.h"
#include "utils/rel.h"
#include "utils/wait_event.h"

#define STRIDE_NS	FUUID_NS_PER_S	/* how far the upper bound is moved ahead */

/* How far it is ahead of a correct clock at most, with an observed UUID. */
#define REACH_NS	(2 * STRIDE_NS)

/* How far setval() may put it ahead; pg_upgrade does by up to REACH_NS. */
#define SETVAL_LEAD_NS	(5 * FUUID_NS_PER_S)

/* The sequence in this database; InvalidOid if it has to be looked for. */
static Oid	sequence = InvalidOid;

/* Up to here this backend knows that UUIDs may be returned; 0: not looked. */
static uint64 covered_ns = 0;

/* The sequence may have been dropped, rewritten, or created again. */
static void
forget_sequence(Datum arg pg_attribute_unused(), Oid relation)
{
	if (relation == sequence || relation == InvalidOid)
	{
		sequence = InvalidOid;
		covered_ns = 0;
	}
}

static bool
find_sequence(void)
{
	static bool registered = false;

	if (!registered)
		CacheRegisterRelcacheCallback(forget_sequence, (Datum) 0);
	registered = true;
	if (!OidIsValid(sequence))
		sequence = fuuid_upper_bound_find();
	return OidIsValid(sequence);
}

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
				 errdetail("A standby cannot write the upper bound of ordering \"durable\"."),
				 errhint("Generate UUIDs on the primary, or lower \"fast_uuid.ordering\" and \"fast_uuid.required_ordering\" to \"instance\" or \"session\".")));
	if (!find_sequence())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("ordering \"durable\" requires sequence \"%s\" of extension \"fast_uuid\"", FUUID_UPPER_BOUND_NAME),
				 errdetail("The extension has no such sequence in its schema."),
				 errhint("Restore the sequence, or drop and re-create the extension, which discards the upper bound.")));
}

static uint64
ns_of(UpperBoundValue value)
{
	return Min((uint64) value.us, FUUID_CLOCK_END_NS / FUUID_NS_PER_US) *
		FUUID_NS_PER_US;
}

/*
 * UUIDs may be returned up to here, until forget_sequence() is called for the
 * sequence that is locked.  Opening it may have called that before.
 */
static void
set_covered(const UpperBound *bound, uint64 ns)
{
	sequence = RelationGetRelid(bound->sequence);
	covered_ns = ns;
}

/*
 * Must this incarnation of the server begin after an upper bound, because
 * another one has set it, or setval(), as pg_upgrade does?  One that was never
 * set is before all times.
 */
static bool
must_begin_after(UpperBoundValue value)
{
	return !FUUID_SAME_INCARNATION(value.incarnation,
								   fuuid_shared->incarnation);
}

/* Move the upper bound, which is locked, to a stride beyond last_ns. */
void
fuuid_durable_write(UpperBound *bound, uint64 last_ns)
{
	UpperBoundValue value =
	{(last_ns + STRIDE_NS) / FUUID_NS_PER_US, fuuid_shared->incarnation};

	fuuid_upper_bound_write(bound, value);
	set_covered(bound, value.us * FUUID_NS_PER_US);
}

/*
 * Learn how far UUIDs may be returned.  If the upper bound is less than half a
 * stride ahead of last_ns, first move it to a stride beyond last_ns; without
 * "wait", leave that to another backend that is at it.  Returns false if UUIDs
 * must be reserved again: others are later now, or the sequence is another.
 */
static bool
move_upper_bound(Oid locked, uint64 last_ns, bool wait)
{
	uint64		clock_ns = fuuid_clock_read();	/* can fail: before the lock */
	UpperBound	bound;
	UpperBoundValue found;
	uint64		bound_ns;
	bool		begin_after;

	/* Whoever leaves it to another may by now have forgotten covered_ns. */
	if (!fuuid_upper_bound_lock(&bound, locked, wait))
		return !wait && last_ns <= covered_ns;
	found = fuuid_upper_bound_read(&bound);
	bound_ns = ns_of(found);
	begin_after = must_begin_after(found) && bound_ns >= last_ns;

	/* A reset in this incarnation has given up what was set before it. */
	if (!must_begin_after(found) &&
		found.incarnation != fuuid_shared->incarnation)
		bound_ns = 0;

	/*
	 * The caller of setval() need not be a superuser, and the whole instance
	 * would begin after its bound.  The lock is released before each error: a
	 * client that does not read the message would keep it.
	 */
	if (begin_after && found.incarnation == 0 &&
		bound_ns > clock_ns + SETVAL_LEAD_NS)
	{
		fuuid_upper_bound_unlock(&bound);
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("upper bound of ordering \"durable\" is too far ahead of the clock"),
				 errdetail("It was set by setval() or pg_upgrade, and is " UINT64_FORMAT " ms ahead; the limit is " UINT64_FORMAT " ms.",
						   (bound_ns - clock_ns) / FUUID_NS_PER_MS,
						   SETVAL_LEAD_NS / FUUID_NS_PER_MS),
				 errhint("If the clock is wrong, correct it. To continue from the upper bound, raise \"fast_uuid.max_clock_lead\" and call fast_uuid_observe() with uuidv7_fast_max() of it, with ordering \"durable\" in force. To give up the order with UUIDs ahead of the clock, call fast_uuid_reset_ordering().")));
	}
	if (Max(last_ns, bound_ns) > FUUID_CLOCK_END_NS - 1 - REACH_NS)
	{
		fuuid_upper_bound_unlock(&bound);
		fuuid_clock_error(0);
	}

	/*
	 * Once the sequence is marked as this incarnation's, others begin at the
	 * clock's time, not after this bound: the order must pass it before.  That
	 * last_ns is beyond it is not enough: an observed UUID is passed later.
	 */
	if (must_begin_after(found))
		last_ns = Max(last_ns, fuuid_instance_advance_to(bound_ns));
	FUUID_TEST_POINT("upper_bound_read");
	Assert(!must_begin_after(found) ||
		   pg_atomic_read_u64(&fuuid_shared->last_ns) >= bound_ns);

	set_covered(&bound, bound_ns);
	if (bound_ns < last_ns + STRIDE_NS / 2)
		fuuid_durable_write(&bound, last_ns);
	fuuid_upper_bound_unlock(&bound);
	FUUID_TEST_POINT("upper_bound_moved");
	return !begin_after;
}

/*
 * Wait for the clock to reach the upper bound.  After a quick restart that is
 * ahead of a correct clock; wait no longer than such a clock would take.
 */
static void
wait_for_clock(Oid found)
{
	uint64		until_ns = fuuid_clock_monotonic_ns() + REACH_NS;

	for (;;)
	{
		UpperBoundValue value = fuuid_upper_bound_peek(found);
		uint64		clock_ns = fuuid_clock_read();
		uint64		lead_ns = Max(ns_of(value), clock_ns) - clock_ns;
		uint64		now_ns = fuuid_clock_monotonic_ns();

		/* Another backend has begun, or the clock has stepped backwards. */
		if (!must_begin_after(value) || lead_ns == 0 || lead_ns > REACH_NS ||
			now_ns >= until_ns)
			break;
		(void) WaitLatch(MyLatch,
						 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
						 Min(lead_ns, until_ns - now_ns) / FUUID_NS_PER_MS + 1,
						 FUUID_WAIT_EVENT("FastUuidUpperBound"));
		ResetLatch(MyLatch);
		CHECK_FOR_INTERRUPTS();
	}
}

/*
 * Make sure that UUIDs up to this nanosecond may be returned.  Returns false
 * if they must be reserved again, also because this backend had not looked
 * before it reserved them: others may have begun after an earlier bound.
 * Raises an error if durable order is not available.
 */
static bool
try_to_cover(uint64 last_ns)
{
	bool		looked = covered_ns != 0;
	bool		wait = last_ns > covered_ns;
	Oid			found;

	if (likely(last_ns + STRIDE_NS / 2 <= covered_ns) ||
		(last_ns <= covered_ns && !IsTransactionState()))
		return true;
	CHECK_FOR_INTERRUPTS();
	require_durable();

	/* From here on, opening the sequence may call forget_sequence(). */
	found = sequence;
	if (!looked)
		wait_for_clock(found);
	return move_upper_bound(found, last_ns, wait) && looked;
}

/* Make sure that UUIDs up to this nanosecond may be returned. */
void
fuuid_durable_cover(uint64 last_ns)
{
	while (!try_to_cover(last_ns))
		;
}

/* fuuid_ordering_reserve() in the order that outlives the server. */
uint64
fuuid_durable_reserve(uint64 clock_ns, uint32 *count)
{
	uint32		wanted = *count;
	uint64		first_ns;

	if (!FUUID_DURABLE_SUPPORTED)
		require_durable();
	first_ns = fuuid_instance_reserve(clock_ns, count);
	while (!try_to_cover(fuuid_session_last_ns))
	{
		*count = wanted;
		first_ns = fuuid_instance_reserve(fuuid_clock_read(), count);
	}
	Assert(fuuid_session_last_ns <= covered_ns);
	return first_ns;
}

/*
 * The upper bound, in microseconds since 1970-01-01 UTC; 0 if there is none.
 */
int64
fuuid_durable_upper_bound(void)
{
	return find_sequence() ?
		ns_of(fuuid_upper_bound_peek(sequence)) / FUUID_NS_PER_US : 0;
}

/* After a reset of the instance others can move the upper bound backwards. */
void
fuuid_durable_forget(void)
{
	covered_ns = 0;
}

/* Lock the upper bound, for a reset. */
void
fuuid_durable_lock(UpperBound *bound)
{
	do
		require_durable();
	while (!fuuid_upper_bound_lock(bound, sequence, true));
}
