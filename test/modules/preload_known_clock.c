/*
 * preload_known_clock.c
 *	  LD_PRELOAD library: a wall clock that a test knows to the nanosecond.
 *
 *	  The file that the environment variable KNOWN_CLOCK_FILE names holds what it
 *	  shows, and by how much each reading moves it on.  Then, if it is not 0, the errno
 *	  with which reading it fails; below 0: a second before 1970 that it shows.  Of the
 *	  server's processes only those that generate UUIDs, and OpenSSL, read this clock.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S 1000000000

typedef struct KnownClock
{
	uint64_t	now_ns;
	int64_t		reading_ns;
	int64_t		fails;
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
	KnownClock *known = clock == CLOCK_REALTIME ? known_clock() : NULL;
	uint64_t	ns;

	if (known == NULL)
	{
		if (next == NULL)
			next = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
		return next(clock, now);
	}
	ns = __atomic_fetch_add(&known->now_ns, known->reading_ns, __ATOMIC_SEQ_CST);

	/* Also where it fails: what is in there must not be taken then. */
	now->tv_sec = ns / NS_PER_S;
	now->tv_nsec = ns % NS_PER_S;
	if (known->fails < 0)
		now->tv_sec = known->fails;
	if (known->fails <= 0)
		return 0;
	errno = known->fails;
	return -1;
}
