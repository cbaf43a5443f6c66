/*
 * other_library.c
 *	  SQL-callable functions that look at the shared memory of fast_uuid, or leave
 *	  it as another version of the library makes it.
 */
#include "postgres.h"

#include "compat.h"
#include "miscadmin.h"
#include "ordering/shared.h"
#include "storage/lwlock.h"
#include "storage/shmem.h"
#include "utils/builtins.h"
#include "utils/wait_event.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(lock_name);
PG_FUNCTION_INFO_V1(make_layout);

#ifdef FUUID_HAVE_NAMED_SEGMENTS
static void
not_there(FUUID_SEGMENT_INIT_ARGS)
{
	elog(ERROR, "fast_uuid has no shared memory yet: %p", segment);
}
#endif

static SharedOrdering *
shared(void)
{
	SharedOrdering *ordering;
	bool		found;

#ifdef FUUID_HAVE_NAMED_SEGMENTS
	ordering = FUUID_GET_NAMED_SEGMENT("fast_uuid", FUUID_SHARED_SIZE, not_there, &found);
#else
	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	ordering = ShmemInitStruct("fast_uuid", FUUID_SHARED_SIZE, &found);
	LWLockRelease(AddinShmemInitLock);
	if (!found)
		elog(ERROR, "fast_uuid has no shared memory");
#endif
	return ordering;
}

/*
 * lock_name() returns text: as a wait event shows it
 */
Datum
lock_name(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_TEXT_P(cstring_to_text(GetLWLockIdentifier(PG_WAIT_LWLOCK, shared()->lock.tranche)));
}

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
