/*
 * entropy_urandom.c
 *	  The kernel's random device, opened anew for every refill so that the
 *	  backend keeps no descriptor.
 */
#include "postgres.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "entropy.h"
#include "storage/fd.h"

#define DEVICE "/dev/urandom"

static const char not_a_device[] = "\"" DEVICE "\" is not a character device.";

static bool
urandom_available(const char **why)
{
	struct stat st;

	if (stat(DEVICE, &st) != 0)
	{
		*why = fu_entropy_errno_reason("Looking up \"" DEVICE "\"");
		return false;
	}
	if (!S_ISCHR(st.st_mode))
	{
		*why = not_a_device;
		return false;
	}
	return true;
}

/*
 * Read len bytes from the open device.
 */
static bool
read_fully(int fd, uint8 *buf, size_t len, const char **why)
{
	struct stat st;

	/* What was opened must be the device: a plain file repeats its bytes. */
	if (fstat(fd, &st) != 0)
	{
		*why = fu_entropy_errno_reason("Looking up \"" DEVICE "\"");
		return false;
	}
	if (!S_ISCHR(st.st_mode))
	{
		*why = not_a_device;
		return false;
	}

	while (len > 0)
	{
		ssize_t		got = read(fd, buf, len);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
		{
			*why = got < 0 ? fu_entropy_errno_reason("Reading \"" DEVICE "\"") :
				"\"" DEVICE "\" ended.";
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
	/* Where the backend is out of descriptors, this closes a cached file. */
	int			fd = BasicOpenFile(DEVICE, O_RDONLY | O_CLOEXEC);
	bool		filled;

	if (fd < 0)
	{
		*why = fu_entropy_errno_reason("Opening \"" DEVICE "\"");
		return false;
	}
	filled = read_fully(fd, buf, len, why);
	close(fd);
	return filled;
}

static const char *
urandom_describe(void)
{
	return DEVICE;
}

const EntropySource fu_entropy_urandom = {
	.name = "urandom",
	.cryptographic = true,
	.available = urandom_available,
	.fill = urandom_fill,
	.describe = urandom_describe,
};
