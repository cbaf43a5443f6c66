/*
 * test_xorshift.c
 *	  xorshift128plus.h against calculations that share nothing with it.
 *
 *	  The state transition is linear over GF(2), so that it is a matrix T of
 *	  128 x 128 bits; here it is built from its definition with shifts and
 *	  multiplied out, without polynomials.
 */
#include "c.h"

#include "common/xorshift128plus.h"
#include "tap.h"

#define BITS 128

typedef struct
{
	uint64		column[BITS][2];	/* what T makes of each unit vector */
} Matrix;

static void
apply(const Matrix *m, const uint64 in[2], uint64 out[2])
{
	uint64		sum[2] = {0, 0};

	for (int i = 0; i < BITS; i++)
		if (in[i / 64] >> (i % 64) & 1)
			for (int w = 0; w < 2; w++)
				sum[w] ^= m->column[i][w];
	memcpy(out, sum, sizeof(sum));
}

/* One step of the linear engine (Vigna 2017, figure 1), shifts 23, 18, 5. */
static void
set_transition(Matrix *m)
{
	for (int i = 0; i < BITS; i++)
	{
		uint64		x = i < 64 ? UINT64CONST(1) << i : 0;
		uint64		y = i < 64 ? 0 : UINT64CONST(1) << (i - 64);

		x ^= x << 23;
		m->column[i][0] = y;
		m->column[i][1] = x ^ (x >> 18) ^ y ^ (y >> 5);
	}
}

static bool
same(const Xorshift128Plus *g, const uint64 s[2])
{
	return g->s[0] == s[0] && g->s[1] == s[1];
}

int
main(void)
{
	/* Of the seeds 0 or 42 and 2^64 - 1, from the definitions in Python's integers. */
	static const uint64 splitmix[2][4] = {
		{UINT64CONST(0xe220a8397b1dcdaf), UINT64CONST(0x6e789e6aa1b965f4),
		UINT64CONST(0x06c45d188009454f), UINT64CONST(0xf88bb8a8724c81ec)},
		{UINT64CONST(0xe4d971771b652c20), UINT64CONST(0xe99ff867dbf682c9),
	UINT64CONST(0x382ff84cb27281e9), UINT64CONST(0x6d1db36ccba982d2)}};
	static const uint64 xorshift[2][4] = {
		{UINT64CONST(0xe6c71559e2525f98), UINT64CONST(0xb058533f2de1e247),
		UINT64CONST(0xb9ce3f9922d00c78), UINT64CONST(0xe388dbc5079ed02b)},
		{UINT64CONST(0xce7969def75baee9), UINT64CONST(0x9b27cbf8baaadaef),
	UINT64CONST(0x2001ac4746b33019), UINT64CONST(0x835c5a6ba31921fa)}};

	static Matrix t;
	Xorshift128Plus g;
	uint64		state[2];
	bool		splitmix_equal = true,
				equal = true;

	for (int i = 0; i < 2; i++)
	{
		uint64		counter = i == 0 ? 0 : PG_UINT64_MAX;

		xorshift128plus_seed(&g, i == 0 ? 42 : PG_UINT64_MAX);
		for (int k = 0; k < 4; k++)
		{
			splitmix_equal &= splitmix64_next(&counter) == splitmix[i][k];
			equal &= xorshift128plus_next(&g) == xorshift[i][k];
		}
	}
	ok(splitmix_equal, "splitmix64 from 0 and from 2^64 - 1");
	ok(equal, "xorshift128+ seeded with 42 and with 2^64 - 1");

	set_transition(&t);
	equal = true;
	xorshift128plus_seed(&g, 1);
	memcpy(state, g.s, sizeof(state));
	for (int i = 0; i < 1000; i++)
	{
		uint64		sum = state[0] + state[1];

		equal &= xorshift128plus_next(&g) == sum;
		apply(&t, state, state);
		equal &= same(&g, state);
	}
	ok(equal, "a thousand steps as by the transition matrix");

	return done_testing();
}
