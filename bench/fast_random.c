/*
 * fast_random.c
 *	  Preloaded into a server (LD_PRELOAD): RAND_bytes that costs next to
 *	  nothing and is worth as much.  Shows what the generators do on a machine
 *	  whose random source is fast; for that alone.
 */
#include "c.h"

#include "common/xorshift128plus.h"

extern PGDLLEXPORT int RAND_status(void);
extern PGDLLEXPORT int RAND_bytes(unsigned char *buf, int num);

int
RAND_status(void)
{
	return 1;
}

int
RAND_bytes(unsigned char *buf, int num)
{
	static Xorshift128Plus generator;
	static bool seeded = false;

	if (!seeded)
		xorshift128plus_seed(&generator, 1);
	seeded = true;
	while (num > 0)
	{
		uint64		word = xorshift128plus_next(&generator);
		int			len = Min(num, (int) sizeof(word));

		memcpy(buf, &word, len);
		buf += len;
		num -= len;
	}
	return 1;
}
