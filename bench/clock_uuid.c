/*
 * clock_uuid.c
 *	  The least that a generator with nanoseconds can do, under two clocks: a
 *	  reading, the layout, 16 bytes.  No order and no randomness.
 */
#include "postgres.h"

#include <time.h>

#include "fmgr.h"
#include "utils/uuid.h"
#include "common/uuid_layout.h"

PG_MODULE_MAGIC;

PG_FUNCTION_INFO_V1(bare_clock_uuid);
PG_FUNCTION_INFO_V1(interpolated_clock_uuid);

static inline uint64
read_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64) ts.tv_sec * FUUID_NS_PER_S + ts.tv_nsec;
}

#if defined(__x86_64__)
#include <x86intrin.h>
#define INTERPOLATED_TICKS()	__rdtsc()
#define INTERPOLATED_NS()		read_clock()
#include "interpolated_clock.h"

static InterpolatedClock interpolated;
#define read_interpolated()	interpolated_clock_read(&interpolated)
#else
#define read_interpolated()	read_clock()
#endif

static Datum
uuid_of(uint64 ns)
{
	pg_uuid_t  *uuid = palloc(sizeof(pg_uuid_t));

	fuuid_uuid_encode_ns(uuid->data, ns, 0);
	return UUIDPGetDatum(uuid);
}

Datum
bare_clock_uuid(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return uuid_of(read_clock());
}

Datum
interpolated_clock_uuid(PG_FUNCTION_ARGS pg_attribute_unused())
{
	return uuid_of(read_interpolated());
}
