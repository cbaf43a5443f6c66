/*
 * getrandom.c
 *	  The kernel's getrandom(2): on Linux through the vDSO if the kernel offers
 *	  it there and fast_uuid.vdso is on, else by a system call; elsewhere
 *	  through the C library.
 *
 *	  In the vDSO the kernel's generator runs in this process, on a state that
 *	  the kernel wipes in a forked child and marks stale when its own generator
 *	  is reseeded (Linux 6.11; Documentation/ABI/stable/vdso, vgetrandom).
 *	  glibc calls it only since 2.41, hence the direct call.
 */
#include "postgres.h"

#include <unistd.h>

#include "entropy/entropy.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>

#include "common/vdso_getrandom.h"

#define HAVE_GETRANDOM
#elif defined(__FreeBSD__) || defined(__NetBSD__) || \
	defined(__DragonFly__) || defined(__sun)
#include <sys/random.h>
#define HAVE_GETRANDOM
#endif

#ifdef HAVE_GETRANDOM

#ifdef __linux__

static VdsoGetrandom vdso_getrandom;	/* NULL: not found, or not usable */
static void *vdso_state;
static size_t vdso_state_size;

/* Find the function and map its state, once; a child inherits both. */
static void
vdso_init(void)
{
	static bool done = false;
	VdsoGetrandom function;
	VdsoParams	params;

	if (done)
		return;
	done = true;

	function = vdso_find_getrandom(&params);
	if (function == NULL)
		return;

	/* The state must not cross a page; a mapping starts with one. */
	if (params.state_size > (uint32) sysconf(_SC_PAGESIZE))
		return;
	vdso_state = mmap(NULL, params.state_size, params.mmap_prot,
					  params.mmap_flags, -1, 0);
	if (vdso_state == MAP_FAILED)
		return;
	vdso_state_size = params.state_size;
	vdso_getrandom = function;
}
#endif							/* __linux__ */

/*
 * Make one request.  Returns the number of bytes delivered, or -1 with errno
 * set.  It does not wait until the kernel's generator is seeded, because no
 * cancel request could end the wait.
 */
static ssize_t
request_bytes(uint8 *buf, size_t len)
{
#ifdef __linux__
	ssize_t		got;

	if (fuuid_vdso)
		vdso_init();
	if (!fuuid_vdso || vdso_getrandom == NULL)
		return syscall(SYS_getrandom, buf, len, GRND_NONBLOCK);

	got = vdso_getrandom(buf, len, GRND_NONBLOCK, vdso_state, vdso_state_size);
	if (got >= 0)
		return got;
	errno = -got;
	return -1;
#else
	return getrandom(buf, len, GRND_NONBLOCK);
#endif
}

static bool
getrandom_fill(uint8 *buf, size_t len, const char **why)
{
	int			retries = FUUID_EINTR_RETRIES;

	while (len > 0)
	{
		ssize_t		got = request_bytes(buf, len);

		if (got < 0 && errno == EINTR && retries-- > 0)
			continue;
		if (got <= 0)
		{
			*why = got < 0 && errno == EAGAIN ? FUUID_KERNEL_NOT_SEEDED :
				fuuid_entropy_reason("Could not read the kernel's random number generator: %m.");
			return false;
		}
		buf += got;
		len -= got;
	}
	return true;
}

static const char *
getrandom_describe(void)
{
#ifdef __linux__
	return fuuid_vdso && vdso_getrandom != NULL ? "vDSO" : "system call";
#else
	return "C library";
#endif
}
#endif							/* HAVE_GETRANDOM */

const EntropySource fuuid_entropy_getrandom = {
	.name = "getrandom",
	.cryptographic = true,
#ifndef HAVE_GETRANDOM
	.absent = "This operating system has no getrandom function.",
#else
	.describe = getrandom_describe,
	.fill = getrandom_fill,
#endif
};
