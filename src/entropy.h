/*
 * entropy.h
 *	  Sources of randomness, and the staging of what they deliver.
 *
 *	  A source is one file, entropy_NAME.c, that defines fu_entropy_NAME, and
 *	  one row in the list below.  The order of the rows is the order of
 *	  preference for the default of fast_uuid.source.
 */
#ifndef FU_ENTROPY_H
#define FU_ENTROPY_H

#include "little_endian.h"
#include "miscadmin.h"

#define FU_ENTROPY_SOURCES(row) \
	row(openssl) \
	row(getrandom) \
	row(urandom) \
	row(xorshift) \
	/* a new one goes above this line */

/* Limits of fast_uuid.buffer_size, in bytes. */
#define FU_BUFFER_SIZE_DEFAULT	4096
#define FU_BUFFER_SIZE_MAX		65536

/* Signals that may interrupt one fill before it counts as failed. */
#define FU_EINTR_RETRIES	100

/* A set of sources: bit i stands for that of index i. */
#define FU_ENTROPY_ALL	((UINT32_C(1) << FU_ENTROPY_COUNT) - 1)

/*
 * A source of randomness.  Its functions never raise an error: where they
 * return false they set *why to a sentence (fit for DETAIL, in static memory)
 * that says what failed and the system's reason.
 */
typedef struct EntropySource
{
	const char *name;			/* as in fast_uuid.source */
	bool		cryptographic;	/* fit for ids that must not be guessed */

	/* Can this build, on this machine, use the source at all? */
	bool		(*available) (const char **why);

	/*
	 * Fill len bytes, completely or not at all; len is a multiple of 8.  NULL:
	 * this build has not got the source.
	 */
	bool		(*fill) (uint8 *buf, size_t len, const char **why);

	/* How it is implemented on this machine; called where it is available. */
	const char *(*describe) (void);
} EntropySource;

/*
 * Where the stage of one source stands: the pieces of 8 bytes from "next" up to
 * "end" wait.  Those before have been handed out and are zero.
 */
typedef struct EntropyStage
{
	uint64	   *next;
	uint64	   *end;
	uint32		fill_size;		/* pieces of the latest fill; 0: none yet */
	bool		usable;			/* allowed, and available() has said yes */
} EntropyStage;

/* What this session has fetched from a source. */
typedef struct EntropyStats
{
	uint64		refills;
	uint64		bytes;
} EntropyStats;

/* Room for the randomness of one source. */
typedef uint64 EntropyPieces[FU_BUFFER_SIZE_MAX / sizeof(uint64)];

enum
{
#define FU_ENTROPY_ROW(name) FU_ENTROPY_##name,
	FU_ENTROPY_SOURCES(FU_ENTROPY_ROW)
#undef FU_ENTROPY_ROW
	FU_ENTROPY_COUNT,

	/* In place of an index: fast_uuid.source names none.  A draw raises the error. */
	FU_ENTROPY_UNKNOWN = FU_ENTROPY_COUNT
};

#define FU_ENTROPY_ROW(name) extern const EntropySource fu_entropy_##name;
FU_ENTROPY_SOURCES(FU_ENTROPY_ROW)
#undef FU_ENTROPY_ROW

/*
 * What a process has staged.  Static, so that staging cannot run out of memory;
 * in one piece with what is small first, because a new session pays for every
 * page of memory that it touches.
 */
typedef struct EntropyState
{
	int			pid;			/* the process that staged it; 0: none */
	EntropyStage stage[FU_ENTROPY_COUNT + 1];	/* that of FU_ENTROPY_UNKNOWN stays empty */
	EntropyStats stats[FU_ENTROPY_COUNT];
	EntropyPieces pieces[FU_ENTROPY_COUNT];
} EntropyState;

extern const EntropySource *const fu_entropy_sources[FU_ENTROPY_COUNT];
extern EntropyState fu_entropy;

extern int	fu_entropy_default(void);
extern int	fu_entropy_lookup(const char *name, size_t len);
extern const char *fu_entropy_names(uint32 mask);
extern void fu_entropy_fill(const EntropySource *source, uint8 *buf, size_t len);
extern void fu_entropy_refill(int source);
extern void fu_entropy_discard(void);

extern const char *fu_entropy_errno_reason(const char *what);

/*
 * Draw 64 random bits from a source (index into fu_entropy_sources, or
 * FU_ENTROPY_UNKNOWN).  The
 * piece handed out is wiped from the stage.  Raises an error, and draws
 * nothing, where the source fails.
 *
 * The process id is compared because a library preloaded in the postmaster
 * takes its stages into every child: what was staged before a fork must not
 * be handed out after it.
 */
static inline uint64
fu_entropy_draw(int source)
{
	EntropyStage *stage = &fu_entropy.stage[source];
	uint64		piece;

	if (unlikely(stage->next == stage->end ||
				 fu_entropy.pid != MyProcPid))
		fu_entropy_refill(source);

	piece = *stage->next;
	*stage->next++ = 0;

	return fu_le64(piece);
}

#endif							/* FU_ENTROPY_H */
