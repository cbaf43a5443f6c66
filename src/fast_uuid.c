/*
 * fast_uuid.c
 *	  What the server calls when it loads the library, and the settings.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "common/compat.h"
#include "entropy/entropy.h"
#include "entropy/seed.h"
#include "placeholders.h"
#include "utils/memutils.h"

FUUID_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

/* The characters that separate the names in a list, or surround them. */
#define LIST_SEPARATORS ", \t\n\v\f\r\""

/* All settings; they are defined below. */
static const char *const setting_names[] = {
	"fast_uuid.allowed_sources", "fast_uuid.source", "fast_uuid.seed",
	"fast_uuid.buffer_size", "fast_uuid.vdso"
};

static char *allowed_text;
static char *seed_text;

/*
 * Read a list of names as a set of sources.  Returns NULL or, if there are
 * names that no source has, a pointer to the last of them.  It allocates no
 * memory and cannot fail, so that the assign hook can call it as well.
 */
static const char *
parse_sources(const char *list, uint32 *sources)
{
	const char *unknown = NULL;

	*sources = 0;
	while (*(list += strspn(list, LIST_SEPARATORS)) != '\0')
	{
		size_t		len = strcspn(list, LIST_SEPARATORS);
		int			index = fuuid_entropy_lookup(list, len);

		if (index >= 0)
			*sources |= UINT32_C(1) << index;
		else
			unknown = list;
		list += len;
	}
	return unknown;
}

/*
 * Check a list of sources.  A wrong list that a session without the library
 * has stored for a role or a database is accepted, because the server would
 * otherwise ignore it; a name that no source has allows nothing.
 */
static bool
allowed_check(char **newval, void **extra pg_attribute_unused(),
			  GucSource source)
{
	uint32		sources;
	const char *unknown = parse_sources(*newval, &sources);

	if (unknown == NULL ||
		(source >= PGC_S_GLOBAL && source <= PGC_S_DATABASE_USER))
		return true;
	GUC_check_errdetail("Unrecognized entropy source: \"%.*s\".",
						(int) strcspn(unknown, LIST_SEPARATORS), unknown);
	GUC_check_errhint("Valid values are: %s.",
					  fuuid_entropy_names(FUUID_ENTROPY_ALL));
	return false;
}

/*
 * Discard what may have been buffered from a source that is no longer allowed,
 * so that calls need to check the allowlist only when they refill.
 */
static void
allowed_assign(const char *newval, void *extra pg_attribute_unused())
{
	(void) parse_sources(newval, &fuuid_allowed_sources);
	fuuid_entropy_discard();
}

/* What was buffered before a change is not handed out after it. */
static void
buffer_size_assign(int newval pg_attribute_unused(),
				   void *extra pg_attribute_unused())
{
	fuuid_entropy_discard();
}

static void
vdso_assign(bool newval pg_attribute_unused(),
			void *extra pg_attribute_unused())
{
	fuuid_entropy_discard();
}

/* The names of the sources, as the server lists the values of a setting. */
static const struct config_enum_entry *
source_options(void)
{
	static struct config_enum_entry options[FUUID_ENTROPY_COUNT + 1];

	for (int i = 0; i < FUUID_ENTROPY_COUNT; i++)
	{
		options[i].name = fuuid_entropy_sources[i]->name;
		options[i].val = i;
	}
	return options;
}

/*
 * Raise an error if the allowlist was set before it is defined.  Until then
 * the server keeps it as an unchecked text, which any user can change.  At the
 * start of the server there is no user yet.  A parallel worker gets its leader's
 * setting, and generates nothing.
 */
static void
require_preloaded(void)
{
	const char *name = "fast_uuid.allowed_sources";

	if (fuuid_placeholder_value(name) != NULL && !IsParallelWorker() &&
		!process_shared_preload_libraries_in_progress)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("fast_uuid must be loaded via \"shared_preload_libraries\" to set \"%s\"", name),
				 errhint("Add fast_uuid to \"shared_preload_libraries\" and restart the server, or remove the setting and reconnect.")));
}

/*
 * Raise an error at the start of the server if the file names a source that
 * there is not: the server would drop the setting with a warning, and generate
 * from another source.
 */
static void
require_sources(const char *name, bool is_list)
{
	const char *value = fuuid_placeholder_value(name);
	uint32		sources;

	if (value != NULL && process_shared_preload_libraries_in_progress &&
		(is_list ? parse_sources(value, &sources) != NULL :
		 fuuid_entropy_lookup(value, strlen(value)) < 0))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"%s\": \"%s\"",
						name, value)));
}

