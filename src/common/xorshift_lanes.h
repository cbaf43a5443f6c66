/*
 * xorshift_lanes.h
 *	  Eight xorshift128+ generators (lanes) side by side, which make one stream
 *	  of 64-bit words, so that the compiler can use vector instructions.
 *
 *	  Word i of the stream is number i / 8 of lane i % 8.  Lane k is the seed's
 *	  generator k jumps ahead, so that lanes do not overlap within 2^64
 *	  numbers.  The words are the same on every machine, in whatever portions
 *	  they are drawn.
 *
 *	  Needs no server: no palloc, no ereport, no server globals.
 */
#ifndef FUUID_XORSHIFT_LANES_H
#define FUUID_XORSHIFT_LANES_H

#include "common/xorshift128plus.h"

#define FUUID_XORSHIFT_LANES 8

typedef struct XorshiftLanes
{
	uint64		s0[FUUID_XORSHIFT_LANES];
	uint64		s1[FUUID_XORSHIFT_LANES];
	uint64		row[FUUID_XORSHIFT_LANES];	/* the latest word of each lane */
	uint32		row_next;		/* first word of "row" not drawn yet */
} XorshiftLanes;

/* Start the lanes from a seeded generator. */
static inline void
xorshift_lanes_start(XorshiftLanes *lanes, Xorshift128Plus seed)
{
	for (int k = 0; k < FUUID_XORSHIFT_LANES; k++)
	{
		lanes->s0[k] = seed.s[0];
		lanes->s1[k] = seed.s[1];
		xorshift128plus_jump(&seed);
	}
	lanes->row_next = FUUID_XORSHIFT_LANES;
}

/*
 * Write the next "rows" words of every lane to buf.  The loops over the lanes
 * have a fixed length and independent iterations, so that they become vector
 * code.  The words go straight to buf, so that none stays behind on the stack.
 */
static inline void
xorshift_lanes_rows(XorshiftLanes *lanes, uint8 *buf, size_t rows)
{
	uint64		a[FUUID_XORSHIFT_LANES];
	uint64		b[FUUID_XORSHIFT_LANES];

	memcpy(a, lanes->s0, sizeof(a));
	memcpy(b, lanes->s1, sizeof(b));
	for (; rows > 0; rows--, buf += sizeof(a))
	{
		for (int k = 0; k < FUUID_XORSHIFT_LANES; k++)
		{
			uint64		s1 = a[k];
			uint64		s0 = b[k];
			uint64		word = s0 + s1;

			memcpy(buf + k * sizeof(word), &word, sizeof(word));
			a[k] = s0;
			s1 ^= s1 << 23;
			b[k] = s1 ^ s0 ^ (s1 >> 18) ^ (s0 >> 5);
		}
	}
	memcpy(lanes->s0, a, sizeof(a));
	memcpy(lanes->s1, b, sizeof(b));
}

/* Write the next len bytes of the stream; len is a multiple of 8. */
static inline void
xorshift_lanes_fill(XorshiftLanes *lanes, uint8 *buf, size_t len)
{
	const size_t row_size = sizeof(lanes->row);

	while (len > 0)
	{
		if (lanes->row_next == FUUID_XORSHIFT_LANES)
		{
			size_t		rows = len / row_size;

			xorshift_lanes_rows(lanes, buf, rows);
			buf += rows * row_size;
			len -= rows * row_size;
			if (len == 0)
				return;
			xorshift_lanes_rows(lanes, (uint8 *) lanes->row, 1);
			lanes->row_next = 0;
		}
		memcpy(buf, &lanes->row[lanes->row_next], sizeof(uint64));
		lanes->row[lanes->row_next++] = 0;
		buf += sizeof(uint64);
		len -= sizeof(uint64);
	}
}

#endif							/* FUUID_XORSHIFT_LANES_H */
