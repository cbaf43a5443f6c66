/*
 * test_order.c
 *	  ordering.h and the filling of clock.h: order whatever the clock does.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering.c"
#include "tap.h"

uint32		fu_clock_tick = 1;

void
fu_clock_fail(int clock_errno)
{
	printf("Bail out! clock failed: %d\n", clock_errno);
	exit(1);
}

/* Neither is called in here: no limit is set, and no scope but the session. */
void
fu_clock_check_lead(uint64 lead_ns)
{
	printf("# lead: %llu ns\n", (unsigned long long) lead_ns);
}

void
fu_cluster_reserve(struct timespec *now, uint32 count)
{
	printf("Bail out! cluster order: %p %u\n", (void *) now, count);
	exit(1);
}

/* The nanosecond of the value that a reading of the clock gives. */
static uint64
next_at(uint64 ns)
{
	struct timespec now = {.tv_sec = ns / FU_NS_PER_S, .tv_nsec = ns % FU_NS_PER_S};

	fu_ordering_reserve(&now, 1);
	return now.tv_sec * FU_NS_PER_S + now.tv_nsec;
}

static uint64
filled(uint64 ns, uint64 fill)
{
	struct timespec now = {.tv_sec = ns / FU_NS_PER_S, .tv_nsec = ns % FU_NS_PER_S};

	fu_clock_fill_tick(&now, fill);
	return now.tv_sec * FU_NS_PER_S + now.tv_nsec;
}

int
main(void)
{
	const uint64 t = UINT64CONST(1800000000123456789);
	const uint64 end_of_second = UINT64CONST(1800000099999999999);
	const uint64 later = end_of_second + 100 * FU_NS_PER_S;
	struct timespec now;
	uint64		previous;
	OrderingStats stats;
	bool		strict = true,
				within = true,
				distinct = false;

	ok(next_at(t) == t, "a clock that advanced is taken as it is");
	ok(next_at(t) == t + 1, "a clock that stands still gives 1 ns more");
	ok(next_at(t - FU_NS_PER_S * 3600) == t + 2, "a clock set back gives 1 ns more");
	ok(next_at(t + 3) == t + 3, "a clock that has caught up is taken again");
	ok(next_at(end_of_second) == end_of_second && next_at(t) == end_of_second + 1,
	   "1 ns more may be the next second");
	fu_ordering_session_stats(&stats);
	ok(stats.set_backs == 2, "a clock set back is counted each time");
	ok(stats.largest_lead_ns == 3600 * FU_NS_PER_S + 1,
	   "the largest lead is that over the earliest clock");
	for (int i = 0; i < 10; i++)
		(void) next_at(t + i * 1000000);
	fu_ordering_session_stats(&stats);
	ok(stats.set_backs == 2, "a clock that catches up is not set back again");
	(void) next_at(t);
	fu_ordering_session_stats(&stats);
	ok(stats.set_backs == 3, "a clock that is set back while it catches up is");

	now.tv_sec = end_of_second / FU_NS_PER_S + 1;
	now.tv_nsec = 5000;
	fu_ordering_reserve(&now, 100);
	ok(now.tv_nsec == 5000, "a bulk call begins with the clock's time");
	ok(next_at(end_of_second + 5002) == end_of_second + 1 + 5000 + 100,
	   "the next value comes after those that a bulk call has set aside");
	fu_ordering_session_stats(&stats);
	ok(stats.set_backs == 3, "which does not count as a clock set back");

	ok(filled(t, 512) == t, "a clock that counts nanoseconds is not filled");

	/* A clock that counts microseconds, read a hundred times in each. */
	fu_clock_tick = 1000;
	previous = fu_ordering_last_ns;
	for (int i = 0; i < 100000; i++)
	{
		uint64		tick = later - later % 1000 + 1000 * (1 + i / 100);
		uint64		fill = (uint64) i * 2654435761u % (1 << FU_TICK_FILL_BITS);
		uint64		reading = filled(tick, fill);
		uint64		next = next_at(reading);

		strict &= next > previous;
		within &= reading >= tick && reading < tick + 1000;
		distinct |= reading % 1000 != 0;
		previous = next;
	}
	ok(strict, "order is strict on a clock that counts microseconds");
	ok(within, "the filling of a tick stays within the tick");
	ok(distinct, "the filling of a tick varies");
	ok(filled(end_of_second, (1 << FU_TICK_FILL_BITS) - 1) == end_of_second,
	   "the greatest filling of the last tick stays within the second");

	fu_clock_read(&now);
	ok((uint64) now.tv_sec - (uint64) time(NULL) + 1 <= 2, "a reading is the time since 1970");

	return done_testing();
}
