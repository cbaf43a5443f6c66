/*
 * tap.h
 *	  The Test Anything Protocol for the unit tests.
 */
#include <stdio.h>

/* The C library's: unit tests are linked with nothing of the server. */
#undef printf
#undef sprintf

static int	tap_count;
static int	tap_failures;

static void
ok(bool passed, const char *name)
{
	printf("%sok %d - %s\n", passed ? "" : "not ", ++tap_count, name);
	tap_failures += !passed;
}

static int
done_testing(void)
{
	printf("1..%d\n", tap_count);
	return tap_failures > 0;
}
