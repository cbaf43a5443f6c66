/*
 * convert.h
 *	  Between the server's timestamps and the time in a UUID.
 */
#ifndef FU_CONVERT_H
#define FU_CONVERT_H

#include "datatype/timestamp.h"

/* Microseconds from 1970-01-01 to 2000-01-01, where a TimestampTz counts from. */
#define FU_UNIX_TO_POSTGRES_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * USECS_PER_SEC)

extern uint64 fu_unix_us(TimestampTz ts);

#endif							/* FU_CONVERT_H */
