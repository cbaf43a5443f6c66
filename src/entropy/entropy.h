/*
 * entropy.h
 *	  Sources of randomness, and the buffering of what they deliver.
 *
 *	  A source is one file, NAME.c, that defines fuuid_entropy_NAME, and
 *	  one row in the list below.  The order of the rows is the order of
 *	  preference for the default of fast_uuid.source.
 */
#ifndef FUUID_ENTROPY_H
#define FUUID_ENTROPY_H

#include "miscadmin.h"
#include "utils/guc.h"

#define FUUID_ENTROPY_SOURCES(row) \
	row(openssl) \
	row(getrandom) \
	row(urandom) \
	row(xorshift) \
	/* a new one goes above this line */

/* Limits of fast_uuid.buffer_size, in bytes. */
#define FUUID_BUFFER_SIZE_DEFAULT	4096
#define FUUID_BUFFER_SIZE_MAX		65536

/* Signals that may interrupt one fill before it counts as failed. */
#define FUUID_EINTR_RETRIES	100

/* A set of sources: bit i stands for that of index i. */
#define FUUID_ENTROPY_ALL	((UINT32_C(1) << FUUID_ENTROPY_COUNT) - 1)

/*
 * A source of randomness.  Its functions never raise an error: where fill
 * returns false it sets *why to a sentence (fit for DETAIL, in static memory)
 * that says what failed and the system's reason.
 */
typedef struct EntropySource
{
	const char *name;			/* as in fast_uuid.source */
	bool		cryptographic;	/* fit for ids that must not be guessed */

	/*
	 * Fill len bytes, completely or not at all; len is a multiple of 8.  NULL:
	 * this build has not got the source.
	 */
	bool		(*fill) (uint8 *buf, size_t len, const char **why);
	const char *absent;			/* why this build has not got it */

	/* How it is implemented on this machine; called where it is available. */
	const char *(*describe) (void);
} EntropySource;

/*
 * Where the buffer of one source stands: the words of 8 bytes from "next" up to
 * "end" wait.  Those before have been handed out and are zero.
 */
typedef struct EntropyBuffer
{
	uint64	   *next;
	uint64	   *end;
	uint32		fill_size;		/* words of the latest fill; 0: none yet */
} EntropyBuffer;

/* What this session has fetched from a source. */
typedef struct EntropyStats
{
	uint64		refills;
	uint64		bytes;
} EntropyStats;

/* Room for the randomness of one source. */
typedef uint64 EntropyWords[FUUID_BUFFER_SIZE_MAX / sizeof(uint64)];

enum
{
#define FUUID_ENTROPY_ROW(name) FUUID_ENTROPY_##name,
	FUUID_ENTROPY_SOURCES(FUUID_ENTROPY_ROW)
#undef FUUID_ENTROPY_ROW
	FUUID_ENTROPY_COUNT
};

#define FUUID_ENTROPY_ROW(name) extern const EntropySource fuuid_entropy_##name;
FUUID_ENTROPY_SOURCES(FUUID_ENTROPY_ROW)
#undef FUUID_ENTROPY_ROW

/*
 * What a process has buffered.  Static, so that buffering cannot run out of memory;
 * all together, what is small first, because a new session pays for every
 * page of memory that it touches.
 */
typedef struct EntropyState
{
	EntropyBuffer buffer[FUUID_ENTROPY_COUNT];
	EntropyStats stats[FUUID_ENTROPY_COUNT];
	EntropyWords words[FUUID_ENTROPY_COUNT];
} EntropyState;

extern const EntropySource *const fuuid_entropy_sources[FUUID_ENTROPY_COUNT];

/* What the settings say. */
extern int	fuuid_source;			/* index into fuuid_entropy_sources */
extern uint32 fuuid_allowed_sources;	/* set of such indexes */
extern int	fuuid_buffer_size;		/* bytes */
extern bool fuuid_vdso;

extern EntropyState fuuid_entropy;

extern int	fuuid_entropy_default(void);
extern int	fuuid_entropy_lookup(const char *name, size_t len);
extern const char *fuuid_entropy_names(uint32 mask);
extern bool fuuid_entropy_available(const EntropySource *source, const char **why);
extern void fuuid_entropy_fill(const EntropySource *source, uint8 *buf, size_t len);
extern void fuuid_entropy_refill(int source);
extern void fuuid_entropy_discard(void);

/* hooks of fast_uuid.seed, in xorshift.c */
extern bool fuuid_seed_check(char **newval, void **extra, GucSource source);
extern void fuuid_seed_assign(const char *newval, void *extra);

extern const char *fuuid_entropy_errno_reason(const char *what);

#define FUUID_KERNEL_NOT_SEEDED	"The kernel's random number generator is not seeded yet."
extern bool fuuid_entropy_kernel_seeded(const char **why);

/*
 * Draw 64 random bits from a source (index into fuuid_entropy_sources).  The
 * word handed out is wiped from the buffer.  Raises an error, and draws
 * nothing, where the source fails or may not be used.
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
