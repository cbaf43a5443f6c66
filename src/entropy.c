/*
 * entropy.c
 *	  The registry of entropy sources, and the staging buffer of each.
 */
#include "postgres.h"

#include "entropy.h"
#include "lib/stringinfo.h"
#include "settings.h"

/* A session that makes a single id must not pay for 512. */
#define FIRST_FILL_PIECES	8

const EntropySource *const fu_entropy_sources[FU_ENTROPY_COUNT] = {
#define FU_ENTROPY_ROW(name) &fu_entropy_##name,
	FU_ENTROPY_SOURCES(FU_ENTROPY_ROW)
#undef FU_ENTROPY_ROW
};

EntropyState fu_entropy;

/*
 * The source that fast_uuid.source starts with: the first cryptographic one in
 * this build (urandom is in each).  Whether it works here is for each call to
 * find out: were that asked now, a source that fails would be replaced by
 * another.
 */
int
fu_entropy_default(void)
{
	int			i = 0;

	while (!fu_entropy_sources[i]->cryptographic || fu_entropy_sources[i]->fill == NULL)
		i++;
	return i;
}

/*
 * Index of the source of that name, which need not end in a zero byte and
 * whose case does not matter (as in a setting); -1 where there is none.
 */
int
fu_entropy_lookup(const char *name, size_t len)
{
	for (int i = 0; i < FU_ENTROPY_COUNT; i++)
	{
		const char *candidate = fu_entropy_sources[i]->name;

		if (strlen(candidate) == len &&
			(memcmp(candidate, name, len) == 0 || pg_strncasecmp(candidate, name, len) == 0))
			return i;
	}
	return -1;
}

/*
 * The names of the sources in a set, for a hint; palloc'd.
 */
const char *
fu_entropy_names(uint32 mask)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < FU_ENTROPY_COUNT; i++)
		if (mask >> i & 1)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "", fu_entropy_sources[i]->name);
	return names.len > 0 ? names.data : "none";
}

/*
 * "what failed: reason of errno." in a static buffer.
 */
const char *
fu_entropy_errno_reason(const char *what)
{
	static char reason[256];

	snprintf(reason, sizeof(reason), "%s failed: %m.", what);
	return reason;
}

/*
 * Wipe all that is staged and start again with small fills.
 */
void
fu_entropy_discard(void)
{
	for (int i = 0; i < FU_ENTROPY_COUNT; i++)
	{
		EntropyStage *stage = &fu_entropy.stage[i];

		if (stage->next != stage->end)
			explicit_bzero(stage->next, (char *) stage->end - (char *) stage->next);
		*stage = (EntropyStage) {0};
	}
}

/*
 * Pieces to fetch next: few at first, then twice as many each time, up to
 * fast_uuid.buffer_size.  Without a buffer just the one that is wanted.
 */
static uint32
next_fill_size(const EntropyStage *stage)
{
	uint32		limit = fu_buffer_size / sizeof(uint64);
	uint32		size = stage->fill_size == 0 ? FIRST_FILL_PIECES : stage->fill_size * 2;

	return Max(Min(size, limit), 1);
}

/*
 * Raise an error unless the source may be used, by the DBA's word, and can.
 */
static void
check_usable(int source)
{
	const EntropySource *from = fu_entropy_sources[source];
	const char *why;

	if (!(fu_allowed_sources >> source & 1))
		fu_settings_not_allowed(from->name);
	if (!from->available(&why))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg(FU_NOT_AVAILABLE_MESSAGE, from->name),
				 errdetail_internal("%s", why)));
}

/*
 * Fill len bytes, a multiple of 8, from a source.  Raises an error, and leaves
 * nothing in the buffer, where the source cannot deliver.
 */
void
fu_entropy_fill(const EntropySource *source, uint8 *buf, size_t len)
{
	const char *why;

	if (source->fill(buf, len, &why))
		return;
	explicit_bzero(buf, len);
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("could not get random bytes from entropy source \"%s\"", source->name),
			 errdetail_internal("%s", why)));
}

/*
 * Refill a stage that is empty, or that another process filled.  Raises an
 * error, and leaves the stage empty, where the source cannot deliver.
 */
void
fu_entropy_refill(int source)
{
	EntropyStage *stage = &fu_entropy.stage[source];
	EntropyStats *stats = &fu_entropy.stats[source];
	uint32		size;

	if (source == FU_ENTROPY_UNKNOWN)
		fu_settings_unknown_source();

	if (fu_entropy.pid != MyProcPid)
	{
		fu_entropy_discard();
		memset(fu_entropy.stats, 0, sizeof(fu_entropy.stats));
		fu_entropy.pid = MyProcPid;
	}

	if (!stage->usable)
		check_usable(source);
	stage->usable = true;

	size = next_fill_size(stage);
	stage->next = stage->end = fu_entropy.pieces[source];

	fu_entropy_fill(fu_entropy_sources[source], (uint8 *) fu_entropy.pieces[source], size * sizeof(uint64));
	stage->end = stage->next + size;
	stage->fill_size = size;
	stats->refills++;
	stats->bytes += size * sizeof(uint64);
}
