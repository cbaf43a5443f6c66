/*
 * clock.h
 *	  The wall clock.
 */
#ifndef FU_CLOCK_H
#define FU_CLOCK_H

#include <time.h>

#include "uuid_layout.h"

/*
 * First second whose nanoseconds since 1970 do not fit in an unsigned 64-bit
 * integer (year 2554).  A time before 1970, cast to unsigned, is beyond it too.
 */
#define FU_CLOCK_END_S	(PG_UINT64_MAX / FU_NS_PER_S)

/* Bits of randomness that fill what lies below one tick of a coarse clock. */
#define FU_TICK_FILL_BITS	10

/* Nanoseconds between two different readings; 1 where the clock counts them. */
extern uint32 fu_clock_tick;

extern void fu_clock_init(void);
extern void fu_clock_fail(int clock_errno);
extern void fu_clock_check_lead(uint64 lead_ns);

/*
 * Read the clock: time since 1970-01-01 UTC.  Raises an error where it does
 * not lie between 1970 and 2554.
 */
static inline void
fu_clock_read(struct timespec *now)
{
	if (unlikely(clock_gettime(CLOCK_REALTIME, now) != 0))
		fu_clock_fail(errno);
	if (unlikely((uint64) now->tv_sec >= FU_CLOCK_END_S))
		fu_clock_fail(0);
}

/*
 * On a coarse clock, replace the digits below one tick, which carry no time,
 * by random ones, so that sessions which read the clock in the same tick do
 * not share them.  fill: FU_TICK_FILL_BITS random bits.
 */
static inline void
fu_clock_fill_tick(struct timespec *now, uint64 fill)
{
	if (unlikely(fu_clock_tick > 1))
		now->tv_nsec += (long) (fill * fu_clock_tick >> FU_TICK_FILL_BITS) -
			now->tv_nsec % fu_clock_tick;
}

#endif							/* FU_CLOCK_H */
