/*
 * order.c
 *	  The order of feed ids: doc/internals/ordering-proof.md says why it holds.
 *
 *	  last_ns, a 64-bit word in shared memory, is advanced by
 *	  compare-and-exchange.  An id is returned only if it is not beyond the
 *	  upper bound of its database, a time that is flushed to disk and that the
 *	  next incarnation of the server begins after.  A bound lasts for a second:
 *	  half a second before its end one backend moves it, while others continue.
 */
#include "postgres.h"

#include "access/xact.h"
#include "access/xlog.h"
#include "clock.h"
#include "compat.h"
#include "feed/feed.h"
#include "test_point.h"
#include "utils/inval.h"
#include "utils/rel.h"

#define STRIDE_NS	FUUID_NS_PER_S	/* how far the upper bound is moved ahead */

/* How far it is ahead of a correct clock at most, with an observed UUID. */
#define REACH_NS	(2 * STRIDE_NS)

/* How far setval() may put it ahead; pg_upgrade does by up to REACH_NS. */
#define SETVAL_LEAD_NS	(5 * FUUID_NS_PER_S)

uint64		fuuid_feed_latest_ns = 0;
uint64		fuuid_feed_first_ns = FUUID_NOTHING_PUBLISHED;

/* The sequence in this database; InvalidOid if it has to be looked for. */
static Oid	sequence = InvalidOid;

/* Up to here this backend knows that ids may be returned; 0: not looked. */
static uint64 covered_ns = 0;

/*
 * The clock seems to be behind last_ns, as read.  Note the lead, and raise an
 * error if one more id leads too far.  This backend may have been preempted
 * since it read the clock, while others went on: only a reading that is
 * younger than the latest id can tell.
 */
static void
require_lead(uint64 last)
{
	pg_atomic_uint64 *largest = &fuuid_shared->largest_clock_lead_ns;
	uint64		noted = pg_atomic_read_u64(largest);
	uint64		clock_ns;
	uint64		lead;

	pg_memory_barrier();
	clock_ns = fuuid_clock_read();
	lead = Max(last, clock_ns) - clock_ns;
	while (noted < lead &&
		   !pg_atomic_compare_exchange_u64(largest, &noted, lead))
		;
	if (last >= clock_ns)
		fuuid_clock_require_lead(last - clock_ns + 1);
}

/*
 * Return the nanosecond of the next feed id, and reserve it: the clock's time
 * or, if the clock is not ahead of the latest one, the nanosecond after that.
 * Raises an error if there is no shared memory, or if the clock is too far
 * behind.
 */
static uint64
reserve_word(uint64 clock_ns)
{
	uint64		seen;
	uint64		ns;

	if (unlikely(!fuuid_in_flight_joined))
	{
		fuuid_in_flight_join();
		clock_ns = fuuid_clock_read();
	}

	seen = pg_atomic_read_u64(&fuuid_shared->last_ns);
	do
	{
		ns = Max(seen + 1, clock_ns);
		if (unlikely(ns < fuuid_in_flight_published_ns))
			fuuid_in_flight_publish(ns);
		if (unlikely(seen >= clock_ns))
		{
			if (seen - clock_ns + 1 >= FUUID_SMALL_LEAD_NS)
				require_lead(seen);
			fuuid_clock_require_end(seen);
		}
		Assert(!IsTransactionState() || fuuid_in_flight_published_ns <= ns);
	} while (!pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen,
											 ns));
	FUUID_TEST_POINT("reserved");
	Assert(ns > seen && ns > fuuid_feed_latest_ns);
	return ns;
}

/* Make all further feed ids later than this nanosecond.  Returns last_ns. */
uint64
fuuid_feed_advance_to(uint64 ns)
{
	uint64		seen = pg_atomic_read_u64(&fuuid_shared->last_ns);

	Assert(fuuid_in_flight_joined);
	while (seen < ns)
		if (pg_atomic_compare_exchange_u64(&fuuid_shared->last_ns, &seen, ns))
			return ns;
	return seen;
}

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
require_sequence(void)
{
	if (!IsTransactionState())
		ereport(ERROR,
				(errcode(ERRCODE_NO_ACTIVE_SQL_TRANSACTION),
				 errmsg("feed ids require a transaction")));
	if (RecoveryInProgress())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("cannot use the order of feed ids during recovery"),
				 errdetail("A standby cannot write the upper bound."),
				 errhint("Use it on the primary.")));
	if (!find_sequence())
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("feed ids require sequence \"%s\" of extension \"fast_uuid\"", FUUID_UPPER_BOUND_NAME),
				 errdetail("The extension has no such sequence in its schema that belongs to a superuser."),
				 errhint("Restore the sequence or its owner, or drop and re-create the extension, which discards the upper bound.")));
}

static uint64
ns_of(UpperBoundValue value)
{
	return Min((uint64) value.us, FUUID_CLOCK_END_NS / FUUID_NS_PER_US) *
		FUUID_NS_PER_US;
}

/*
 * Must this incarnation of the server begin after an upper bound, because
 * another one has set it, or setval(), as pg_upgrade does?
 */
static bool
must_begin_after(UpperBoundValue value)
{
	return value.incarnation >> FUUID_RESET_BITS !=
		fuuid_shared->incarnation >> FUUID_RESET_BITS;
}

