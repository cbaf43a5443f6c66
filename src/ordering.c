/*
 * ordering.c
 *	  Strict order where the clock does not provide it.
 */
#include "postgres.h"

#include "ordering.h"

/*
 * The latest value may be ahead of the clock by what one bulk call has set
 * aside; only a greater lead shows that the clock was set back.
 */
#define SET_BACK_NS 1000

uint64		fu_ordering_last_ns = 0;
OrderingStats fu_ordering_stats;

/*
 * fu_ordering_reserve() for a clock that is not ahead of the latest value.
 *
 * While the clock catches up its distance shrinks from call to call, but for
 * the nanoseconds used; when it grows by more, the clock was set back again.
 */
void
fu_ordering_step(struct timespec *now, uint32 count)
{
	static uint64 stepped_to = 0;	/* latest value, if it was made here */
	static uint64 lead_before = 0;
	uint64		ns = (uint64) now->tv_sec * FU_NS_PER_S + (uint64) now->tv_nsec;
	uint64		lead = fu_ordering_last_ns - ns;
	uint64		expected = fu_ordering_last_ns == stepped_to ? lead_before : 0;

	if (lead > expected + SET_BACK_NS)
		fu_ordering_stats.set_backs++;
	if (lead > fu_ordering_stats.largest_lead_ns)
		fu_ordering_stats.largest_lead_ns = lead;

	ns = fu_ordering_last_ns + 1;
	now->tv_sec = ns / FU_NS_PER_S;
	now->tv_nsec = ns % FU_NS_PER_S;
	fu_ordering_last_ns += count;
	stepped_to = fu_ordering_last_ns;
	lead_before = lead + count;
}
