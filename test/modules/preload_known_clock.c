/*
 * preload_known_clock.c
 *	  LD_PRELOAD library: a wall clock that a test knows to the nanosecond.
 *
 *	  The environment variable KNOWN_CLOCK_FILE names the file that has what it shows.
 *	  Of the server's processes only those that generate UUIDs, and OpenSSL, read this
 *	  clock: the server itself calls gettimeofday().
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
	int64_t		reading_ns;		/* by how much each reading moves it on */
	int64_t		fails;			/* the errno, if not 0; below 0: the second before
								 * 1970 that it shows */
	int64_t		monotonic_ns;	/* where CLOCK_MONOTONIC stands still, if not 0 */
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
	KnownClock *known = known_clock();
	uint64_t	ns;

	if (next == NULL)
		next = (int (*) (clockid_t, struct timespec *)) dlsym(RTLD_NEXT, "clock_gettime");
	if (known != NULL && clock == CLOCK_MONOTONIC && known->monotonic_ns != 0)
	{
		now->tv_sec = known->monotonic_ns / NS_PER_S;
		now->tv_nsec = known->monotonic_ns % NS_PER_S;
		return 0;
	}
	if (known == NULL || clock != CLOCK_REALTIME)
		return next(clock, now);
	ns = __atomic_fetch_add(&known->now_ns, known->reading_ns, __ATOMIC_SEQ_CST);

	/* Also where it fails: what is in there must not be taken then. */
	now->tv_sec = known->fails < 0 ? known->fails : (int64_t) (ns / NS_PER_S);
	now->tv_nsec = ns % NS_PER_S;
	if (known->fails <= 0)
		return 0;
	errno = known->fails;
	return -1;
}
