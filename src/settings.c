/*
 * settings.c
 *	  The fast_uuid.* settings: tables and hooks.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "compat.h"
#include "entropy.h"
#include "entropy_xorshift.h"
#include "ordering.h"
#include "settings.h"
#include "utils/memutils.h"
#include "utils/varlena.h"

int			fu_source;
int			fu_buffer_size = FU_BUFFER_SIZE_DEFAULT;
bool		fu_vdso = true;

int			fu_max_clock_lead = -1;
uint32		fu_allowed_sources = FU_ENTROPY_ALL;

static char *seed_text;
static char *allowed_text;

static const struct config_enum_entry ordering_options[] = {
	{"session", FU_ORDERING_SESSION, false},
	{"cluster", FU_ORDERING_CLUSTER, false},
	{NULL, 0, false}
};

/* The registry's names in the form that an enum setting wants. */
static struct config_enum_entry source_options[FU_ENTROPY_COUNT + 1];

/*
 * Check a source for the setting.  The fence is kept by every call; here it is
 * for who sets a source by hand, to learn of it at once.  A configuration file
 * may set the source before the fence that allows it, and a parallel worker
 * must take over what its leader has.
 */
static bool
source_check(int *newval, void **extra pg_attribute_unused(), GucSource source)
{
	const EntropySource *chosen = fu_entropy_sources[*newval];
	const char *why;

	/* The default must be accepted; where it cannot work, a call says so. */
	if (source == PGC_S_DEFAULT || InitializingParallelWorker)
		return true;

	if (source == PGC_S_SESSION && !(fu_allowed_sources >> *newval & 1))
	{
		GUC_check_errcode(ERRCODE_INSUFFICIENT_PRIVILEGE);
		GUC_check_errmsg(FU_NOT_ALLOWED_MESSAGE, chosen->name);
		GUC_check_errhint(FU_NOT_ALLOWED_HINT, fu_entropy_names(fu_allowed_sources));
		return false;
	}
	if (!chosen->available(&why))
	{
		GUC_check_errcode(ERRCODE_FEATURE_NOT_SUPPORTED);
		GUC_check_errmsg(FU_NOT_AVAILABLE_MESSAGE, chosen->name);
		GUC_check_errdetail("%s", why);
		return false;
	}
	return true;
}

/*
 * Set of the sources in a list; NULL in *wrong, or what is wrong with it.  What
 * is wrong allows nothing.
 */
static uint32
parse_sources(const char *list, const char **wrong)
{
	List	   *names;
	ListCell   *cell;
	uint32		sources = 0;

	*wrong = NULL;
	if (!SplitGUCList(pstrdup(list), ',', &names))
	{
		*wrong = "The list of entropy sources is malformed.";
		return 0;
	}
	foreach(cell, names)
	{
		const char *name = lfirst(cell);
		int			index = fu_entropy_lookup(name, strlen(name));

		if (index >= 0)
			sources |= UINT32_C(1) << index;
		else
			*wrong = psprintf("Unrecognized entropy source: \"%s\".", name);
	}
	return sources;
}

/*
 * Check the list of allowed sources; the set of them is the setting's "extra".
 *
 * Who sets it by hand gets an error for a typo.  From a configuration file, a
 * database or a role, refusing the value would leave the default in force,
 * which allows all: there a typo is a warning, and allows nothing.
 */
static bool
allowed_check(char **newval, void **extra, GucSource source)
{
	const char *wrong;
	uint32		allowed = parse_sources(*newval, &wrong);

	if (wrong != NULL && source >= PGC_S_INTERACTIVE)
	{
		GUC_check_errdetail("%s", wrong);
		GUC_check_errhint("Available values: %s.", fu_entropy_names(FU_ENTROPY_ALL));
		return false;
	}
	if (wrong != NULL)
		ereport(WARNING,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("mistake in fast_uuid.allowed_sources: \"%s\"", *newval),
				 errdetail("%s", wrong),
				 errhint("Until it is mended, these entropy sources are allowed: %s.",
						 fu_entropy_names(allowed))));

	*extra = guc_malloc(LOG, sizeof(uint32));
	if (*extra == NULL)
		return false;
	*(uint32 *) *extra = allowed;
	return true;
}

/*
 * What is staged from a source that is no longer allowed must not be used, so
 * that calls need to look at the fence only when they refill.
 */
static void
allowed_assign(const char *newval pg_attribute_unused(), void *extra)
{
	fu_allowed_sources = *(uint32 *) extra;
	fu_entropy_discard();
}

/*
 * What was staged under the old size or implementation is not handed out
 * under the new one.
 */
static void
buffer_size_assign(int newval pg_attribute_unused(), void *extra pg_attribute_unused())
{
	fu_entropy_discard();
}

static void
vdso_assign(bool newval pg_attribute_unused(), void *extra pg_attribute_unused())
{
	fu_entropy_discard();
}

/*
 * Values that this backend has made so far precede those under cluster order.
 */
static void
ordering_assign(int newval, void *extra pg_attribute_unused())
{
	if (newval == FU_ORDERING_CLUSTER && fu_ordering_scope != FU_ORDERING_CLUSTER)
		fu_cluster_follow(fu_ordering_last_ns);
}

