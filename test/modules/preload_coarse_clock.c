/*
 * preload_coarse_clock.c
 *	  LD_PRELOAD library: a wall clock that counts microseconds, as that of
 *	  macOS does.
 */
#include <dlfcn.h>
#include <time.h>

#define TICK_NS 1000

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	static int	(*next) (clockid_t, struct timespec *);
	int			result;

	if (next == NULL)
		next = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	result = next(clock, now);
	if (clock == CLOCK_REALTIME)
		now->tv_nsec -= now->tv_nsec % TICK_NS;
	return result;
}
