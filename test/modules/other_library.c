/*
 * other_library.c
 *	  make_layout(numbers integer, bytes integer) returns boolean: leaves shared
 *	  memory as another version of the library, the first one of this server, makes
 *	  it, whose layout has another number or another size.
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "feed/shared.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(make_layout);

#ifdef FUUID_HAVE_NAMED_SEGMENTS
static uint32 layout = FUUID_SHARED_LAYOUT;

static void
init_segment(FUUID_SEGMENT_INIT_ARGS)
{
	((SharedOrdering *) segment)->layout = layout;
}
#endif

Datum
make_layout(PG_FUNCTION_ARGS)
{
	bool		found = fcinfo == NULL;

#ifdef FUUID_HAVE_NAMED_SEGMENTS
	layout += PG_GETARG_INT32(0);
	FUUID_GET_NAMED_SEGMENT("fast_uuid", FUUID_SHARED_SIZE + PG_GETARG_INT32(1),
							init_segment, &found);
#endif
	PG_RETURN_BOOL(!found);
}
