/*
 * xorshift.c
 *	  The lanes of xorshift128+ against the plain loop over one generator, in
 *	  turn, so that both see the same machine: medians of many fills of a buffer,
 *	  as lines of CSV: what, figure, unit.  Linked with nothing of the server.
 */
#include "c.h"

#include <time.h>

#include "common/xorshift_lanes.h"

#undef printf
#undef qsort

#define BUFFER_SIZE	4096
#define FILLS		20000
#define ROUNDS		31

static uint8 buffer[BUFFER_SIZE];

static void
fill_plain(Xorshift128Plus *g)
{
	for (size_t i = 0; i < BUFFER_SIZE; i += sizeof(uint64))
	{
		uint64		word = xorshift128plus_next(g);

		memcpy(buffer + i, &word, sizeof(word));
	}
}

static double
seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static int
compare(const void *a, const void *b)
{
	return *(const double *) a < *(const double *) b ? -1 : *(const double *) a > *(const double *) b;
}

int
main(void)
{
	Xorshift128Plus plain;
	XorshiftLanes lanes;
	double		plain_rate[ROUNDS];
	double		lanes_rate[ROUNDS];
	double		ratio[ROUNDS];
	const double gigabytes = (double) BUFFER_SIZE * FILLS / 1e9;
	volatile uint8 *keep = buffer;	/* the fills must not be optimised away */

	xorshift128plus_seed(&plain, 42);
	xorshift_lanes_start(&lanes, plain);
	for (int round = 0; round < ROUNDS; round++)
	{
		double		start = seconds();
		double		middle;

		for (int i = 0; i < FILLS; i++)
		{
			fill_plain(&plain);
			(void) *keep;
		}
		middle = seconds();
		for (int i = 0; i < FILLS; i++)
		{
			xorshift_lanes_fill(&lanes, buffer, BUFFER_SIZE);
			(void) *keep;
		}
		lanes_rate[round] = gigabytes / (seconds() - middle);
		plain_rate[round] = gigabytes / (middle - start);
		ratio[round] = lanes_rate[round] / plain_rate[round];
	}
	qsort(plain_rate, ROUNDS, sizeof(double), compare);
	qsort(lanes_rate, ROUNDS, sizeof(double), compare);
	qsort(ratio, ROUNDS, sizeof(double), compare);
	printf("plain loop,%.2f,GB/s\neight lanes,%.2f,GB/s\neight lanes to the plain loop,%.2f,times\n",
		   plain_rate[ROUNDS / 2], lanes_rate[ROUNDS / 2], ratio[ROUNDS / 2]);
	return 0;
}
