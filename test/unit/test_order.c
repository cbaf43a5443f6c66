/*
 * test_order.c
 *	  ordering.h and the filling of clock.h: order whatever the clock does.
 */
#include "c.h"

#include <errno.h>

#include "clock.h"
#include "ordering.h"
#include "tap.h"

uint64		fu_ordering_last_ns = 0;
uint32		fu_clock_tick = 1;

void
fu_clock_fail(int clock_errno)
{
	printf("Bail out! clock failed: %d\n", clock_errno);
	exit(1);
}

int
main(void)
{
	const uint64 t = UINT64CONST(1800000000123456789);
	uint64		previous;
	bool		strict = true,
				within = true,
				distinct = false;

	ok(fu_ordering_next(t) == t, "a clock that advanced is taken as it is");
	ok(fu_ordering_next(t) == t + 1, "a clock that stands still gives 1 ns more");
	ok(fu_ordering_next(t - FU_NS_PER_S * 3600) == t + 2, "a clock set back gives 1 ns more");
	ok(fu_ordering_next(t + 3) == t + 3, "a clock that has caught up is taken again");

	/* A clock that counts microseconds, read a hundred times in each. */
	previous = fu_ordering_last_ns;
	for (int i = 0; i < 100000; i++)
	{
		uint64		tick = t - t % 1000 + 1000 * (1 + i / 100);
		uint64		fill = (uint64) i * 2654435761u % (1 << FU_TICK_FILL_BITS);
		uint64		now = fu_clock_fill_tick(tick, 1000, fill);
		uint64		next = fu_ordering_next(now);

		strict &= next > previous;
		within &= now >= tick && now < tick + 1000;
		distinct |= now % 1000 != 0;
		previous = next;
	}
	ok(strict, "order is strict on a clock that counts microseconds");
	ok(within, "the filling of a tick stays within the tick");
	ok(distinct, "the filling of a tick varies");
	ok(fu_clock_fill_tick(t, 1000, (1 << FU_TICK_FILL_BITS) - 1) == t - t % 1000 + 999,
	   "the greatest filling is the last nanosecond of the tick");

	fu_clock_tick = 1000;
	ok(fu_clock_now(0) % 1000 == 0 && fu_clock_now(512) % 1000 == 500,
	   "a reading of a coarse clock is filled");
	fu_clock_tick = 1;
	previous = (uint64) time(NULL) * FU_NS_PER_S;
	ok(fu_clock_now(0) - previous < 60 * FU_NS_PER_S, "a reading is in nanoseconds since 1970");

	return done_testing();
}
