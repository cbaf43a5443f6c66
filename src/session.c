/*
 * session.c
 *	  The order of one backend's keys: what session.h keeps of it.
 */
#include "postgres.h"

#include "session.h"

uint64		fuuid_session_last_ns = 0;
