/*
 * test_order.c
 *	  session.h and the filling of clock.h: order whatever the clock does.
 */
#include "postgres.h"

#include <setjmp.h>

#include "common/clock.h"
#include "keys/session.h"
#include "tap.h"

uint64		fuuid_session_last_ns = 0;

/* Where the end of time is expected. */
static jmp_buf at_the_end;
static bool end_is_expected = false;

void
fuuid_clock_error(int clock_errno)
{
	if (clock_errno == 0 && end_is_expected)
		longjmp(at_the_end, 1);
	printf("Bail out! clock failed: %d\n", clock_errno);
	exit(1);
}

/* The nanosecond of the value that a reading of the clock gives. */
static uint64
next_at(uint64 ns)
{
	uint32		count = 1;

	return fuuid_session_reserve(ns, &count);
}

/* Is there no room after this nanosecond? */
static bool
ends(uint64 last_ns)
{
	if (setjmp(at_the_end) != 0)
	{
		end_is_expected = false;
		return true;
	}
	end_is_expected = true;
	fuuid_clock_require_end(last_ns);
	end_is_expected = false;
	return false;
}

int
main(void)
{
	const uint64 t = UINT64CONST(1800000000123456789);
	const uint64 end_of_second = UINT64CONST(1800000099999999999);
	const uint64 later = end_of_second + 100 * FUUID_NS_PER_S;
	uint32		count = 100;

	ok(next_at(t) == t, "a clock that advanced is taken as it is");
	ok(next_at(t) == t + 1, "a clock that stands still gives 1 ns more");
	ok(next_at(t - FUUID_NS_PER_S * 3600) == t + 2, "a clock stepped backwards gives 1 ns more");
	ok(next_at(t + 3) == t + 3, "a clock that has caught up is taken again");
	ok(next_at(end_of_second) == end_of_second && next_at(t) == end_of_second + 1,
	   "1 ns more may be the next second");

	ok(fuuid_session_reserve(end_of_second + 5001, &count) == end_of_second + 5001 && count == 100,
	   "a bulk call begins with the clock's time");
	ok(next_at(end_of_second + 5002) == end_of_second + 1 + 5000 + 100,
	   "the next value comes after those that a bulk call has reserved");
	ok(fuuid_session_reserve(t, &count) == end_of_second + 2 + 5000 + 100 && count == 1,
	   "a bulk call with the clock behind takes one");

	ok(next_at(later) == later && fuuid_session_last_ns == later, "a clock that has caught up is taken again after that");

	ok(!ends(FUUID_CLOCK_END_NS - 2) && ends(FUUID_CLOCK_END_NS - 1), "the last nanosecond of the clock is the last value's");

	ok(fuuid_clock_read() / FUUID_NS_PER_S - (uint64) time(NULL) + 1 <= 2, "a reading is the time since 1970");

	return done_testing();
}
