/*
 * preload_rand_sizes.c
 *	  LD_PRELOAD library: shows strace how many bytes fast_uuid asks OpenSSL for,
 *	  by opening a file "RAND_bytes SIZE" that is not there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

extern int	RAND_bytes(unsigned char *buf, int num);

int
RAND_bytes(unsigned char *buf, int num)
{
	static int	(*next) (unsigned char *, int);
	char		name[32];
	Dl_info		info;
	int			fd;

	if (next == NULL)
		next = (int (*) (unsigned char *, int)) dlsym(RTLD_NEXT, "RAND_bytes");

	/* The server asks as well. */
	if (dladdr(__builtin_return_address(0), &info) != 0 && strstr(info.dli_fname, "/fast_uuid.so") != NULL)
	{
		snprintf(name, sizeof(name), "RAND_bytes %d", num);
		fd = open(name, O_RDONLY);
		if (fd >= 0)
			close(fd);
	}
	return next(buf, num);
}
