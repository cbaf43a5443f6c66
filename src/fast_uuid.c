/*
 * fast_uuid.c
 *	  What the server calls when it loads the library.
 */
#include "postgres.h"

#include "clock.h"
#include "compat.h"
#include "ordering.h"
#include "settings.h"

FU_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	fu_clock_init();
	fu_settings_init();
	fu_cluster_init();
}
