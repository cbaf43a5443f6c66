/*
 * hold_reset.c
 *	  SQL-callable functions that leave the shared memory of fast_uuid as another
 *	  backend does that stands still in the middle of a reset, or as another version of
 *	  the library makes it.
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

PG_FUNCTION_INFO_V1(hold_reset);
PG_FUNCTION_INFO_V1(reset_words);
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
 * hold_reset(hold boolean): a reset begins; false: it ends.
 */
Datum
hold_reset(PG_FUNCTION_ARGS)
{
	if (PG_GETARG_BOOL(0))
		pg_atomic_fetch_add_u64(&shared()->epoch, FUUID_RESET_BEGINS);
	else
		pg_atomic_fetch_sub_u64(&shared()->epoch, FUUID_RESET_ENDS);
	PG_RETURN_BOOL(true);
}

/*
 * reset_words() returns boolean: the reset that is held does its work.
 */
Datum
reset_words(PG_FUNCTION_ARGS pg_attribute_unused())
{
	uint64		epoch = pg_atomic_read_u64(&shared()->epoch);

	if (FUUID_RESETS_GOING_ON(epoch) == 0)
		elog(ERROR, "no reset goes on");
	pg_atomic_exchange_u64(&shared()->last_ns, FUUID_RESETS_BEGUN(epoch));
	PG_RETURN_BOOL(true);
}

/*
 * lock_name() returns text: of the watermark's history, as a wait event shows it
 */
Datum
lock_name(PG_FUNCTION_ARGS pg_attribute_unused())
{
	PG_RETURN_TEXT_P(cstring_to_text(GetLWLockIdentifier(PG_WAIT_LWLOCK, shared()->watermarks.lock.tranche)));
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
