/*
 * settings.c
 *	  The fast_uuid.* settings.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "entropy.h"
#include "miscadmin.h"
#include "placeholders.h"
#include "settings.h"
#include "settings_hooks.h"
#include "utils/builtins.h"
#include "utils/memutils.h"

int			fuuid_buffer_size = FUUID_BUFFER_SIZE_DEFAULT;
bool		fuuid_vdso = true;
int			fuuid_max_clock_lead = -1;

static char *seed_text;

/* True while the settings are defined, and take over what was set before. */
static bool defining = false;

/*
 * Has a value that cannot be used to be kept, and refused by each call?  Only a
 * SET by hand can be refused at once: in any other place the server would put
 * the default in the place of what was asked for.
 */
bool
fuuid_setting_must_keep(GucSource source)
{
	return defining || InitializingParallelWorker || source < PGC_S_INTERACTIVE;
}

/*
 * Tell the log, once, of a wrong value in the configuration file.
 */
void
fuuid_setting_warn_of_mistake(const char *setting, const char *value, const char *detail)
{
	if (IsUnderPostmaster)
		return;
	ereport(WARNING,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("invalid value for parameter \"%s\": \"%s\"", setting, value),
			 errdetail("%s", detail),
			 errhint("Correct the value. Until then, calls raise an error.")));
}

bool
fuuid_settings_are_defined(void)
{
	return !defining;
}

/*
 * Raise the error for a setting whose value names nothing that there is.
 */
void
fuuid_setting_fail_unknown(const char *what, const char *value, const char *setting, const char *valid)
{
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("unrecognized %s \"%s\"", what, value),
			 errdetail("\"%s\" was set %s.", setting, fuuid_setting_origin(fuuid_setting_source(setting))),
			 errhint("Valid values are: %s. Use SET to choose one of them, or correct the value where it was set and reconnect.", valid)));
}

/*
 * What was buffered under the old size or implementation is not handed out
 * under the new one.
 */
static void
buffer_size_assign(int newval pg_attribute_unused(), void *extra pg_attribute_unused())
{
	fuuid_entropy_discard();
}

static void
vdso_assign(bool newval pg_attribute_unused(), void *extra pg_attribute_unused())
{
	fuuid_entropy_discard();
}

static bool
buffer_size_valid(const char *text)
{
	int			size;

	return parse_int(text, &size, GUC_UNIT_BYTE, NULL) && size >= 0 && size <= FUUID_BUFFER_SIZE_MAX;
}

static bool
vdso_valid(const char *text)
{
	bool		on;

	return parse_bool(text, &on);
}

static bool
max_clock_lead_valid(const char *text)
{
	int			milliseconds;

	return parse_int(text, &milliseconds, GUC_UNIT_MS, NULL) && milliseconds >= -1;
}

/*
 * Define the settings.  Raises an error, and defines none, where one of them
 * was set before in a way that would not be carried over.
 */
