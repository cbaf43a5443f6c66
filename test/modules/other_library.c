/*
 * other_library.c
 *	  An SQL-callable function that leaves shared memory as another version of the
 *	  library makes it.
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "ordering/shared.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(make_layout);

#ifdef FUUID_HAVE_NAMED_SEGMENTS
/* As in shared.c, where it never changes. */
typedef struct SharedLayout
{
	uint32		magic;
	uint32		number;
	uint64		size;
} SharedLayout;

static SharedLayout layout = {0x66757569, FUUID_SHARED_LAYOUT, 0};

static void
init_layout(FUUID_SEGMENT_INIT_ARGS)
{
	memcpy(segment, &layout, sizeof(layout));
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

	layout.number += PG_GETARG_INT32(0);
	layout.size = FUUID_SHARED_SIZE + PG_GETARG_INT32(1);
	FUUID_GET_NAMED_SEGMENT("fast_uuid layout", sizeof(layout), init_layout, &found);
	PG_RETURN_BOOL(!found);
#else
	PG_RETURN_BOOL(fcinfo == NULL);
#endif
}
