/*
 * vdso_getrandom.h
 *	  The kernel's getrandom in the vDSO, found by the C library's own lookup.
 *
 *	  Uses nothing of the server, so that the lookup can be tested with another
 *	  C library than the server's.  Linux only.
 */
#ifndef FUUID_VDSO_GETRANDOM_H
#define FUUID_VDSO_GETRANDOM_H

#include <dlfcn.h>
#include <stdint.h>
#include <sys/types.h>

/* Returns the number of bytes, or a negative errno value. */
typedef ssize_t (*VdsoGetrandom) (void *buf, size_t len, unsigned int flags,
								  void *state, size_t state_len);

/* The answer if all bits of state_len are set (vgetrandom_opaque_params). */
typedef struct VdsoParams
{
	uint32_t	state_size;
	uint32_t	mmap_prot;
	uint32_t	mmap_flags;
	uint32_t	reserved[13];
} VdsoParams;

/* Find the function, or NULL, and in *params what it requires of its state. */
static inline VdsoGetrandom
vdso_find_getrandom(VdsoParams *params)
{
	const int	flags = RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD;
	VdsoGetrandom function;
	void	   *vdso = dlopen("linux-vdso.so.1", flags);

	/* The vDSO has this name on 32-bit x86, and with musl everywhere. */
	if (vdso == NULL)
		vdso = dlopen("linux-gate.so.1", flags);
	if (vdso == NULL)
		return NULL;
	function = (VdsoGetrandom) dlsym(vdso, "__vdso_getrandom");
#ifdef __aarch64__
	if (function == NULL)
		function = (VdsoGetrandom) dlsym(vdso, "__kernel_getrandom");
#endif
	if (function == NULL || function(NULL, 0, 0, params, ~(size_t) 0) != 0)
		return NULL;
	return function;
}

#endif							/* FUUID_VDSO_GETRANDOM_H */
