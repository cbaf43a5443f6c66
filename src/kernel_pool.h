/*
 * kernel_pool.h
 *	  Whether the kernel's random number generator has been seeded.
 */
#ifndef FU_KERNEL_POOL_H
#define FU_KERNEL_POOL_H

#define FU_KERNEL_POOL_NOT_SEEDED	"The kernel's random number generator is not seeded yet."

extern bool fu_kernel_pool_seeded(const char **why);

#endif							/* FU_KERNEL_POOL_H */
