/*
 * session.c
 *	  The order of one backend's keys, where the clock does not provide it.
 */
#include "postgres.h"

#include "clock.h"
#include "session.h"

uint64		fuuid_session_last_ns = 0;
uint64		fuuid_session_largest_lead_ns = 0;

/*
 * fuuid_session_reserve() of one UUID if the clock is not ahead of the latest.
 */
uint64
fuuid_session_advance_past_last(uint64 clock_ns)
{
	uint64		lead_ns = fuuid_session_last_ns - clock_ns;

	fuuid_session_largest_lead_ns = Max(fuuid_session_largest_lead_ns,
										lead_ns);
	fuuid_clock_require_end(fuuid_session_last_ns);
	return ++fuuid_session_last_ns;
}
