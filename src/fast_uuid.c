/*
 * fast_uuid.c
 *	  What the server calls when it loads the library.
 */
#include "postgres.h"

#include "compat.h"
#include "ordering/in_flight.h"
#include "ordering/shared.h"
#include "settings/settings.h"

FUUID_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	fuuid_in_flight_init();
	fuuid_settings_init();
	fuuid_shared_init();
}
