/*
 * urandom.c
 *	  The kernel's random device, opened anew for every refill so that the
 *	  backend keeps no descriptor.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entropy/entropy.h"
#include "storage/fd.h"

#ifdef __linux__
#include <sys/sysmacros.h>

/* Device numbers, from Linux's Documentation/admin-guide/devices.txt */
#define LINUX_MEM_MAJOR		1
#define LINUX_URANDOM_MINOR	9
#endif

#define DEVICE "/dev/urandom"

/*
 * Is this the kernel's random device, and is its generator seeded?  A plain
 * file would repeat its bytes, /dev/zero has only zeros.  If no, *why is set.
 */
static bool
check_device(int fd, const char **why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
	{
		*why = fuuid_entropy_reason("Could not stat file \"%s\": %m.", DEVICE);
		return false;
	}
	if (!S_ISCHR(st.st_mode))
	{
		*why = "\"" DEVICE "\" is not a character device.";
		return false;
	}
#ifdef __linux__
	if (st.st_rdev != makedev(LINUX_MEM_MAJOR, LINUX_URANDOM_MINOR))
	{
		*why = "\"" DEVICE "\" is not the kernel's random device.";
		return false;
	}
#endif
	return fuuid_entropy_kernel_seeded(why);
}

/* Read len bytes from the open device, or return false. */
static bool
read_fully(int fd, uint8 *buf, size_t len, const char **why)
{
	int			retries = FUUID_EINTR_RETRIES;

	while (len > 0)
	{
		ssize_t		got = read(fd, buf, len);

		if (got < 0 && errno == EINTR && retries-- > 0)
			continue;
		if (got <= 0)
		{
			*why = got == 0 ? "\"" DEVICE "\" returned no data." :
				fuuid_entropy_reason("Could not read file \"%s\": %m.", DEVICE);
			return false;
		}
		buf += got;
		len -= got;
	}
	return true;
}

static bool
urandom_fill(uint8 *buf, size_t len, const char **why)
{
	int			fd;
	bool		filled;

	/*
	 * If the backend is out of descriptors, this closes a cached file.  To
	 * open a pipe in the place of the device must not block.
	 */
	fd = BasicOpenFile(DEVICE, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
	{
		*why = fuuid_entropy_reason("Could not open file \"%s\": %m.", DEVICE);
		return false;
	}
	filled = check_device(fd, why) && read_fully(fd, buf, len, why);
	close(fd);
	return filled;
}

static const char *
urandom_describe(void)
{
	return DEVICE;
}

const EntropySource fuuid_entropy_urandom = {
	.name = "urandom",
	.cryptographic = true,
	.fill = urandom_fill,
	.describe = urandom_describe,
};
