/*
 * other_feed.c
 *	  make_layout(numbers integer, bytes integer) returns boolean: leaves shared
 *	  memory of fast_feed as another version of the library, the first one of this
 *	  server, makes it, whose layout has another number or another size.
 */
#include "postgres.h"

#include "../../feed/src/compat.h"
#include "../../feed/src/shared.h"
#include "miscadmin.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(make_layout);

#ifdef FEED_HAVE_NAMED_SEGMENTS
static uint32 layout = FEED_LAYOUT;

static void
init_segment(FEED_SEGMENT_INIT_ARGS)
{
	((FeedShared *) segment)->layout = layout;
}
#endif

Datum
make_layout(PG_FUNCTION_ARGS)
{
	bool		found = fcinfo == NULL;

#ifdef FEED_HAVE_NAMED_SEGMENTS
	layout += PG_GETARG_INT32(0);
	FEED_GET_NAMED_SEGMENT("fast_feed", FEED_SHARED_SIZE + PG_GETARG_INT32(1),
						   init_segment, &found);
#endif
	PG_RETURN_BOOL(!found);
}
