/*
 * session.c
 *	  The order of one backend's UUIDs, if the clock does not provide it.
 */
#include "postgres.h"

#include "clock.h"
#include "ordering/session.h"

uint64		fuuid_session_last_ns = 0;
uint64		fuuid_session_largest_lead_ns = 0;

/* Note how far the latest UUID is ahead of this reading of the clock. */
void
fuuid_session_note_lead(uint64 clock_ns)
{
	if (fuuid_session_last_ns > clock_ns)
		fuuid_session_largest_lead_ns = Max(fuuid_session_largest_lead_ns,
											fuuid_session_last_ns - clock_ns);
}

/*
 * fuuid_session_reserve() of one UUID if the clock is not ahead of the latest.
 */
uint64
fuuid_session_advance_past_last(uint64 clock_ns)
{
	fuuid_session_note_lead(clock_ns);
	fuuid_clock_require_lead(fuuid_session_last_ns - clock_ns + 1);
	fuuid_clock_require_end(fuuid_session_last_ns);
	return ++fuuid_session_last_ns;
}

/*
 * Forget the latest UUID: the next one takes the clock's time, whatever it is.
 */
void
fuuid_session_reset(void)
{
	fuuid_session_last_ns = 0;
	fuuid_session_largest_lead_ns = 0;
}
