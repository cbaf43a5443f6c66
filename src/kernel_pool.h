/*
 * kernel_pool.h
 *	  Whether the kernel's random number generator has been seeded.
 */
#ifndef FUUID_KERNEL_POOL_H
#define FUUID_KERNEL_POOL_H

#define FUUID_KERNEL_POOL_NOT_SEEDED	"The kernel's random number generator is not seeded yet."

extern bool fuuid_kernel_pool_seeded(const char **why);

#endif							/* FUUID_KERNEL_POOL_H */
