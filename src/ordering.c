/*
 * ordering.c
 *	  The order of one backend, where the clock does not provide it.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering.h"

uint64		fu_ordering_last_ns = 0;
int			fu_ordering_scope = FU_ORDERING_SESSION;

static uint64 set_backs = 0;
static uint64 largest_lead_ns = 0;

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
	uint64		lead = fu_ordering_last_ns - fu_ns_of_time(now);
	uint64		expected = fu_ordering_last_ns == stepped_to ? lead_before : 0;

	if (lead >= FU_SET_BACK_NS)
		fu_clock_check_lead(lead);
	if (lead >= expected + FU_SET_BACK_NS)
		set_backs++;
	if (lead > largest_lead_ns)
		largest_lead_ns = lead;

	fu_time_of_ns(now, fu_ordering_last_ns + 1);
	fu_ordering_last_ns += count;
	stepped_to = fu_ordering_last_ns;
	lead_before = lead + count;
}

void
fu_ordering_session_stats(OrderingStats *stats)
{
	stats->last_ns = fu_ordering_last_ns;
	stats->set_backs = set_backs;
	stats->largest_lead_ns = largest_lead_ns;
}

/*
 * Forget the latest value: the next takes the clock's time, whatever it is.
 */
void
fu_ordering_reset(void)
{
	fu_ordering_last_ns = 0;
}
