/*
 * preload_no_memory.c
 *	  Preloaded into a server (LD_PRELOAD): one call of malloc() finds no memory, as
 *	  load_starved() in faults.c asks.
 */
#include <errno.h>
#include <stdlib.h>

/* The flags for server modules may hide symbols. */
#pragma GCC visibility push(default)

extern void *__libc_malloc(size_t size);
extern int	calls_until_no_memory;

int			calls_until_no_memory = 0;	/* 0: there is always some */

void *
malloc(size_t size)
{
	if (calls_until_no_memory > 0 && --calls_until_no_memory == 0)
	{
		errno = ENOMEM;
		return NULL;
	}
	return __libc_malloc(size);
}