/* Define the settings.  Raises an error if what was set cannot be trusted. */
void
_PG_init(void)
{
	bool		exit_on_any_error = ExitOnAnyError;
	const char *all_sources;
	const char *seed = fuuid_placeholder_value("fast_uuid.seed");
	bool		seed_was_set = seed != NULL && *seed != '\0';

	require_preloaded();
	require_sources("fast_uuid.allowed_sources", true);
	require_sources("fast_uuid.source", false);
	all_sources = MemoryContextStrdup(TopMemoryContext,
									  fuuid_entropy_names(FUUID_ENTROPY_ALL));

	/*
	 * The library cannot be loaded again once it has defined a setting.  So an
	 * error ends the session here, and a cancel request has to wait.
	 */
	HOLD_INTERRUPTS();
	ExitOnAnyError = true;
	for (int i = 0; i < (int) lengthof(setting_names); i++)
		fuuid_placeholder_keep_resets(setting_names[i]);

	DefineCustomStringVariable("fast_uuid.allowed_sources",
							   "Sets the entropy sources that may be used.",
							   "A list of names. Any other source is refused, whether \"fast_uuid.source\" or an argument names it. This does not change \"fast_uuid.source\"; set that to an allowed source.",
							   &allowed_text, all_sources,
							   PGC_SUSET,
							   GUC_LIST_INPUT | GUC_ALLOW_IN_PARALLEL,
							   allowed_check, allowed_assign, NULL);

	DefineCustomEnumVariable("fast_uuid.source",
							 "Sets the entropy source of generated UUIDs.",
							 "\"openssl\", \"getrandom\" and \"urandom\" are cryptographically strong. \"xorshift128+\" is not: anyone who has seen a few values can compute the rest.",
							 &fuuid_source, fuuid_entropy_default(),
							 source_options(),
							 PGC_USERSET, GUC_ALLOW_IN_PARALLEL,
							 NULL, NULL, NULL);

	DefineCustomStringVariable("fast_uuid.seed",
							   "Sets the 64-bit seed of \"xorshift128+\", and optionally a start time.",
							   "For test data that repeats. Anyone who knows the seed knows the random bits, and two sessions with the same seed draw the same bits; with a start time, they generate the same UUIDs, each a millisecond after the one before. A seed is accepted only from SET, not from a file, a database or a role. If it is empty, the generator is seeded from strong entropy.",
							   &seed_text, "",
							   PGC_SUSET,
							   GUC_SUPERUSER_ONLY | GUC_DISALLOW_IN_FILE |
							   GUC_ALLOW_IN_PARALLEL,
							   fuuid_seed_check, fuuid_seed_assign, NULL);

	DefineCustomIntVariable("fast_uuid.buffer_size",
							"Sets the number of random bytes to fetch ahead from an entropy source.",
							"A UUID takes 8 bytes. The first fetch of a session is 64 bytes, and each further one is twice as large, up to this size. 0 disables the buffer, so that each UUID is a request to the source.",
							&fuuid_buffer_size,
							FUUID_BUFFER_SIZE_DEFAULT, 0, FUUID_BUFFER_SIZE_MAX,
							PGC_USERSET, GUC_UNIT_BYTE | GUC_ALLOW_IN_PARALLEL,
							NULL, buffer_size_assign, NULL);

	DefineCustomBoolVariable("fast_uuid.vdso",
							 "Enables calling getrandom through the kernel's vDSO.",
							 "If this is off, or the kernel does not offer it there, \"getrandom\" makes a system call for every fetch.",
							 &fuuid_vdso, true,
							 PGC_USERSET, GUC_ALLOW_IN_PARALLEL,
							 NULL, vdso_assign, NULL);

	/* The server has told why, and tests would go on without what they need. */
	if (seed_was_set && *seed_text == '\0')
		ereport(WARNING,
				(errmsg("\"xorshift128+\" is not seeded"),
				 errdetail("The server has refused the value of \"fast_uuid.seed\" that was set before the library was loaded.")));

	/* A misspelt setting is refused from now on. */
	MarkGUCPrefixReserved("fast_uuid");

	ExitOnAnyError = exit_on_any_error;
	RESUME_INTERRUPTS();
}
