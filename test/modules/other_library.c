/*
 * other_library.c
 *	  An SQL-callable function that leaves shared memory as another version of the
 *	  library makes it.
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

/*
 * make_layout(numbers integer, bytes integer): be a library, the first one of this
 * server, whose layout has another number or another size.
 */
Datum
make_layout(PG_FUNCTION_ARGS)
{
#ifdef FUUID_HAVE_NAMED_SEGMENTS
	bool		found;

	layout += PG_GETARG_INT32(0);
	FUUID_GET_NAMED_SEGMENT("fast_uuid", FUUID_SHARED_SIZE + PG_GETARG_INT32(1),
							init_segment, &found);
	PG_RETURN_BOOL(!found);
#else
	PG_RETURN_BOOL(fcinfo == NULL);
#endif
}
