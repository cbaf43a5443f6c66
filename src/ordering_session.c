/*
 * ordering_session.c
 *	  The order of one backend, where the clock does not provide it.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering_session.h"

uint64		fuuid_session_last_ns = 0;
bool		fuuid_session_lead_observed = false;

static uint64 backward_steps = 0;
static uint64 largest_clock_lead_ns = 0;

/* The latest value when a lead was last seen, and that lead. */
static uint64 noted_last_ns = 0;
static uint64 noted_lead_ns = 0;

/*
 * Remember a lead of the latest value over the clock that is known already: it
 * is not counted as another backward step.
 */
void
fuuid_session_note_lead(uint64 lead_ns)
{
	noted_last_ns = fuuid_session_last_ns;
	noted_lead_ns = lead_ns;
	largest_clock_lead_ns = Max(largest_clock_lead_ns, lead_ns);
}

/*
 * See how far the latest value leads the clock, and count a backward step.
 *
 * While the clock catches up its distance shrinks from call to call, but for
 * the nanoseconds used; when it grows by more, the clock stepped backwards.
 */
void
fuuid_session_observe(uint64 clock_ns)
{
	uint64		lead = fuuid_session_last_ns > clock_ns ? fuuid_session_last_ns - clock_ns : 0;
	uint64		known = fuuid_session_last_ns == noted_last_ns ? noted_lead_ns : 0;

	if (lead >= known + FUUID_BACKWARD_STEP_NS)
	{
		backward_steps++;
		fuuid_session_lead_observed = false;
	}
	fuuid_session_note_lead(lead);
}

/*
 * fuuid_session_reserve() for a clock that is not ahead of the latest value.  A
 * backward step counts although the call fails because of it.
 */
void
fuuid_session_advance_past_last(struct timespec *now, uint32 count)
{
	uint64		clock_ns = fuuid_ns_of_time(now);
	uint64		lead = fuuid_session_last_ns - clock_ns + count;

	fuuid_session_observe(clock_ns);
	if (lead >= FUUID_BACKWARD_STEP_NS)
		fuuid_clock_check_lead(lead);
	fuuid_clock_check_end(fuuid_session_last_ns, count);

	fuuid_time_of_ns(now, fuuid_session_last_ns + 1);
	fuuid_session_last_ns += count;
	fuuid_session_note_lead(lead);
}

/*
 * Go on after this nanosecond, if it is beyond the latest value: not a backward
 * step, although it may lead the clock by lead_ns.  One since the latest value has
 * to be observed before.
 */
void
fuuid_session_raise(uint64 ns, uint64 lead_ns)
{
	if (ns <= fuuid_session_last_ns)
		return;
	fuuid_session_last_ns = ns;
	fuuid_session_note_lead(lead_ns);
	fuuid_session_lead_observed = true;
}

void
fuuid_session_stats(OrderingStats *stats)
{
	stats->last_ns = fuuid_session_last_ns;
	stats->backward_steps = backward_steps;
	stats->largest_clock_lead_ns = largest_clock_lead_ns;
}

/*
 * Forget the latest value: the next takes the clock's time, whatever it is.
 */
void
fuuid_session_reset(void)
{
	fuuid_session_last_ns = 0;
}