/* Move the upper bound, which is locked, to a stride beyond last_ns. */
void
fuuid_feed_write_bound(UpperBound *bound, uint64 last_ns)
{
	UpperBoundValue value =
	{(last_ns + STRIDE_NS) / FUUID_NS_PER_US, fuuid_shared->incarnation};

	fuuid_upper_bound_write(bound, value);
	sequence = RelationGetRelid(bound->sequence);
	covered_ns = value.us * FUUID_NS_PER_US;
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
	bool		is_earlier;		/* of another incarnation */
	bool		begin_after;

	/* Whoever leaves it to another may by now have forgotten covered_ns. */
	if (!fuuid_upper_bound_lock(&bound, locked, wait))
		return !wait && last_ns <= covered_ns;
	found = fuuid_upper_bound_read(&bound);
	bound_ns = ns_of(found);
	is_earlier = must_begin_after(found);
	begin_after = is_earlier && bound_ns >= last_ns;

	/* A reset in this incarnation has given up what was set before it. */
	if (!is_earlier && found.incarnation != fuuid_shared->incarnation)
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
				 errmsg("upper bound of feed ids is too far ahead of the clock"),
				 errdetail("It was set by setval() or pg_upgrade, and is " UINT64_FORMAT " ms ahead; the limit is " UINT64_FORMAT " ms.",
						   (bound_ns - clock_ns) / FUUID_NS_PER_MS,
						   SETVAL_LEAD_NS / FUUID_NS_PER_MS),
				 errhint("If the clock is wrong, correct it. To continue from the upper bound, raise \"fast_uuid.max_clock_lead\" and call uuidv7_feed_observe() with uuidv7_fast_max() of it. To give up the order with ids ahead of the clock, call uuidv7_feed_reset().")));
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
	if (is_earlier)
		last_ns = Max(last_ns, fuuid_feed_advance_to(bound_ns));
	FUUID_TEST_POINT("upper_bound_read");
	Assert(!is_earlier ||
		   pg_atomic_read_u64(&fuuid_shared->last_ns) >= bound_ns);

	/* Opening the sequence may have called forget_sequence(). */
	sequence = locked;
	covered_ns = bound_ns;
	if (bound_ns < last_ns + STRIDE_NS / 2)
		fuuid_feed_write_bound(&bound, last_ns);
	fuuid_upper_bound_unlock(&bound);
	FUUID_TEST_POINT("upper_bound_moved");
	return !begin_after;
}

/*
 * Wait for the clock to reach the upper bound, which after a quick restart is
 * ahead of a correct clock, no longer than such a clock would take.
 */
static void
wait_for_clock(Oid found)
{
	uint64		until_us = fuuid_clock_monotonic_us() +
		REACH_NS / FUUID_NS_PER_US;

	for (;;)
	{
		UpperBoundValue value = fuuid_upper_bound_peek(found);
		uint64		clock_ns = fuuid_clock_read();
		uint64		lead_ns = Max(ns_of(value), clock_ns) - clock_ns;
		uint64		now_us = fuuid_clock_monotonic_us();

		/* Another backend has begun, or the clock has stepped backwards. */
		if (!must_begin_after(value) || lead_ns == 0 || lead_ns > REACH_NS ||
			now_us >= until_us)
			break;
		fuuid_clock_sleep(Min(lead_ns / FUUID_NS_PER_US, until_us - now_us),
						  FUUID_WAIT_EVENT("FastUuidUpperBound"));
	}
}

/*
 * Make sure that ids up to this nanosecond may be returned.  Returns false
 * if they must be reserved again, also because this backend had not looked
 * before it reserved them: others may have begun after an earlier bound.
 */
static bool
try_to_cover(uint64 last_ns)
{
	bool		looked = covered_ns != 0;
	bool		wait = last_ns > covered_ns;
	Oid			found;

	if (last_ns <= covered_ns && !IsTransactionState())
		return true;
	CHECK_FOR_INTERRUPTS();
	require_sequence();

	/* From here on, opening the sequence may call forget_sequence(). */
	found = sequence;
	if (!looked)
		wait_for_clock(found);
	return move_upper_bound(found, last_ns, wait) && looked;
}

/* Cover ids up to this nanosecond.  Raises an error if that cannot be. */
void
fuuid_feed_cover(uint64 last_ns)
{
	while (last_ns + STRIDE_NS / 2 > covered_ns && !try_to_cover(last_ns))
		;
}

/*
 * Return the nanosecond of the next feed id, covered by the upper bound.
 * Raises an error if that cannot be, or as reserve_word() does.
 */
uint64
fuuid_feed_reserve(uint64 clock_ns)
{
	uint64		ns = reserve_word(clock_ns);

	while (unlikely(ns + STRIDE_NS / 2 > covered_ns) && !try_to_cover(ns))
		ns = reserve_word(fuuid_clock_read());
	Assert(ns <= covered_ns);

	/* Outside of a transaction nothing is published, nor covered. */
	if (unlikely(ns < fuuid_feed_first_ns) &&
		fuuid_in_flight_published_ns != FUUID_NOTHING_PUBLISHED)
		fuuid_feed_first_ns = ns;
	fuuid_feed_latest_ns = ns;
	return ns;
}

/* The upper bound, in microseconds since 1970-01-01 UTC; 0 if there is none. */
int64
fuuid_feed_upper_bound(void)
{
	return find_sequence() ?
		ns_of(fuuid_upper_bound_peek(sequence)) / FUUID_NS_PER_US : 0;
}

/*
 * Lock the upper bound, for a reset, after which others can move it backwards:
 * what this backend knows of it no longer counts.
 */
void
fuuid_feed_lock_bound(UpperBound *bound)
{
	covered_ns = 0;
	do
		require_sequence();
	while (!fuuid_upper_bound_lock(bound, sequence, true));
}
