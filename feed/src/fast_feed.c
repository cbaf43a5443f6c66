/*
 * fast_feed.c
 *	  What the server calls when it loads the library.
 */
#include "postgres.h"

#include "compat.h"
#include "feed.h"

FEED_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

void
_PG_init(void)
{
	feed_memory_init();
	feed_column_init();
	feed_in_flight_init();
}
