/*
 * interpolated_clock.h
 *	  A faster clock that was measured and left out of the extension; see
 *	  doc/performance.md.  Between two readings of the clock, at most a
 *	  millisecond apart, the time follows the processor's counter.
 *
 *	  Where it is included, INTERPOLATED_TICKS() is the counter and
 *	  INTERPOLATED_NS() the clock in nanoseconds: the machine's, or simulated.
 */
#ifndef INTERPOLATED_CLOCK_H
#define INTERPOLATED_CLOCK_H

/* Time between two readings of the clock, in ns. */
#define INTERPOLATED_SPAN	1000000

/* A reading that took longer than this, in ns, was interrupted. */
#define INTERPOLATED_READING_MAX	500

/* A rate that changes by more than one part in this tells of a clock that was set. */
#define INTERPOLATED_RATE_CHANGE	64

#define INTERPOLATED_RATE_BITS	32

/* Longest time over which the rate is measured, in ns: rates stay below 64 bits. */
#define INTERPOLATED_MEASURE_MAX	UINT64CONST(1000000000)

typedef struct InterpolatedClock
{
	uint64		base_ticks;		/* the two at the latest reading */
	uint64		base_ns;
	uint64		valid_ticks;	/* from there on; 0: read the clock */
	uint64		rate;			/* ns a tick, times 2^32; 0: not known */
	uint64		readings;
} InterpolatedClock;

static pg_noinline uint64
interpolated_clock_resync(InterpolatedClock *clock)
{
	uint64		ticks = INTERPOLATED_TICKS();
	uint64		ns = INTERPOLATED_NS();
	uint64		reading_ticks = INTERPOLATED_TICKS() - ticks;
	uint64		passed_ticks = ticks - clock->base_ticks;
	uint64		passed_ns = ns - clock->base_ns;
	uint64		rate;

	clock->readings++;

	/* Too soon to tell the rate, which the jitter of a reading would spoil. */
	if (clock->readings > 1 && passed_ns < INTERPOLATED_SPAN / 2)
		return ns;
	if (reading_ticks * clock->rate >> INTERPOLATED_RATE_BITS > INTERPOLATED_READING_MAX)
		return ns;

	rate = 0;
	if (clock->readings > 1 && passed_ns < INTERPOLATED_MEASURE_MAX && passed_ticks > 0)
	{
		rate = (passed_ns << INTERPOLATED_RATE_BITS) / passed_ticks;
		/* Believe a rate when the one before was like it. */
		if (clock->rate > 0 &&
			Max(rate, clock->rate) - Min(rate, clock->rate) > clock->rate / INTERPOLATED_RATE_CHANGE)
			rate = 0;
	}
	clock->base_ticks = ticks;
	clock->base_ns = ns;
	clock->rate = rate;
	clock->valid_ticks = rate == 0 ? 0 :
		((uint64) INTERPOLATED_SPAN << INTERPOLATED_RATE_BITS) / rate;
	return ns;
}

/*
 * Nanoseconds since 1970-01-01 UTC.
 */
static inline uint64
interpolated_clock_read(InterpolatedClock *clock)
{
	uint64		passed = INTERPOLATED_TICKS() - clock->base_ticks;

	if (unlikely(passed >= clock->valid_ticks))
		return interpolated_clock_resync(clock);
	return clock->base_ns + (passed * clock->rate >> INTERPOLATED_RATE_BITS);
}

#endif							/* INTERPOLATED_CLOCK_H */
