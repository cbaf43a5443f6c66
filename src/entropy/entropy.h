/*
 * entropy.h
 *	  Sources of randomness, and the buffering of what they deliver.
 *
 *	  A source is one file, NAME.c, that defines fuuid_entropy_NAME, and a row
 *	  in this list, in the order of preference for the default.
 */
#ifndef FUUID_ENTROPY_H
#define FUUID_ENTROPY_H

#include "miscadmin.h"
#include "utils/guc.h"

#define FUUID_ENTROPY_SOURCES(row) \
	row(openssl) \
	row(getrandom) \
	row(urandom) \
	row(xorshift)

#define FUUID_ENTROPY_ONE(name) + 1
#define FUUID_ENTROPY_COUNT (0 FUUID_ENTROPY_SOURCES(FUUID_ENTROPY_ONE))

/* Limits of fast_uuid.buffer_size, in bytes. */
#define FUUID_BUFFER_SIZE_DEFAULT	4096
#define FUUID_BUFFER_SIZE_MAX		65536

/* Signals that may interrupt one fill before it counts as failed. */
#define FUUID_EINTR_RETRIES	100

/* All sources, as a set: bit i stands for the source of index i. */
#define FUUID_ENTROPY_ALL	((UINT32_C(1) << FUUID_ENTROPY_COUNT) - 1)

/*
 * A source of randomness.  Its functions never raise an error: if fill returns
 * false, *why is a sentence, fit for DETAIL and in static memory, on what
 * failed and the reason.
 */
typedef struct EntropySource
{
	const char *name;			/* as in fast_uuid.source */
	bool		cryptographic;	/* fit for UUIDs that must not be guessed */

	/*
	 * Fill all len bytes, a multiple of 8, or return false; buf may then be
	 * filled in part.  NULL if this build does not have the source.
	 */
	bool		(*fill) (uint8 *buf, size_t len, const char **why);
	const char *absent;			/* why this build does not have it */

	/* How it is implemented on this machine; called only if it is available. */
	const char *(*describe) (void);
} EntropySource;

/*
 * The state of one source's buffer.  The 64-bit words from "next" up to "end"
 * are left to be drawn; those before have been handed out and are zero.
 */
typedef struct EntropyBuffer
{
	uint64	   *next;
	uint64	   *end;
	uint32		fill_size;		/* words of the latest fill; 0: none yet */
	uint64		refills;		/* so far */
	uint64		bytes;
} EntropyBuffer;

#define FUUID_ENTROPY_EXTERN(name) \
	extern const EntropySource fuuid_entropy_##name;
FUUID_ENTROPY_SOURCES(FUUID_ENTROPY_EXTERN)

/*
 * All that a backend has buffered: static, so that it cannot run out of memory,
 * the small members first, because each page that is touched costs.
 */
typedef struct EntropyState
{
	EntropyBuffer buffer[FUUID_ENTROPY_COUNT];
	uint64		words[FUUID_ENTROPY_COUNT]
				[FUUID_BUFFER_SIZE_MAX / sizeof(uint64)];
} EntropyState;

extern const EntropySource *const fuuid_entropy_sources[FUUID_ENTROPY_COUNT];

/* The values of the settings. */
extern int	fuuid_source;			/* index into fuuid_entropy_sources */
extern uint32 fuuid_allowed_sources;	/* set of such indexes */
extern int	fuuid_buffer_size;		/* bytes */
extern bool fuuid_vdso;

extern EntropyState fuuid_entropy;

extern int	fuuid_entropy_default(void);
extern int	fuuid_entropy_lookup(const char *name, size_t len);
extern const char *fuuid_entropy_names(uint32 mask);
extern bool fuuid_entropy_available(const EntropySource *source,
									const char **why);
extern void fuuid_entropy_fill(const EntropySource *source, uint8 *buf,
							   size_t len);
extern void fuuid_entropy_refill(int source);
extern void fuuid_entropy_discard(void);

extern const char *fuuid_entropy_reason(const char *format,...)
			pg_attribute_printf(1, 2);

#define FUUID_KERNEL_NOT_SEEDED	\
	"The kernel's random number generator is not seeded yet."
extern bool fuuid_entropy_kernel_seeded(const char **why);

/*
 * Draw 64 random bits from a source (index into fuuid_entropy_sources), and
 * wipe them from the buffer.  Raises an error, and draws nothing, if the
 * source fails or must not be used.
 */
static inline uint64
fuuid_entropy_draw(int source)
{
	EntropyBuffer *buffer = &fuuid_entropy.buffer[source];
	uint64		word;

	if (unlikely(buffer->next == buffer->end))
		fuuid_entropy_refill(source);

	word = *buffer->next;
	*buffer->next++ = 0;
	return word;
}

#endif							/* FUUID_ENTROPY_H */
