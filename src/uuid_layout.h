/*
 * uuid_layout.h
 *	  The 16 bytes of a version 7 UUID (RFC 9562, sections 5.7 and 6.2).
 *
 *	  bits    field       content
 *	  0-47    unix_ts_ms  milliseconds since 1970-01-01 UTC
 *	  48-51   ver         0111
 *	  52-63   rand_a      upper 12 bits of the 20-bit sub-millisecond fraction
 *	  64-65   var         10
 *	  66-73   rand_b      lower 8 bits of the fraction
 *	  74-127  rand_b      54 random bits
 *
 *	  The fraction is sub_ns * 2^20 / 10^6 (RFC 9562, section 6.2, method 3).
 *	  With 20 bits every nanosecond has a value of its own, and the upper 12
 *	  are those that the uuidv7() of PostgreSQL 18 stores.
 *
 *	  Pure: no palloc, no ereport, no server globals.
 */
#ifndef FU_UUID_LAYOUT_H
#define FU_UUID_LAYOUT_H

#include "port/pg_bswap.h"

#define FU_UUID_LEN			16
#define FU_FRACTION_BITS	20
#define FU_RANDOM_BITS		54
#define FU_MS_PER_S			1000
#define FU_NS_PER_MS		UINT64CONST(1000000)
#define FU_NS_PER_S			UINT64CONST(1000000000)

/*
 * Write the version 7 UUID of a time and some random bits.
 *
 * sec: seconds since 1970-01-01 UTC, below 2^48 / 1000.
 * nsec: nanoseconds within that second, 0 to 999999999.
 * random: its lower 54 bits are used.
 *
 * One division gives the millisecond of the second and, below it, the
 * fraction: both are the integer parts of nsec / 10^6, the latter times 2^20.
 */
static inline void
fu_uuid_encode(unsigned char *uuid, uint64 sec, uint32 nsec, uint64 random)
{
	uint64		ms_and_fraction = ((uint64) nsec << FU_FRACTION_BITS) / FU_NS_PER_MS;
	uint64		unix_ms = sec * FU_MS_PER_S + (ms_and_fraction >> FU_FRACTION_BITS);
	uint64		high = unix_ms << 16 | UINT64CONST(0x7000) | (ms_and_fraction >> 8 & 0xFFF);
	uint64		low = UINT64CONST(0x8000000000000000) |
		(ms_and_fraction & 0xFF) << FU_RANDOM_BITS |
		(random & ((UINT64CONST(1) << FU_RANDOM_BITS) - 1));

	high = pg_hton64(high);
	low = pg_hton64(low);
	memcpy(uuid, &high, sizeof(high));
	memcpy(uuid + sizeof(high), &low, sizeof(low));
}

#endif							/* FU_UUID_LAYOUT_H */
