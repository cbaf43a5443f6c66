/*
 * test_xorshift.c
 *	  xorshift128plus.h against vectors from the definitions, calculated with Python's
 *	  integers: splitmix64 (Steele et al. 2014), xorshift128+ with the shifts 23, 18
 *	  and 5 (Vigna 2017, figure 1).
 */
#include "c.h"

#include "common/xorshift128plus.h"
#include "tap.h"

int
main(void)
{
	/* Of the seeds 0 or 42 and 2^64 - 1 */
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
	/* The exclusive or of the first million from 42 */
	const uint64 million = UINT64CONST(0xaf222c3da5d73369);
	uint64		sum = 0;
	Xorshift128Plus g;
	bool		splitmix_equal = true,
				xorshift_equal = true;

	for (int i = 0; i < 2; i++)
	{
		uint64		counter = i == 0 ? 0 : PG_UINT64_MAX;

		xorshift128plus_seed(&g, i == 0 ? 42 : PG_UINT64_MAX);
		for (int k = 0; k < 4; k++)
		{
			splitmix_equal &= splitmix64_next(&counter) == splitmix[i][k];
			xorshift_equal &= xorshift128plus_next(&g) == xorshift[i][k];
		}
	}
	ok(splitmix_equal, "splitmix64 from 0 and from 2^64 - 1");
	ok(xorshift_equal, "xorshift128+ seeded with 42 and with 2^64 - 1");

	xorshift128plus_seed(&g, 42);
	for (int k = 0; k < 1000000; k++)
		sum ^= xorshift128plus_next(&g);
	ok(sum == million, "a million numbers of the seed 42");

	return done_testing();
}
