/*
 * kernel_pool.c
 *	  Whether the kernel's random number generator has been seeded.
 *
 *	  Early after booting it may not be.  Until then OpenSSL would wait in the
 *	  kernel, where no cancel request reaches it, and /dev/urandom delivers what
 *	  can be guessed.
 */
#include "postgres.h"

#include "kernel_pool.h"

#ifdef __linux__
#include <fcntl.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "entropy.h"
#include "storage/fd.h"

#define DEVICE "/dev/random"

/* Documentation/admin-guide/devices.txt */
#define LINUX_MEM_MAJOR		1
#define LINUX_RANDOM_MINOR	8

/*
 * Can the device that waits for the seed be read?  Of a file or of /dev/urandom
 * in its place that would say nothing.
 */
static bool
device_is_ready(const char **why)
{
	struct pollfd device = {.events = POLLIN};
	struct stat st;
	bool		ready = false;

	device.fd = BasicOpenFile(DEVICE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (device.fd < 0)
	{
		*why = fuuid_entropy_errno_reason("Opening \"" DEVICE "\"");
		return false;
	}
	if (fstat(device.fd, &st) != 0 || !S_ISCHR(st.st_mode) ||
		st.st_rdev != makedev(LINUX_MEM_MAJOR, LINUX_RANDOM_MINOR))
		*why = "\"" DEVICE "\" is not the kernel's random device.";
	else if (poll(&device, 1, 0) != 1)
		*why = FUUID_KERNEL_POOL_NOT_SEEDED;
	else
		ready = true;
	close(device.fd);
	return ready;
}

/*
 * False sets *why.  Once seeded the kernel's generator stays so.
 */
bool
fuuid_kernel_pool_seeded(const char **why)
{
	static bool seeded = false;

	if (seeded)
		return true;

	/* Where the system call is forbidden, or older than it, the device tells. */
	if (syscall(SYS_getrandom, NULL, 0, GRND_NONBLOCK) == 0)
		seeded = true;
	else if (errno == EAGAIN)
		*why = FUUID_KERNEL_POOL_NOT_SEEDED;
	else
		seeded = device_is_ready(why);
	return seeded;
}

#else							/* other kernels wait until they have booted */

bool
fuuid_kernel_pool_seeded(const char **why pg_attribute_unused())
{
	return true;
}
#endif							/* __linux__ */
