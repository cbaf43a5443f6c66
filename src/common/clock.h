/*
 * clock.h
 *	  The wall clock.
 */
#ifndef FUUID_CLOCK_H
#define FUUID_CLOCK_H

#include <time.h>

#include "common/uuid_layout.h"
#include "datatype/timestamp.h"

/* Microseconds from 1970-01-01 to 2000-01-01, where a TimestampTz is 0. */
#define FUUID_UNIX_TO_POSTGRES_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * USECS_PER_SEC)

/*
 * The first second that is out of range: from here on, not all nanoseconds
 * since 1970 fit in 64 bits (2554), or a time_t of 32 bits is at its end
 * (2038).  A time before 1970, cast to unsigned, is out of range too.
 */
#define FUUID_CLOCK_END_S \
	(sizeof(time_t) < 8 ? (uint64) PG_INT32_MAX : \
	 PG_UINT64_MAX / FUUID_NS_PER_S)
#define FUUID_CLOCK_END_NS	(FUUID_CLOCK_END_S * FUUID_NS_PER_S)

extern void fuuid_clock_error(int clock_errno);

/*
 * Read the clock, in nanoseconds since 1970-01-01 UTC, as all times here.
 * Raises an error if it cannot be read, or is not between 1970 and 2554.
 *
 * This is most of a UUID's cost.  To follow the time stamp counter between two
 * readings took 10 ns rather than 25, or 1 % less for an insertion of a million
 * rows.  But speed alone could then push the time ahead of the clock, and nobody
 * tells a library when the kernel stops trusting the counter.
 */
static inline uint64
fuuid_clock_read(void)
{
	struct timespec now;

	if (unlikely(clock_gettime(CLOCK_REALTIME, &now) != 0))
		fuuid_clock_error(errno);
	if (unlikely((uint64) now.tv_sec >= FUUID_CLOCK_END_S))
		fuuid_clock_error(0);
	return (uint64) now.tv_sec * FUUID_NS_PER_S + (uint64) now.tv_nsec;
}

/* Raise an error if the nanosecond after last_ns is out of range. */
static inline void
fuuid_clock_require_end(uint64 last_ns)
{
	if (unlikely(last_ns >= FUUID_CLOCK_END_NS - 1))
		fuuid_clock_error(0);
}

#endif							/* FUUID_CLOCK_H */
