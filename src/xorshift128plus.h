/*
 * xorshift128plus.h
 *	  The generator xorshift128+ with shifts (23, 18, 5): S. Vigna, "Further
 *	  scramblings of Marsaglia's xorshift generators" (2017); and splitmix64
 *	  to seed it: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom
 *	  number generators" (2014).  Fast, and predictable from its output.
 *
 *	  Pure: no palloc, no ereport, no server globals.
 */
#ifndef FUUID_XORSHIFT128PLUS_H
#define FUUID_XORSHIFT128PLUS_H

/* 128 bits that must not all be zero. */
typedef struct Xorshift128Plus
{
	uint64		s[2];
} Xorshift128Plus;

/* A polynomial over GF(2) of degree below 128; bit i of c[0] is that of x^i. */
typedef struct XorshiftPoly
{
	uint64		c[2];
} XorshiftPoly;

/*
 * Characteristic polynomial of the state transition, without its x^128, and
 * x^(2^64) modulo it.  test/unit derives both from the transition matrix.
 */
static const XorshiftPoly xorshift128plus_characteristic =
{{UINT64CONST(0x024f06fae9e61daf), UINT64CONST(0x2844c5d42caf7db0)}};
static const XorshiftPoly xorshift128plus_stream =
{{UINT64CONST(0x8a5cd789635d2dff), UINT64CONST(0x121fd2155c472f96)}};

/*
 * The next number of splitmix64, whose whole state is one counter.
 */
static inline uint64
splitmix64_next(uint64 *state)
{
	uint64		z = (*state += UINT64CONST(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64CONST(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64CONST(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/*
 * Start the stream of a seed.  Any seed will do: splitmix64 never gives the
 * same number twice in a row, so that the two words cannot both be zero.
 */
static inline void
xorshift128plus_seed(Xorshift128Plus *g, uint64 seed)
{
	g->s[0] = splitmix64_next(&seed);
	g->s[1] = splitmix64_next(&seed);
}

/*
 * The next 64 bits.
 */
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

/*
 * a * b modulo the characteristic polynomial, by shift and add.
 */
static inline XorshiftPoly
xorshift_poly_multiply(XorshiftPoly a, XorshiftPoly b)
{
	XorshiftPoly product = {{0, 0}};

	for (int i = 127; i >= 0; i--)
	{
		uint64		overflow = -(product.c[1] >> 63);
		uint64		term = -(b.c[i / 64] >> (i % 64) & 1);

		product.c[1] = product.c[1] << 1 | product.c[0] >> 63;
		product.c[0] <<= 1;
		for (int w = 0; w < 2; w++)
			product.c[w] ^= (xorshift128plus_characteristic.c[w] & overflow) ^
				(a.c[w] & term);
	}
	return product;
}

/*
 * Apply a polynomial in the state transition T: with x^n modulo the
 * characteristic polynomial this is n steps at once.
 */
static inline void
xorshift128plus_apply(Xorshift128Plus *g, XorshiftPoly poly)
{
	Xorshift128Plus sum = {{0, 0}};

	for (int i = 0; i < 128; i++)
	{
		uint64		term = -(poly.c[i / 64] >> (i % 64) & 1);

		sum.s[0] ^= g->s[0] & term;
		sum.s[1] ^= g->s[1] & term;
		(void) xorshift128plus_next(g);
	}
	*g = sum;
}

/*
 * Jump ahead by "streams" times 2^64 numbers: streams of different index do
 * not overlap within 2^64 numbers of each.
 */
static inline void
xorshift128plus_jump(Xorshift128Plus *g, uint64 streams)
{
	XorshiftPoly power = {{1, 0}};

	for (int i = 63; i >= 0; i--)
	{
		power = xorshift_poly_multiply(power, power);
		if (streams >> i & 1)
			power = xorshift_poly_multiply(power, xorshift128plus_stream);
	}
	xorshift128plus_apply(g, power);
}

#endif							/* FUUID_XORSHIFT128PLUS_H */