void
fuuid_settings_init(void)
{
	static const SettingRule rules[] = {
		{"fast_uuid.allowed_sources", true, NULL},
		{"fast_uuid.source", false, NULL},
		{"fast_uuid.buffer_size", false, buffer_size_valid},
		{"fast_uuid.vdso", false, vdso_valid},
		{"fast_uuid.seed", true, NULL},
		{"fast_uuid.required_ordering", true, NULL},
		{"fast_uuid.ordering", false, NULL},
		{"fast_uuid.max_clock_lead", false, max_clock_lead_valid},
	};

	int			flag;

	fuuid_placeholders_check(rules, lengthof(rules));

	/*
	 * A warning below, of a misspelt setting, must not end in the error of a
	 * cancelled query: the library would be half loaded for ever.
	 */
	HOLD_INTERRUPTS();
	defining = true;
	flag = fuuid_placeholders_flag();

	/* Before the source, which is checked against it. */
	DefineCustomStringVariable("fast_uuid.allowed_sources",
							   "Sets the entropy sources that may be used.",
							   "A comma-separated list of names. Any other source is refused, whether \"fast_uuid.source\" or an argument names it. "
							   "A list that contains an unknown name allows nothing. "
							   "This does not change \"fast_uuid.source\"; set that to an allowed source.",
							   &fuuid_allowed_text,
							   MemoryContextStrdup(TopMemoryContext, fuuid_entropy_names(FUUID_ENTROPY_ALL)),
							   PGC_SUSET, GUC_LIST_INPUT | flag,
							   fuuid_allowed_check, fuuid_allowed_assign, NULL);

	DefineCustomStringVariable("fast_uuid.source",
							   "Sets the entropy source of generated UUIDs.",
							   "\"openssl\", \"getrandom\" and \"urandom\" are cryptographically strong. "
							   "\"xorshift128+\" is not: anyone who has seen a few values can compute the rest.",
							   &fuuid_source_text,
							   fuuid_entropy_sources[fuuid_entropy_default()]->name,
							   PGC_USERSET, flag,
							   fuuid_source_check, fuuid_source_assign, fuuid_source_show);

	DefineCustomIntVariable("fast_uuid.buffer_size",
							"Sets the number of random bytes to fetch ahead from an entropy source.",
							"A UUID takes 8 bytes. The first fetch of a session is 64 bytes, "
							"and each further one is twice as large, up to this size. "
							"0 disables the buffer, so that each UUID is a request to the source.",
							&fuuid_buffer_size,
							FUUID_BUFFER_SIZE_DEFAULT, 0, FUUID_BUFFER_SIZE_MAX,
							PGC_USERSET, GUC_UNIT_BYTE | flag,
							NULL, buffer_size_assign, NULL);

	DefineCustomBoolVariable("fast_uuid.vdso",
							 "Enables calling getrandom through the kernel's vDSO.",
							 "If this is off, or the kernel does not offer it there, \"getrandom\" makes a system call for every fetch.",
							 &fuuid_vdso,
							 true,
							 PGC_USERSET, flag,
							 NULL, vdso_assign, NULL);

	DefineCustomStringVariable("fast_uuid.seed",
							   "Sets the 64-bit seed of \"xorshift128+\".",
							   "For reproducible test data. Anyone who knows the seed knows the "
							   "random bits, and two sessions with the same seed draw the same bits. A seed is "
							   "accepted only from SET, not from a file, a database or a role. "
							   "If it is empty, the generator is seeded from strong entropy.",
							   &seed_text,
							   "",
							   PGC_SUSET, GUC_SUPERUSER_ONLY | GUC_DISALLOW_IN_FILE | flag,
							   fuuid_seed_check, fuuid_seed_assign, NULL);

	DefineCustomStringVariable("fast_uuid.required_ordering",
							   "Sets the minimum order of generated UUIDs.",
							   "The stronger of this and \"fast_uuid.ordering\" is in force. From the weakest to the strongest, "
							   "the values are \"session\", \"instance\" and \"durable\".",
							   &fuuid_required_ordering_text,
							   "session",
							   PGC_SUSET, flag,
							   fuuid_required_ordering_check, fuuid_required_ordering_assign, fuuid_required_ordering_show);

	DefineCustomStringVariable("fast_uuid.ordering",
							   "Sets the scope within which generated UUIDs are monotonic.",
							   "\"session\": the UUIDs of this session. \"instance\": those of all sessions under \"instance\" "
							   "or \"durable\"; before PostgreSQL 17 this requires fast_uuid in \"shared_preload_libraries\". "
							   "\"durable\": in each database, also across restarts, crashes and failovers; this requires "
							   "PostgreSQL 17 or later.",
							   &fuuid_ordering_text,
							   "session",
							   PGC_USERSET, flag,
							   fuuid_ordering_check, fuuid_ordering_assign, fuuid_ordering_show);

	DefineCustomIntVariable("fast_uuid.max_clock_lead",
							"Sets how far the time in new UUIDs may be ahead of the clock.",
							"After a backward step, new UUIDs continue from the latest one. An error is raised "
							"if they would be ahead of the clock by more than this, and by at least a "
							"millisecond. The same limit applies to fast_uuid_observe(). -1 disables the limit, "
							"except for fast_uuid_observe(), where it means one second.",
							&fuuid_max_clock_lead,
							-1, -1, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS | flag,
							NULL, NULL, NULL);

	defining = false;
	fuuid_source_warn_if_left_out();
	fuuid_placeholders_taken_over(rules, lengthof(rules));
	MarkGUCPrefixReserved("fast_uuid");
	RESUME_INTERRUPTS();
}
