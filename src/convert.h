/*
 * convert.h
 *	  Between the server's timestamps and the time in a UUID.
 */
#ifndef FUUID_CONVERT_H
#define FUUID_CONVERT_H

#include "datatype/timestamp.h"

/* Microseconds from 1970-01-01 to 2000-01-01, where a TimestampTz counts from. */
#define FUUID_UNIX_TO_POSTGRES_US \
	((POSTGRES_EPOCH_JDATE - UNIX_EPOCH_JDATE) * SECS_PER_DAY * USECS_PER_SEC)

extern uint64 fuuid_unix_us(TimestampTz ts);

#endif							/* FUUID_CONVERT_H */
