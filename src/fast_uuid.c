/*
 * fast_uuid.c
 *	  What the server calls when it loads the library.
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "ordering_instance.h"
#include "settings.h"

FUUID_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	fuuid_clock_init();
	fuuid_settings_init();
	fuuid_instance_init();
}
