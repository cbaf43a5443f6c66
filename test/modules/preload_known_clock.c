/*
 * preload_known_clock.c
 *	  LD_PRELOAD library: a wall clock that a test knows to the nanosecond.
 *
 *	  The file that the environment variable KNOWN_CLOCK_FILE names holds what it
 *	  shows, by how much each reading moves it on, and the ticks of the coarse
 *	  clock: where one began, and how long each is.  Of the server's processes
 *	  only those that generate UUIDs, and OpenSSL, read these clocks.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

typedef struct KnownClock
{
	int64_t		now_ns;
	int64_t		reading_ns;
	int64_t		tick_began_ns;
	int64_t		tick_ns;
} KnownClock;

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

static KnownClock *
known_clock(void)
{
	static KnownClock *known;
	const char *file = getenv("KNOWN_CLOCK_FILE");
	int			fd;

	if (known != NULL || file == NULL)
		return known;
	fd = open(file, O_RDWR);
	known = mmap(NULL, sizeof(KnownClock), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || known == MAP_FAILED)
		abort();
	close(fd);
	return known;
}

int
clock_gettime(clockid_t clock, struct timespec *now)
{
	static int	(*next) (clockid_t, struct timespec *);
	KnownClock *known = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE ? known_clock() : NULL;
	int64_t		ns;

	if (known == NULL)
	{
		if (next == NULL)
			next = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
		return next(clock, now);
	}
	if (clock == CLOCK_REALTIME)
		ns = __atomic_fetch_add(&known->now_ns, known->reading_ns, __ATOMIC_SEQ_CST);
	else
	{
		ns = __atomic_load_n(&known->now_ns, __ATOMIC_SEQ_CST);

		/* Readings may move the clock to before the tick. */
		ns -= ((ns - known->tick_began_ns) % known->tick_ns + known->tick_ns) % known->tick_ns;
	}
	now->tv_sec = ns / NS_PER_S;
	now->tv_nsec = ns % NS_PER_S;
	return 0;
}
