/*
 * preload_clock_offset.c
 *	  LD_PRELOAD library: a wall clock for all of a server, which is ahead of the true
 *	  time, behind, or stands still, as the file says that CLOCK_OFFSET_FILE names.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S INT64_C(1000000000)

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

typedef struct ClockOffset
{
	int64_t		ahead_ns;
	int64_t		stands_at_ns;	/* 0: it does not */
} ClockOffset;

static ClockOffset
clock_offset(void)
{
	static const volatile ClockOffset *offset;
	const char *file = getenv("CLOCK_OFFSET_FILE");

	if (offset == NULL && file != NULL)
	{
		int			fd = open(file, O_RDONLY);

		offset = mmap(NULL, sizeof(ClockOffset), PROT_READ, MAP_SHARED, fd, 0);
		if (fd < 0 || offset == MAP_FAILED)
			abort();
		close(fd);
	}
	return offset == NULL ? (ClockOffset) {0, 0} : *offset;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	static int	(*next) (clockid_t, struct timespec *);
	int			result;

	if (next == NULL)
		next = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	result = next(clock, now);
	if (clock == CLOCK_REALTIME && result == 0)
	{
		ClockOffset offset = clock_offset();
		int64_t		ns = now->tv_sec * NS_PER_S + now->tv_nsec + offset.ahead_ns;

		if (offset.stands_at_ns != 0)
			ns = offset.stands_at_ns;
		now->tv_sec = ns / NS_PER_S;
		now->tv_nsec = ns % NS_PER_S;
	}
	return result;
}

int
gettimeofday(struct timeval *now, void *timezone)
{
	struct timespec precise;

	(void) timezone;
	clock_gettime(CLOCK_REALTIME, &precise);
	now->tv_sec = precise.tv_sec;
	now->tv_usec = precise.tv_nsec / 1000;
	return 0;
}

/* By which pg_ctl sees whether the server that it finds is the one that it has started. */
time_t
time(time_t *now)
{
	struct timespec precise;

	clock_gettime(CLOCK_REALTIME, &precise);
	if (now != NULL)
		*now = precise.tv_sec;
	return precise.tv_sec;
}
