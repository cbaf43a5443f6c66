/*
 * test_layout.c
 *	  uuid_layout.h: where each bit goes.
 */
#include "c.h"

#include "common/uuid_layout.h"
#include "tap.h"

static bool
encodes_to(uint64 unix_ms, uint32 sub_ns, uint64 random, const char *expected)
{
	unsigned char uuid[FUUID_UUID_LEN];
	char		text[2 * FUUID_UUID_LEN + 1];

	fuuid_uuid_encode(uuid, unix_ms, sub_ns, random);
	for (int i = 0; i < FUUID_UUID_LEN; i++)
		sprintf(text + 2 * i, "%02x", uuid[i]);
	if (strcmp(text, expected) == 0)
		return true;
	printf("# got %s, expected %s\n", text, expected);
	return false;
}

/* Fraction of a value, read back bit by bit from the table in uuid_layout.h. */
static uint32
fraction_of(uint32 nsec)
{
	unsigned char uuid[FUUID_UUID_LEN];
	uint32		fraction = 0;

	fuuid_uuid_encode_ns(uuid, nsec, 0);
	for (int bit = 52; bit <= 73; bit++)
		if (bit != 64 && bit != 65)
			fraction = fraction << 1 | (uuid[bit / 8] >> (7 - bit % 8) & 1);
	return fraction;
}

int
main(void)
{
	bool		ascending = true,
				core_bits = true,
				every_ms = true,
				reads_back = true,
				version_7_alone = true;
	uint32		previous = 0;

	/* 797702 ns is the first whose fraction is 0xCC363, the vector's 20 bits. */
	ok(encodes_to(UINT64CONST(0x017F22E279B0), 797702, UINT64CONST(0x18C4DC0C0C07398F),
				  "017f22e279b07cc398c4dc0c0c07398f"),
	   "the vector of RFC 9562, appendix A.6");

	ok(encodes_to(0, 0, 0, "00000000000070008000000000000000"),
	   "all zero but version and variant");
	ok(encodes_to((UINT64CONST(1) << 48) - 1, 999999, PG_UINT64_MAX,
				  "ffffffffffff7fffbfbfffffffffffff"),
	   "the last nanosecond of the last millisecond, all random bits one");
	ok(encodes_to(1, 0, PG_UINT64_MAX, "000000000001700080" "3fffffffffffff"),
	   "no random bit reaches time, version or variant");

	for (uint32 sub_ns = 0; sub_ns < 1000000; sub_ns++)
	{
		uint32		fraction = fraction_of(sub_ns);

		ascending &= sub_ns == 0 || fraction > previous;
		core_bits &= fraction >> 8 == (uint32) ((uint64) sub_ns * 4096 / 1000000);
		every_ms &= fraction_of(999000000 + sub_ns) == fraction;
		previous = fraction;
	}
	ok(ascending, "every nanosecond of a millisecond has a greater fraction than the one before");
	ok(core_bits, "the upper 12 bits are sub_ns * 4096 / 10^6, as in PostgreSQL 18");
	ok(every_ms, "the last millisecond of a second has the fractions of the first");

	for (uint32 sub_ns = 0; sub_ns < 1000000; sub_ns++)
	{
		unsigned char uuid[FUUID_UUID_LEN];

		fuuid_uuid_encode(uuid, UINT64CONST(1234567890987), sub_ns, PG_UINT64_MAX);
		reads_back &= fuuid_uuid_is_v7(uuid) && fuuid_uuid_sub_ns(uuid) == sub_ns &&
			fuuid_uuid_unix_ms(uuid) == UINT64CONST(1234567890987);
	}
	ok(reads_back, "every nanosecond is read back as it was written");

	{
		unsigned char other[FUUID_UUID_LEN];

		fuuid_uuid_min(other, 77);
		for (int version = 0; version < 16; version++)
			for (int variant = 0; variant < 4; variant++)
			{
				other[6] = version << 4 | 0xF;
				other[8] = variant << 6 | 0x3F;
				version_7_alone &= fuuid_uuid_is_v7(other) == (version == 7 && variant == 2);
			}
		ok(version_7_alone, "no other version or variant is taken for version 7");
	}


	return done_testing();
}
