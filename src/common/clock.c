/*
 * clock.c
 *	  The errors about the wall clock.
 */
#include "postgres.h"

#include "common/clock.h"

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
