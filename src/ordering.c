/*
 * ordering.c
 *	  The order of one backend, where the clock does not provide it.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering.h"

uint64		fuuid_ordering_last_ns = 0;
int			fuuid_ordering_scope = FUUID_ORDERING_SESSION;

static uint64 backward_steps = 0;
static uint64 largest_clock_lead_ns = 0;

/*
 * fuuid_ordering_reserve() for a clock that is not ahead of the latest value.
 *
 * While the clock catches up its distance shrinks from call to call, but for
 * the nanoseconds used; when it grows by more, the clock stepped backwards again.
 */
void
fuuid_ordering_advance_past_last(struct timespec *now, uint32 count)
{
	static uint64 stepped_to = 0;	/* latest value, if it was made here */
	static uint64 lead_before = 0;
	uint64		lead = fuuid_ordering_last_ns - fuuid_ns_of_time(now);
	uint64		expected = fuuid_ordering_last_ns == stepped_to ? lead_before : 0;

	if (lead >= FUUID_BACKWARD_STEP_NS)
		fuuid_clock_check_lead(lead);
	if (lead >= expected + FUUID_BACKWARD_STEP_NS)
		backward_steps++;
	if (lead > largest_clock_lead_ns)
		largest_clock_lead_ns = lead;

	fuuid_time_of_ns(now, fuuid_ordering_last_ns + 1);
	fuuid_ordering_last_ns += count;
	stepped_to = fuuid_ordering_last_ns;
	lead_before = lead + count;
}

void
fuuid_ordering_session_stats(OrderingStats *stats)
{
	stats->last_ns = fuuid_ordering_last_ns;
	stats->backward_steps = backward_steps;
	stats->largest_clock_lead_ns = largest_clock_lead_ns;
}

/*
 * Forget the latest value: the next takes the clock's time, whatever it is.
 */
void
fuuid_ordering_reset(void)
{
	fuuid_ordering_last_ns = 0;
}
