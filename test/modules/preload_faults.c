/*
 * preload_faults.c
 *	  LD_PRELOAD library: stands between the entropy sources and what they call.
 *
 *	  In a process that has called inject(), it counts requests, and makes them
 *	  fail as a text says: faults, separated by commas.
 *
 *	  getrandom ERRNO [N]	getrandom(2) fails, always or N times; EAGAIN: as before
 *							the kernel's generator is seeded
 *	  short BYTES			getrandom(2) and reads of /dev/urandom deliver at most so
 *							many, and some reads are interrupted
 *	  mmap ERRNO			the vDSO's state cannot be mapped
 *	  path PATH				/dev/urandom leads to PATH
 *	  open ERRNO [N], fstat ERRNO, read ERRNO
 *							the call fails for /dev/urandom
 *	  then ERRNO			all reads of it but the first fail
 *	  end					reads of it find its end
 *	  rand N				RAND_bytes fails and queues N errors of OpenSSL; 0: it
 *						returns -1, as if it did not support the request
 *	  malloc N				requests of N bytes or more find no memory
 *
 *	  The vDSO is replaced by one that makes the system call, because that of
 *	  the kernel, which is not there on all machines, cannot be made to fail.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#undef _FORTIFY_SOURCE			/* its inline functions have the names below */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/vdso_getrandom.h"

#define DEVICE			"/dev/urandom"

/* After so many the caller would never stop: end the test. */
#define MAX_FAILURES	10000000

/* Any error will do: library RAND, "error retrieving entropy". */
#define OPENSSL_LIB_RAND	36
#define OPENSSL_REASON		110

/* What the vDSO requires; no other mapping is like this. */
#define STATE_SIZE		144
#define STATE_PROT		(PROT_READ | PROT_WRITE)
#define STATE_FLAGS		(MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE)

#define REAL(name)	((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

extern void inject(const char *faults);
extern const char *requests(void);
extern int	RAND_bytes(unsigned char *buf, int num);
extern ssize_t __vdso_getrandom(void *buf, size_t len, unsigned int flags,
								void *state, size_t state_len);

static pid_t owner;				/* the process that it is for */
static char injected[256];
static unsigned int failures;	/* since then */

/* Requests since then, equal ones that follow each other as one. */
static struct
{
	const char *call;
	size_t		size;
	int			times;
}			log_of_requests[256];
static int	logged;

static int	device_fd = -1;
static unsigned int reads;		/* since the device was opened */

void
inject(const char *faults)
{
	snprintf(injected, sizeof(injected), "%s", faults);
	owner = getpid();
	failures = logged = 0;
}

/* As "CALL SIZE*TIMES, ..."; none of before then. */
const char *
requests(void)
{
	static char text[8192];
	int			len = 0;

	text[0] = '\0';
	for (int i = 0; i < logged; i++)
		len += snprintf(text + len, sizeof(text) - len, "%s%s %zu*%d", i > 0 ? ", " : "",
						log_of_requests[i].call, log_of_requests[i].size, log_of_requests[i].times);
	logged = 0;
	return text;
}

static void
log_request(const char *call, size_t size)
{
	if (owner != getpid())
		return;
	if (logged == 0 || strcmp(log_of_requests[logged - 1].call, call) != 0 ||
		log_of_requests[logged - 1].size != size)
	{
		if (logged == 256)
			return;
		log_of_requests[logged].call = call;
		log_of_requests[logged].size = size;
		log_of_requests[logged++].times = 0;
	}
	log_of_requests[logged - 1].times++;
}

static void
end_test(const char *why)
{
	fprintf(stderr, "%s\n", why);
	abort();
}

/* What follows the word of a fault in this process; NULL: there is no such fault. */
static const char *
fault(const char *word)
{
	const char *next = owner == getpid() ? injected : NULL;
	size_t		len = strlen(word);

	while (next != NULL && !(strncmp(next, word, len) == 0 && strchr(" ,", next[len]) != NULL))
		next = (next = strchr(next, ',')) == NULL ? NULL : next + 1;
	return next == NULL ? NULL : next + len;
}

static size_t
fault_number(const char *word)
{
	const char *value = fault(word);

	return value == NULL ? 0 : strtoul(value, NULL, 10);
}

/* Does the call fail?  Then errno is set. */
static bool
fails(const char *call)
{
	const char *value = fault(call);
	int			error;
	unsigned int times = MAX_FAILURES;

	if (value == NULL || sscanf(value, "%d %u", &error, &times) < 1 || failures == times)
		return false;
	if (++failures == MAX_FAILURES)
		end_test("a call was repeated for ever");
	errno = error;
	return true;
}

/* Memory */

extern void *__libc_malloc(size_t size);

void *
malloc(size_t size)
{
	size_t		limit = fault_number("malloc");

	if (limit == 0 || size < limit)
		return __libc_malloc(size);
	errno = ENOMEM;
	return NULL;
}

