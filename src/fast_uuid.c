/*
 * fast_uuid.c
 *	  What the server calls when it loads the library.
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "in_flight.h"
#include "settings.h"
#include "shared_ordering.h"

FUUID_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	fuuid_clock_init();
	fuuid_settings_init();
	fuuid_shared_init();
	fuuid_in_flight_init();
}
