/*
 * test_vectors.c
 *	  Known answers of splitmix64 and xorshift128+: vectors.py calculates them
 *	  in big integers and prints vectors.h.  Run it again to see that they agree:
 *
 *	  python3 test/unit/vectors.py | diff - test/unit/vectors.h
 */
#include "c.h"

#undef snprintf				/* the C library's, as in tap.h */

#include "pure/xorshift_lanes.h"
#include "tap.h"
#include "vectors.h"

int
main(void)
{
	char		name[100];
	bool		lanes_agree = true;

	for (int i = 0; i < (int) lengthof(splitmix64_vectors); i++)
	{
		uint64		counter = splitmix64_vectors[i].seed;
		bool		equal = true;

		for (int k = 0; k < (int) lengthof(splitmix64_vectors[i].numbers); k++)
			equal &= splitmix64_next(&counter) == splitmix64_vectors[i].numbers[k];
		snprintf(name, sizeof(name), "splitmix64 from 0x%llx",
				 (unsigned long long) splitmix64_vectors[i].seed);
		ok(equal, name);
	}

	for (int i = 0; i < (int) lengthof(xorshift_vectors); i++)
	{
		Xorshift128Plus g;
		XorshiftLanes lanes;
		uint64		row[2 * FUUID_XORSHIFT_LANES];
		bool		equal = true;

		xorshift128plus_seed(&g, xorshift_vectors[i].seed);
		xorshift_lanes_start(&lanes, g);
		for (int jump = 0; jump < xorshift_vectors[i].stream; jump++)
			xorshift128plus_jump(&g);
		for (int k = 0; k < (int) lengthof(xorshift_vectors[i].numbers); k++)
			equal &= xorshift128plus_next(&g) == xorshift_vectors[i].numbers[k];
		snprintf(name, sizeof(name), "xorshift128+ seeded with 0x%llx, stream %d",
				 (unsigned long long) xorshift_vectors[i].seed, xorshift_vectors[i].stream);
		ok(equal, name);

		xorshift_lanes_fill(&lanes, (uint8 *) row, sizeof(row));
		for (int k = 0; k < 2; k++)
			lanes_agree &= row[k * FUUID_XORSHIFT_LANES + xorshift_vectors[i].stream] ==
				xorshift_vectors[i].numbers[k];
	}
	ok(lanes_agree, "each lane draws the stream of its number");

	return done_testing();
}
