/*
 * clock.h
 *	  The wall clock, in nanoseconds since 1970-01-01 UTC.
 */
#ifndef FU_CLOCK_H
#define FU_CLOCK_H

#include <time.h>

#include "uuid_layout.h"

/*
 * First second whose nanoseconds do not fit in an unsigned 64-bit integer
 * (year 2554).  A time before 1970, cast to unsigned, is beyond it too.
 */
#define FU_CLOCK_END_S	(PG_UINT64_MAX / FU_NS_PER_S)

/* Bits of randomness that fill what lies below one tick of a coarse clock. */
#define FU_TICK_FILL_BITS	10

/* Nanoseconds between two different readings; 1 where the clock counts them. */
extern uint32 fu_clock_tick;

extern void fu_clock_init(void);
extern void fu_clock_fail(int clock_errno);

/*
 * Replace the digits below one tick, which carry no time, by random ones, so
 * that sessions which read the clock in the same tick do not share them.
 *
 * tick: nanoseconds.  fill: FU_TICK_FILL_BITS random bits.
 */
static inline uint64
fu_clock_fill_tick(uint64 now, uint32 tick, uint64 fill)
{
	return now - now % tick + (fill * tick >> FU_TICK_FILL_BITS);
}

/*
 * Read the clock.  fill: as above, used only where the clock is coarse.
 * Raises an error where the time does not lie between 1970 and 2554.
 */
static inline uint64
fu_clock_now(uint64 fill)
{
	struct timespec ts;
	uint64		now;

	if (unlikely(clock_gettime(CLOCK_REALTIME, &ts) != 0))
		fu_clock_fail(errno);
	if (unlikely((uint64) ts.tv_sec >= FU_CLOCK_END_S))
		fu_clock_fail(0);

	now = (uint64) ts.tv_sec * FU_NS_PER_S + (uint64) ts.tv_nsec;

	if (unlikely(fu_clock_tick > 1))
		now = fu_clock_fill_tick(now, fu_clock_tick, fill);
	return now;
}

#endif							/* FU_CLOCK_H */
