/*
 * preload_faults.c
 *	  Preloaded into a server (LD_PRELOAD): makes what the entropy sources call
 *	  fail in one process, as a text says there.
 *
 *	  path PATH		/dev/urandom leads to PATH
 *	  open ERRNO, fstat ERRNO, read ERRNO
 *					the call fails for /dev/urandom
 *	  read short	reads of it deliver 3 bytes, some are interrupted
 *	  read part		the first read of it delivers 3 bytes, the next fail
 *	  read end		reads of it find its end
 *	  rand N		RAND_bytes fails and queues N errors of OpenSSL
 *	  rand none		RAND_bytes finds no generator, as with a FIPS provider that
 *					cannot be loaded: what fails is OpenSSL itself
 *
 *	  malloc N		requests of N bytes or more find no memory
 *
 *	  faults.c sets it in an existing session; it is for that process.
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
#include <sys/stat.h>
#include <unistd.h>

#define DEVICE			"/dev/urandom"
#define SHORT_READ		3

/* After so many in a row the caller would never stop: end the test. */
#define MAX_INTERRUPTS	1000000

/* Any error will do: library RAND, "error retrieving entropy". */
#define OPENSSL_LIB_RAND	36
#define OPENSSL_REASON		110

#define REAL(name)	((__typeof__(&name)) dlsym(RTLD_NEXT, #name))

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

extern void inject(const char *fault);
extern int	RAND_bytes(unsigned char *buf, int num);

static char fault_text[256];
static pid_t fault_owner;		/* the process that it is for */

static int	device_fd = -1;
static unsigned int reads;		/* since the device was opened */
static unsigned int interrupts; /* in a row */

static void
end_test(const char *why)
{
	fprintf(stderr, "%s\n", why);
	abort();
}

void
inject(const char *fault)
{
	snprintf(fault_text, sizeof(fault_text), "%s", fault);
	fault_owner = getpid();
}

static const char *
injected_fault(void)
{
	return fault_owner == getpid() ? fault_text : "";
}

/* Number after this word in the text of a fault; 0: another fault, or none. */
static int
fault_number(const char *fault, const char *word)
{
	size_t		len = strlen(word);

	if (strncmp(fault, word, len) != 0 || fault[len] != ' ')
		return 0;
	return atoi(fault + len + 1);
}

/* Does the call fail?  Then errno is set. */
static bool
fails(const char *call)
{
	int			error = fault_number(injected_fault(), call);

	if (error == 0)
		return false;
	errno = error;
	return true;
}

extern void *__libc_malloc(size_t size);

void *
malloc(size_t size)
{
	int			limit = fault_number(injected_fault(), "malloc");

	if (limit > 0 && size >= (size_t) limit)
	{
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(size);
}

static const char *
redirect(const char *path)
{
	const char *fault = injected_fault();

	if (strcmp(path, DEVICE) == 0 && strncmp(fault, "path ", 5) == 0)
		return fault + 5;
	return path;
}

int
open(const char *path, int flags,...)
{
	int			mode = 0;
	int			fd;
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
	fd = REAL(open) (redirect(path), flags, mode);
	device_fd = fd;
	reads = interrupts = 0;
	return fd;
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

/* musl has these names as macros at most, for the functions without "64". */
#ifdef __GLIBC__
int
open64(const char *path, int flags,...)
{
	int			mode = 0;

	if (flags & (O_CREAT | O_TMPFILE))
	{
		va_list		args;

		va_start(args, flags);
		mode = va_arg(args, int);
		va_end(args);
	}
	return open(path, flags, mode);
}

int
fstat64(int fd, struct stat64 *st)
{
	return fstat(fd, (struct stat *) st);
}
#endif

static int
interrupt(void)
{
	if (++interrupts > MAX_INTERRUPTS)
		end_test("a read was retried for ever");
	errno = EINTR;
	return -1;
}

ssize_t
read(int fd, void *buf, size_t len)
{
	const char *fault;
	bool		is_short;
	bool		is_part;

	if (fd != device_fd)
		return REAL(read) (fd, buf, len);

	fault = injected_fault();
	is_short = strcmp(fault, "read short") == 0;
	is_part = strcmp(fault, "read part") == 0;
	reads++;
	if (fault_number(fault, "read") == EINTR || (is_short && reads % 64 == 2))
		return interrupt();
	interrupts = 0;
	if (fails("read"))
		return -1;
	if (strcmp(fault, "read end") == 0)
		return 0;
	if (is_part && reads > 1)
	{
		errno = EIO;
		return -1;
	}
	return REAL(read) (fd, buf, (is_short || is_part) && len > SHORT_READ ? SHORT_READ : len);
}

/*
 * OpenSSL without any provider for a generator that is still to be made.
 */
static int
rand_without_generator(unsigned char *buf, int num)
{
	void		(*thread_stop) (void) = (void (*) (void)) dlsym(RTLD_DEFAULT, "OPENSSL_thread_stop");
	int			(*set_properties) (void *, const char *) =
		(int (*) (void *, const char *)) dlsym(RTLD_DEFAULT, "EVP_set_default_properties");
	int			result;

	thread_stop();				/* drops the generator that is there */
	set_properties(NULL, "provider=none");
	result = REAL(RAND_bytes) (buf, num);
	set_properties(NULL, "");
	return result;
}

int
RAND_bytes(unsigned char *buf, int num)
{
	void		(*err_new) (void) = (void (*) (void)) dlsym(RTLD_DEFAULT, "ERR_new");
	void		(*err_set_error) (int, int, const char *,...) =
		(void (*) (int, int, const char *,...)) dlsym(RTLD_DEFAULT, "ERR_set_error");

	const char *fault = injected_fault();

	if (strncmp(fault, "rand ", 5) != 0)
		return REAL(RAND_bytes) (buf, num);

	if (strcmp(fault, "rand none") == 0)
		return rand_without_generator(buf, num);

	for (int i = fault_number(fault, "rand"); i > 0; i--)
	{
		err_new();
		err_set_error(OPENSSL_LIB_RAND, OPENSSL_REASON, NULL);
	}
	return 0;
}
