/*
 * clock.c
 *	  The errors about the wall clock, and the monotonic clock.
 */
#include "postgres.h"

#include "clock.h"
#include "miscadmin.h"
#include "storage/latch.h"

int			fuuid_max_clock_lead = -1;

/* Microseconds of the clock that nobody can set, or 0 if that fails. */
uint64
fuuid_clock_monotonic_us(void)
{
	struct timespec now;

	if (clock_gettime(CLOCK_MONOTONIC, &now) != 0)
		return 0;
	return (uint64) now.tv_sec * USECS_PER_SEC +
		(uint64) now.tv_nsec / FUUID_NS_PER_US;
}

/*
 * Sleep for these microseconds, rounded up, or until this backend's latch is
 * set; the caller looks again.  Raises an error if it is cancelled.
 */
void
fuuid_clock_sleep(uint64 us, uint32 wait_event)
{
	(void) WaitLatch(MyLatch,
					 WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH,
					 us / FUUID_US_PER_MS + 1, wait_event);
	ResetLatch(MyLatch);
	CHECK_FOR_INTERRUPTS();
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
 * Raise an error if the time in the next feed ids would be ahead of the clock
 * by this many nanoseconds, and fast_uuid.max_clock_lead does not allow that.
 * A lead below FUUID_SMALL_LEAD_NS is always allowed.
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
			 errhint("Wait until the clock has caught up, increase \"fast_uuid.max_clock_lead\", or call uuidv7_feed_reset() to give up the order with earlier feed ids; readers must then lower their positions.")));
}

/*
 * Raise an error if an observed time is ahead of the clock by more than
 * fast_uuid.max_clock_lead or, if that sets no limit, by more than a second.
 */
void
fuuid_clock_require_observable(uint64 ns)
{
	uint64		limit = fuuid_max_clock_lead < 0 ? FUUID_NS_PER_S :
		fuuid_max_clock_lead * FUUID_NS_PER_MS;
	uint64		clock_ns = fuuid_clock_read();
	uint64		lead = Max(ns, clock_ns) - clock_ns;

	if (lead >= FUUID_SMALL_LEAD_NS && lead > limit)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("observed time is too far ahead of the clock"),
				 errdetail("It is ahead by " UINT64_FORMAT " ms; the limit is " UINT64_FORMAT " ms.",
						   lead / FUUID_NS_PER_MS, limit / FUUID_NS_PER_MS),
				 errhint("If it is valid, correct the clock or increase \"fast_uuid.max_clock_lead\".")));
}
