/*
 * clock.c
 *	  What a reading of the clock costs, and one interpolated from the time
 *	  stamp counter; how far the latter is off, on this machine and with a
 *	  simulated clock that is slewed and set.  Prints lines of CSV: what, figure,
 *	  unit.  Linked with nothing of the server.
 */
#include "c.h"

#include <time.h>

#undef printf
#undef qsort

#define NS_PER_S	UINT64CONST(1000000000)
#define ROUNDS		31
#define READINGS	200000
#define START_NS	UINT64CONST(1700000000000000000)

#if defined(__x86_64__)
#include <x86intrin.h>

/* Simulated: a counter of 2 GHz, and the clock that should be told from it. */
static bool simulated = false;
static uint64 simulated_ticks;
static uint64 simulated_ns;

static inline uint64
real_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64) ts.tv_sec * NS_PER_S + ts.tv_nsec;
}

#define INTERPOLATED_TICKS()	(simulated ? simulated_ticks : __rdtsc())
#define INTERPOLATED_NS()		(simulated ? simulated_ns : real_ns())
#include "interpolated_clock.h"

static InterpolatedClock interpolated;

static uint64
read_clock(void)
{
	return real_ns();
}

static uint64
read_counter(void)
{
	return __rdtsc();
}

static uint64
read_interpolated(void)
{
	return interpolated_clock_read(&interpolated);
}

static const struct
{
	const char *name;
	uint64		(*read) (void);
}			clocks[] = {
	{"clock_gettime(CLOCK_REALTIME)", read_clock},
	{"time stamp counter alone", read_counter},
	{"interpolated", read_interpolated}
};

static int
compare(const void *a, const void *b)
{
	return *(const double *) a < *(const double *) b ? -1 : *(const double *) a > *(const double *) b;
}

static void
measure_cost(void)
{
	double		ns[lengthof(clocks)][ROUNDS];
	volatile uint64 keep;

	for (int round = 0; round < ROUNDS; round++)
		for (int c = 0; c < (int) lengthof(clocks); c++)
		{
			uint64		start = real_ns();

			for (int i = 0; i < READINGS; i++)
				keep = clocks[c].read();
			ns[c][round] = (double) (real_ns() - start) / READINGS;
		}
	(void) keep;
	for (int c = 0; c < (int) lengthof(clocks); c++)
	{
		qsort(ns[c], ROUNDS, sizeof(double), compare);
		printf("%s,%.1f,ns per reading\n", clocks[c].name, ns[c][ROUNDS / 2]);
	}
}

/*
 * How far beyond readings of the clock before and after it one lies.
 */
static void
measure_error(void)
{
	uint64		before = real_ns();
	uint64		end = before + 2 * NS_PER_S;
	uint64		ahead = 0;
	uint64		behind = 0;

	while (before < end)
	{
		uint64		reading = interpolated_clock_read(&interpolated);
		uint64		after = real_ns();

		if (reading > after)
			ahead = Max(ahead, reading - after);
		if (reading < before)
			behind = Max(behind, before - reading);
		before = after;
	}
	printf("ahead of the clock on this machine at most," UINT64_FORMAT ",ns\n", ahead);
	printf("behind it on this machine at most," UINT64_FORMAT ",ns\n", behind);
}

/*
 * Twenty seconds of calls, one each 200 ns, of a clock whose rate changes by so
 * many parts in a million every 10.3 ms, or which is set once.
 */
static void
simulate(const char *what, int64 ppm, int64 step_ns)
{
	uint64		ahead = 0;
	uint64		behind = 0;
	uint64		wrong_ns = 0;
	double		clock_ns = 0;	/* since START_NS, so that fractions count */

	memset(&interpolated, 0, sizeof(interpolated));
	simulated = true;
	simulated_ticks = 1000;
	for (uint64 now = 0; now < 20 * NS_PER_S; now += 200)
	{
		bool		slewed = (now / 10300000) % 2 == 1;
		uint64		reading;

		simulated_ticks += 400;
		clock_ns += 200 * (1 + (slewed ? ppm : 0) / 1e6);
		if (now == 10 * NS_PER_S)
			clock_ns += step_ns;
		simulated_ns = START_NS + (int64) clock_ns;
		reading = interpolated_clock_read(&interpolated);
		if (reading > simulated_ns)
			ahead = Max(ahead, reading - simulated_ns);
		else
			behind = Max(behind, simulated_ns - reading);
		if (Max(reading, simulated_ns) - Min(reading, simulated_ns) > INTERPOLATED_SPAN / 2)
			wrong_ns += 200;
	}
	simulated = false;
	printf("%s: ahead at most," UINT64_FORMAT ",ns\n", what, ahead);
	printf("%s: behind at most," UINT64_FORMAT ",ns\n", what, behind);
	if (step_ns != 0)
		printf("%s: not seen for," UINT64_FORMAT ",ns\n", what, wrong_ns);
}

int
main(void)
{
	measure_cost();
	measure_error();
	simulate("slewed by 500 ppm (ntpd)", 500, 0);
	simulate("slewed by -500 ppm (ntpd)", -500, 0);
	simulate("slewed by 100000 ppm (the kernel's limit)", 100000, 0);
	simulate("slewed by -100000 ppm (the kernel's limit)", -100000, 0);
	simulate("stepped backwards by a second", 0, -(int64) NS_PER_S);
	simulate("stepped forwards by a second", 0, NS_PER_S);
	return 0;
}

#else
int
main(void)
{
	return 0;
}
#endif
