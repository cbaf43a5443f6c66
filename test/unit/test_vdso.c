/*
 * test_vdso.c
 *	  The lookup of the vDSO's getrandom finds it where the kernel has it.
 *
 *	  The vDSO's name is the C library's choice, so this is compiled with musl as
 *	  well, which needs a file without the server's headers.
 */
#ifdef __linux__
#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/random.h>

static bool hidden;

static void *
dlsym_if_not_hidden(void *handle, const char *name)
{
	return hidden ? NULL : dlsym(handle, name);
}

#define dlsym dlsym_if_not_hidden
#include "common/vdso_getrandom.h"
#include "tap.h"

/*
 * Is the function's name in the image that the kernel has mapped?  That of
 * powerpc, which returns its errors in another way, is not for us.
 */
static bool
kernel_has_it(void)
{
	const char *image = (const char *) getauxval(AT_SYSINFO_EHDR);
	const		ElfW(Ehdr) *header = (const void *) image;
	const		ElfW(Phdr) *segment;

#ifdef __powerpc__
	image = NULL;
#endif
	if (image == NULL)
		return false;
	segment = (const void *) (image + header->e_phoff);
	for (int i = 0; i < header->e_phnum; i++, segment++)
	{
		if (segment->p_type == PT_LOAD &&
			(memmem(image, segment->p_filesz, "__vdso_getrandom", strlen("__vdso_getrandom")) != NULL ||
			 memmem(image, segment->p_filesz, "__kernel_getrandom", strlen("__kernel_getrandom")) != NULL))
			return true;
	}
	return false;
}

int
main(void)
{
	VdsoParams	params = {0};
	VdsoGetrandom function = vdso_find_getrandom(&params);
	char		bytes[8];
	void	   *state;

	ok((function != NULL) == kernel_has_it(),
	   kernel_has_it() ? "getrandom is found in the vDSO" : "none is found in a vDSO without it");
	if (function != NULL)
	{
		state = mmap(NULL, params.state_size, params.mmap_prot, params.mmap_flags, -1, 0);
		ok(function(bytes, sizeof(bytes), GRND_NONBLOCK, state, params.state_size) == sizeof(bytes),
		   "it delivers with a state as it requires");
	}
	hidden = true;
	ok(vdso_find_getrandom(&params) == NULL, "none is found in an older kernel's vDSO");
	return done_testing();
}

#else

#include <stdio.h>

int
main(void)
{
	puts("1..0 # SKIP only Linux has a vDSO");
	return 0;
}
#endif							/* __linux__ */
