/*
 * clock.c
 *	  The errors about the wall clock, and the monotonic clock.
 */
#include "postgres.h"

#include "clock.h"

int			fuuid_max_clock_lead = -1;

/* Nanoseconds of the clock that nobody can set, or 0 if that fails. */
uint64
fuuid_clock_monotonic_ns(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
		return 0;
	return (uint64) now.tv_sec * FUUID_NS_PER_S + (uint64) now.tv_nsec;
}

/*
 * Raise the error for a clock that could not be read (clock_errno says why),
 * or for a time that is out of range (clock_errno is 0).
 */
void
fuuid_clock_error(int clock_errno)
{
	if (clock_errno != 0)
	{
		errno = clock_errno;
		ereport(ERROR,
				(errcode(ERRCODE_SYSTEM_ERROR),
				 errmsg("could not read the system clock: %m")));
	}
	ereport(ERROR,
			(errcode(ERRCODE_DATETIME_FIELD_OVERFLOW),
			 errmsg("time out of range for a generated UUID"),
			 errdetail("The system clock and the time of the next UUID must be between the years 1970 and 2554.")));
}

/*
 * Raise an error if the time in the next UUIDs would be ahead of the clock by
 * this many nanoseconds, and fast_uuid.max_clock_lead does not allow that.  A
 * lead below FUUID_SMALL_LEAD_NS is always allowed.
 */
void
fuuid_clock_require_lead(uint64 lead_ns)
{
	if (fuuid_max_clock_lead < 0 || lead_ns < FUUID_SMALL_LEAD_NS ||
		lead_ns <= (uint64) fuuid_max_clock_lead * FUUID_NS_PER_MS)
		return;
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("embedded time would be ahead of the clock by more than \"fast_uuid.max_clock_lead\""),
			 errdetail("The clock is " UINT64_FORMAT " ms behind the latest UUID; the limit is %d ms.",
					   lead_ns / FUUID_NS_PER_MS, fuuid_max_clock_lead),
			 errhint("Wait until the clock has caught up, increase \"fast_uuid.max_clock_lead\", or call fast_uuid_reset_ordering() in a session with the same order in force to give up the order with earlier UUIDs. After a reset, readers that use uuidv7_fast_watermark() must lower their positions.")));
}
