/*
 * entropy.c
 *	  The registry of entropy sources, and the buffer of each.
 */
#include "postgres.h"

#include "entropy/entropy.h"
#include "entropy/seed.h"
#include "lib/stringinfo.h"

#ifdef __linux__
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Small: a backend that generates one UUID must not pay for 512. */
#define FIRST_FILL_WORDS	8

const EntropySource *const fuuid_entropy_sources[FUUID_ENTROPY_COUNT] = {
#define FUUID_ENTROPY_POINTER(name) &fuuid_entropy_##name,
	FUUID_ENTROPY_SOURCES(FUUID_ENTROPY_POINTER)
};

int			fuuid_source;
uint32		fuuid_allowed_sources = FUUID_ENTROPY_ALL;
int			fuuid_buffer_size = FUUID_BUFFER_SIZE_DEFAULT;
bool		fuuid_vdso = true;

EntropyState fuuid_entropy;

/*
 * Index of the default of fast_uuid.source: the first cryptographic source of
 * this build (urandom is in each).  Whether it works is not asked, or another
 * one would silently take its place.
 */
int
fuuid_entropy_default(void)
{
	int			i = 0;

	while (!fuuid_entropy_sources[i]->cryptographic ||
		   fuuid_entropy_sources[i]->fill == NULL)
		i++;
	return i;
}

/*
 * Index of the source of this name, which need not end in a zero byte; -1 if
 * there is none.  Case does not matter, as in a setting.
 */
int
fuuid_entropy_lookup(const char *name, size_t len)
{
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		const char *candidate = fuuid_entropy_sources[i]->name;

		if (strlen(candidate) == len &&
			(memcmp(candidate, name, len) == 0 ||
			 pg_strncasecmp(candidate, name, len) == 0))
			return i;
	}
	return -1;
}

/* The names of the sources in a set, separated by commas, or "none". */
const char *
fuuid_entropy_names(uint32 mask)
{
	StringInfoData names;

	initStringInfo(&names);
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
		if (mask >> i & 1)
			appendStringInfo(&names, "%s%s", names.len > 0 ? ", " : "",
							 fuuid_entropy_sources[i]->name);
	return names.len > 0 ? names.data : "none";
}

/* Format what *why or describe() gives, in a static buffer: until the next. */
const char *
fuuid_entropy_reason(const char *format,...)
{
	static char reason[256];
	va_list		args;

	va_start(args, format);
	vsnprintf(reason, sizeof(reason), format, args);
	va_end(args);
	return reason;
}

/*
 * Has the kernel's random number generator been seeded?  Early after booting,
 * OpenSSL would wait where no cancel request reaches it, and /dev/urandom
 * return bytes that can be guessed.  Yes if the kernel cannot be asked; if no,
 * *why is set.
 */
bool
fuuid_entropy_kernel_seeded(const char **why pg_attribute_unused())
{
	/* Others are expected to be seeded once booted. */
#ifdef __linux__
	static bool seeded = false;

	if (!seeded && syscall(SYS_getrandom, NULL, 0, GRND_NONBLOCK) != 0 &&
		errno == EAGAIN)
	{
		*why = FUUID_KERNEL_NOT_SEEDED;
		return false;
	}
	seeded = true;
#endif
	return true;
}

/* Wipe all buffered random bits, and start again with small fills. */
void
fuuid_entropy_discard(void)
{
	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		EntropyBuffer *buffer = &fuuid_entropy.buffer[i];

		if (buffer->next != buffer->end)
			explicit_bzero(buffer->next,
						   (buffer->end - buffer->next) * sizeof(uint64));
		buffer->next = buffer->end;
		buffer->fill_size = 0;
	}
}

/*
 * Words to fetch next; without a buffer the one that is drawn at once, and from
 * a seed, whose numbers must not depend on what is discarded and when.
 */
static uint32
next_fill_size(int source)
{
	const EntropyBuffer *buffer = &fuuid_entropy.buffer[source];
	uint32		limit = fuuid_buffer_size / sizeof(uint64);
	uint32		size = buffer->fill_size == 0 ? FIRST_FILL_WORDS :
		buffer->fill_size * 2;

	if (fuuid_entropy_sources[source] == &fuuid_entropy_xorshift &&
		fuuid_seeded_generator != NULL)
		return 1;
	return Max(Min(size, limit), 1);
}

/*
 * Can a source deliver?  If no, *why is set.  Only a request can tell: OpenSSL
 * creates its generator on first use, which fails if a provider is broken.
 */
bool
fuuid_entropy_available(const EntropySource *source, const char **why)
{
	uint8		probe[16];
	size_t		len = source->cryptographic ? sizeof(probe) : 0;
	bool		available;

	if (source->fill == NULL)
	{
		*why = source->absent;
		return false;
	}

	/* A seeded generator is only started: its numbers must not be used up. */
	available = source->fill(probe, len, why);
	explicit_bzero(probe, sizeof(probe));
	return available;
}

/*
 * Fill buf with len bytes, a multiple of 8, from a source.  Raises an error,
 * and leaves no random bits in buf, if the source cannot deliver.
 */
void
fuuid_entropy_fill(const EntropySource *source, uint8 *buf, size_t len)
{
	const char *why;

	if (source->fill == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("entropy source \"%s\" is not available", source->name),
				 errdetail_internal("%s", source->absent)));
	if (source->fill(buf, len, &why))
		return;
	explicit_bzero(buf, len);
	ereport(ERROR,
			(errcode(ERRCODE_SYSTEM_ERROR),
			 errmsg("could not get random bytes from entropy source \"%s\"",
					source->name),
			 errdetail_internal("%s", why)));
}

/*
 * Raise an error unless a source may be used.  Refills alone ask, because what
 * is buffered is discarded when one of the settings is assigned.
 */
static void
require_allowed(int source)
{
	if (!(fuuid_allowed_sources >> source & 1))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("entropy source \"%s\" is not allowed",
						fuuid_entropy_sources[source]->name),
				 errhint("The setting \"fast_uuid.allowed_sources\" allows: %s.",
						 fuuid_entropy_names(fuuid_allowed_sources))));
	if (fuuid_seed_has_time() &&
		fuuid_entropy_sources[source] != &fuuid_entropy_xorshift)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("entropy source \"%s\" cannot repeat UUIDs",
						fuuid_entropy_sources[source]->name),
				 errdetail("\"fast_uuid.seed\" has a start time, so that all UUIDs repeat."),
				 errhint("Use the source \"%s\", or reset \"fast_uuid.seed\".",
						 fuuid_entropy_xorshift.name)));
}

/*
 * Refill the empty buffer of a source.  Raises an error, and leaves the buffer
 * empty, if the source must not be used or cannot deliver.
 */
void
fuuid_entropy_refill(int source)
{
	EntropyBuffer *buffer = &fuuid_entropy.buffer[source];
	uint64	   *words = fuuid_entropy.words[source];
	uint32		size = next_fill_size(source);

	require_allowed(source);
	buffer->next = buffer->end = words;
	fuuid_entropy_fill(fuuid_entropy_sources[source], (uint8 *) words,
					   size * sizeof(uint64));
	buffer->end += size;
	buffer->fill_size = size;
	buffer->refills++;
	buffer->bytes += size * sizeof(uint64);
}
