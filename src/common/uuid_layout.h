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
 *	  The fraction is sub_ns * 2^20 / 10^6, rounded down, so that each
 *	  nanosecond has one of its own.  Its upper 12 bits are those of the RFC's
 *	  method 3 (section 6.2), as in uuidv7() of PostgreSQL 18; the lower 8 are
 *	  where the RFC allows a counter.
 *
 *	  Needs no server: no palloc, no ereport, no server globals.
 */
#ifndef FUUID_UUID_LAYOUT_H
#define FUUID_UUID_LAYOUT_H

#include "port/pg_bswap.h"

#define FUUID_UUID_LEN		16
#define FUUID_FRACTION_BITS 20
#define FUUID_RANDOM_BITS	54
#define FUUID_US_PER_MS		1000
#define FUUID_NS_PER_US		1000
#define FUUID_NS_PER_MS		UINT64CONST(1000000)
#define FUUID_NS_PER_S		UINT64CONST(1000000000)

/* The fixed bits, in the first and the second 8 bytes. */
#define FUUID_VERSION_7		UINT64CONST(0x7000)
#define FUUID_VARIANT_RFC	UINT64CONST(0x8000000000000000)
#define FUUID_VARIANT_BIT	UINT64CONST(0x4000000000000000)

/* First millisecond since 1970 that does not fit in 48 bits (year 10889). */
#define FUUID_UNIX_MS_END	(INT64CONST(1) << 48)

/* Write two 64-bit words as the 16 bytes, most significant byte first. */
static inline void
fuuid_uuid_write(unsigned char *uuid, uint64 high, uint64 low)
{
	high = pg_hton64(high);
	low = pg_hton64(low);
	memcpy(uuid, &high, sizeof(high));
	memcpy(uuid + sizeof(high), &low, sizeof(low));
}

/* Read one of the two 64-bit words, most significant byte first. */
static inline uint64
fuuid_uuid_read(const unsigned char *word)
{
	uint64		value;

	memcpy(&value, word, sizeof(value));
	return pg_ntoh64(value);
}

/*
 * Write the version 7 UUID of a time and some random bits.
 *
 * unix_ms: milliseconds since 1970-01-01 UTC, below FUUID_UNIX_MS_END.
 * sub_ns: nanoseconds within that millisecond, 0 to 999999.
 * random: its lower 54 bits are used.
 */
static inline void
fuuid_uuid_encode(unsigned char *uuid, uint64 unix_ms, uint32 sub_ns,
				  uint64 random)
{
	uint64		fraction;

	fraction = ((uint64) sub_ns << FUUID_FRACTION_BITS) / FUUID_NS_PER_MS;
	fuuid_uuid_write(uuid,
					 unix_ms << 16 | FUUID_VERSION_7 | fraction >> 8,
					 FUUID_VARIANT_RFC |
					 (fraction & 0xFF) << FUUID_RANDOM_BITS |
					 (random & ((UINT64CONST(1) << FUUID_RANDOM_BITS) - 1)));
}

/* Write the version 7 UUID of a time in nanoseconds since 1970-01-01 UTC. */
static inline void
fuuid_uuid_encode_ns(unsigned char *uuid, uint64 ns, uint64 random)
{
	fuuid_uuid_encode(uuid, ns / FUUID_NS_PER_MS, ns % FUUID_NS_PER_MS, random);
}

/* Write the smallest, or the largest, version 7 UUID of a millisecond. */
static inline void
fuuid_uuid_min(unsigned char *uuid, uint64 unix_ms)
{
	fuuid_uuid_write(uuid, unix_ms << 16 | FUUID_VERSION_7, FUUID_VARIANT_RFC);
}

static inline void
fuuid_uuid_max(unsigned char *uuid, uint64 unix_ms)
{
	fuuid_uuid_write(uuid, unix_ms << 16 | FUUID_VERSION_7 | 0xFFF,
					 FUUID_VARIANT_RFC | (FUUID_VARIANT_BIT - 1));
}

/* Is this UUID of version 7 and of the RFC's variant? */
static inline bool
fuuid_uuid_is_v7(const unsigned char *uuid)
{
	return uuid[6] >> 4 == 7 && uuid[8] >> 6 == 2;
}

/* The time in a UUID, in milliseconds since 1970-01-01 UTC. */
static inline uint64
fuuid_uuid_unix_ms(const unsigned char *uuid)
{
	return fuuid_uuid_read(uuid) >> 16;
}

/* The bits in the place of the fraction, whichever generator has set them. */
static inline uint64
fuuid_uuid_fraction(const unsigned char *uuid)
{
	return (fuuid_uuid_read(uuid) & 0xFFF) << 8 |
		(fuuid_uuid_read(uuid + 8) >> FUUID_RANDOM_BITS & 0xFF);
}

/*
 * The nanoseconds within the millisecond, 0 to 999999: exact for a UUID that
 * was encoded here, for another what a generator stored in these bits.
 */
static inline uint32
fuuid_uuid_sub_ns(const unsigned char *uuid)
{
	uint32		sub_ns = (fuuid_uuid_fraction(uuid) * FUUID_NS_PER_MS +
						  (1 << FUUID_FRACTION_BITS) - 1) >> FUUID_FRACTION_BITS;

	/* The largest fraction, which no nanosecond has, is rounded up to 10^6. */
	return Min(sub_ns, FUUID_NS_PER_MS - 1);
}

#endif							/* FUUID_UUID_LAYOUT_H */