void *
mmap(void *addr, size_t length, int prot, int flags, int fd, off_t offset)
{
	if (length == STATE_SIZE && prot == STATE_PROT && flags == STATE_FLAGS)
	{
		log_request("mmap", length);
		if (fails("mmap"))
			return MAP_FAILED;
	}
	return REAL(mmap) (addr, length, prot, flags, fd, offset);
}

/* getrandom */

static ssize_t
getrandom_or_fail(void *buf, size_t len, unsigned int flags)
{
	size_t		most = fault_number("short");

	if (fails("getrandom"))
	{
		if (errno == EAGAIN && !(flags & GRND_NONBLOCK))
			end_test("a request waits for the kernel's seed");
		return -1;
	}
	if (most > 0 && most < len)
		len = most;
	return REAL(syscall) (SYS_getrandom, buf, len, flags);
}

long
syscall(long number,...)
{
	va_list		args;
	long		arg[6];

	va_start(args, number);
	for (int i = 0; i < 6; i++)
		arg[i] = va_arg(args, long);
	va_end(args);
	if (number != SYS_getrandom)
		return REAL(syscall) (number, arg[0], arg[1], arg[2], arg[3], arg[4], arg[5]);
	log_request("getrandom", arg[1]);
	return getrandom_or_fail((void *) arg[0], arg[1], arg[2]);
}

/* By which OpenSSL seeds itself, and which waits until the kernel's generator is seeded. */
int
getentropy(void *buf, size_t len)
{
	if (fault_number("getrandom") == EAGAIN)
		end_test("a request waits for the kernel's seed");
	return REAL(getentropy) (buf, len);
}

void *
dlopen(const char *file, int mode)
{
	if (file != NULL && strcmp(file, "linux-vdso.so.1") == 0)
		return REAL(dlopen) (NULL, RTLD_LAZY);	/* finds the function below */
	return REAL(dlopen) (file, mode);
}

ssize_t
__vdso_getrandom(void *buf, size_t len, unsigned int flags, void *state, size_t state_len)
{
	ssize_t		got;

	if (state_len == ~(size_t) 0)
	{
		VdsoParams	params = {STATE_SIZE, STATE_PROT, STATE_FLAGS, {0}};

		memcpy(state, &params, sizeof(params));
		return 0;
	}
	if (state_len != STATE_SIZE)
		end_test("the vDSO is called with a state of another size");
	memset(state, 1, state_len);
	log_request("vdso", len);
	got = getrandom_or_fail(buf, len, flags);
	return got < 0 ? -errno : got;
}

/* The random device */

static const char *
redirect(const char *path)
{
	const char *other = strcmp(path, DEVICE) == 0 ? fault("path") : NULL;

	return other == NULL ? path : other + 1;
}

int
open(const char *path, int flags,...)
{
	int			mode = 0;
	struct stat st;

	if (flags & (O_CREAT | O_TMPFILE))
	{
		va_list		args;

		va_start(args, flags);
		mode = va_arg(args, int);
		va_end(args);
	}
	if (strcmp(path, DEVICE) != 0)
		return REAL(open) (path, flags, mode);

	if (fails("open"))
		return -1;
	if (!(flags & O_NONBLOCK) && REAL(stat) (redirect(path), &st) == 0 && S_ISFIFO(st.st_mode))
		end_test("the opening of a pipe waits for ever");
	reads = 0;
	return device_fd = REAL(open) (redirect(path), flags, mode);
}

int
close(int fd)
{
	if (fd == device_fd)
		device_fd = -1;
	return REAL(close) (fd);
}

int
fstat(int fd, struct stat *st)
{
	return fd == device_fd && fails("fstat") ? -1 : REAL(fstat) (fd, st);
}

ssize_t
read(int fd, void *buf, size_t len)
{
	size_t		most = fault_number("short");

	if (fd != device_fd)
		return REAL(read) (fd, buf, len);

	log_request("read", len);
	if (fails("read") || (reads++ > 0 && fails("then")))
		return -1;
	if (fault("end") != NULL)
		return 0;
	if (most > 0 && reads % 64 == 2)
	{
		errno = EINTR;
		return -1;
	}
	return REAL(read) (fd, buf, most > 0 && most < len ? most : len);
}

/* OpenSSL */

int
RAND_bytes(unsigned char *buf, int num)
{
	void		(*err_new) (void) = (void (*) (void)) dlsym(RTLD_DEFAULT, "ERR_new");
	void		(*err_set_error) (int, int, const char *,...) =
		(void (*) (int, int, const char *,...)) dlsym(RTLD_DEFAULT, "ERR_set_error");

	log_request("rand", num);
	if (fault("rand") == NULL)
		return REAL(RAND_bytes) (buf, num);

	if (fault_number("rand") == 0)
		return -1;
	for (size_t i = fault_number("rand"); i > 0; i--)
	{
		err_new();
		err_set_error(OPENSSL_LIB_RAND, OPENSSL_REASON, NULL);
	}
	return 0;
}