/*
 * Read a seed: decimal, or hexadecimal after 0x, within 64 bits.
 */
static bool
parse_seed(const char *text, uint64 *seed)
{
	bool		hex = text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	const char *digits = hex ? text + 2 : text;
	size_t		len = strspn(digits, hex ? "0123456789abcdefABCDEF" : "0123456789");

	if (len == 0 || digits[len] != '\0')
		return false;
	errno = 0;
	*seed = strtoull(digits, NULL, hex ? 16 : 10);
	return errno == 0;
}

/*
 * The generator of a seed travels as the setting's "extra": when SET LOCAL or
 * a function's SET ends, the server hands the earlier one back, which then
 * goes on from where it was instead of repeating its numbers.
 */
static bool
seed_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	XorshiftGenerator *generator;
	uint64		seed;

	if (**newval == '\0')
		return true;

	if (!parse_seed(*newval, &seed))
	{
		GUC_check_errdetail("A seed is a whole number from 0 to 18446744073709551615, "
							"or 0x and hexadecimal digits up to 0xffffffffffffffff.");
		return false;
	}
	generator = guc_malloc(LOG, sizeof(XorshiftGenerator));
	if (generator == NULL)
		return false;
	memset(generator, 0, sizeof(XorshiftGenerator));
	generator->seeded = true;
	generator->seed = seed;
	*extra = generator;
	return true;
}

static void
seed_assign(const char *newval pg_attribute_unused(), void *extra)
{
	fu_xorshift_use(extra);
	fu_entropy_discard();
}

void
fu_settings_init(void)
{
	for (int i = 0; i < FU_ENTROPY_COUNT; i++)
	{
		source_options[i].name = fu_entropy_sources[i]->name;
		source_options[i].val = i;
	}

	/* Before the source, which is checked against it. */
	DefineCustomStringVariable("fast_uuid.allowed_sources",
							   "Entropy sources that may be used.",
							   "A list of names with commas. Any other source is refused, by fast_uuid.source and as an argument. "
							   "Does not change fast_uuid.source: set that to an allowed one.",
							   &allowed_text,
							   MemoryContextStrdup(TopMemoryContext, fu_entropy_names(FU_ENTROPY_ALL)),
							   PGC_SUSET, GUC_LIST_INPUT,
							   allowed_check, allowed_assign, NULL);

	DefineCustomEnumVariable("fast_uuid.source",
							 "Entropy source of generated UUIDs.",
							 "\"openssl\", \"getrandom\" and \"urandom\" are cryptographically strong. "
							 "\"xorshift128+\" is not: who sees a few values can calculate the others.",
							 &fu_source,
							 fu_entropy_default(),
							 source_options,
							 PGC_USERSET, 0,
							 source_check, NULL, NULL);

	DefineCustomIntVariable("fast_uuid.buffer_size",
							"Random bytes fetched ahead from an entropy source.",
							"A value takes 8 bytes. The first fetch of a session is 64 bytes, "
							"each further one twice as large, up to this size. "
							"With 0 every value asks the source.",
							&fu_buffer_size,
							FU_BUFFER_SIZE_DEFAULT, 0, FU_BUFFER_SIZE_MAX,
							PGC_USERSET, GUC_UNIT_BYTE,
							NULL, buffer_size_assign, NULL);

	DefineCustomBoolVariable("fast_uuid.vdso",
							 "Calls getrandom through the kernel's vDSO where it has one.",
							 "Off: \"getrandom\" makes a system call for every fetch.",
							 &fu_vdso,
							 true,
							 PGC_USERSET, 0,
							 NULL, vdso_assign, NULL);

	DefineCustomStringVariable("fast_uuid.seed",
							   "64-bit seed of \"xorshift128+\".",
							   "For test data that can be made again: who knows the seed knows the "
							   "random bits, and two sessions with one seed draw the same. "
							   "Empty: seeded from strong entropy.",
							   &seed_text,
							   "",
							   PGC_SUSET, GUC_SUPERUSER_ONLY,
							   seed_check, seed_assign, NULL);

	DefineCustomEnumVariable("fast_uuid.ordering",
							 "Sessions among which each UUID is greater than all earlier ones.",
							 "\"session\": the values of this session. \"cluster\": those of all sessions "
							 "under this setting; before PostgreSQL 17 it needs fast_uuid in shared_preload_libraries.",
							 &fu_ordering_scope,
							 FU_ORDERING_SESSION,
							 ordering_options,
							 PGC_USERSET, 0,
							 NULL, ordering_assign, NULL);

	DefineCustomIntVariable("fast_uuid.max_clock_lead",
							"How far the time in new UUIDs may lead a clock that was set back.",
							"Where the clock was set back, values go on from the latest one. An error "
							"is raised once they would lead the clock by more than this, and by a "
							"millisecond at least. -1: no limit.",
							&fu_max_clock_lead,
							-1, -1, INT_MAX,
							PGC_USERSET, GUC_UNIT_MS,
							NULL, NULL, NULL);

	MarkGUCPrefixReserved("fast_uuid");
}
