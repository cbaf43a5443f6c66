/*
 * xorshift128plus.h
 *	  The generator xorshift128+ with shifts (23, 18, 5): S. Vigna, "Further
 *	  scramblings of Marsaglia's xorshift generators" (2017); and splitmix64
 *	  to seed it: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
 *	  number generators" (2014).  Fast, but predictable from its output.
 *
 *	  Needs no server: no palloc, no ereport, no server globals.
 */
#ifndef FUUID_XORSHIFT128PLUS_H
#define FUUID_XORSHIFT128PLUS_H

/* 128 bits that must not all be zero. */
typedef struct Xorshift128Plus
{
	uint64		s[2];
} Xorshift128Plus;

/* The next number of splitmix64, whose whole state is one counter. */
static inline uint64
splitmix64_next(uint64 *state)
{
	uint64		z = (*state += UINT64CONST(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/*
 * Start the generator from a seed.  Any will do: splitmix64 never gives the
 * same number twice in a row, so that the two words cannot both be zero.
 */
static inline void
xorshift128plus_seed(Xorshift128Plus *g, uint64 seed)
{
	g->s[0] = splitmix64_next(&seed);
	g->s[1] = splitmix64_next(&seed);
}

/* The next 64 bits. */
static inline uint64
xorshift128plus_next(Xorshift128Plus *g)
{
	uint64		s1 = g->s[0];
	uint64		s0 = g->s[1];
	uint64		result = s0 + s1;

	g->s[0] = s0;
	s1 ^= s1 << 23;
	g->s[1] = s1 ^ s0 ^ (s1 >> 18) ^ (s0 >> 5);
	return result;
}

#endif							/* FUUID_XORSHIFT128PLUS_H */
