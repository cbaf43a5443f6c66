/*
 * settings_source.c
 *	  Hooks of fast_uuid.source and fast_uuid.allowed_sources.
 */
#include "postgres.h"

#include "compat.h"
#include "entropy.h"
#include "miscadmin.h"
#include "placeholders.h"
#include "settings.h"
#include "settings_hooks.h"
#include "utils/varlena.h"

int			fuuid_source = FUUID_ENTROPY_UNKNOWN;
uint32		fuuid_allowed_sources = FUUID_ENTROPY_ALL;

char	   *fuuid_source_text;
char	   *fuuid_allowed_text;

/*
 * Raise the error for a fast_uuid.source that names none.
 */
void
fuuid_settings_unknown_source(void)
{
	fuuid_setting_fail_unknown("entropy source", fuuid_source_text, "fast_uuid.source", fuuid_entropy_names(FUUID_ENTROPY_ALL));
}

/*
 * Check a source for the setting.  Whether it is allowed, and works here, is
 * for each call to find out; who sets it by hand learns of it at once.
 */
bool
fuuid_source_check(char **newval, void **extra pg_attribute_unused(), GucSource source)
{
	int			index = fuuid_entropy_lookup(*newval, strlen(*newval));
	const char *why;

	if (fuuid_setting_must_keep(source))
	{
		if (index < 0)
			fuuid_setting_warn_of_mistake("fast_uuid.source", *newval, "There is no entropy source of that name.");
		return true;
	}

	if (index < 0)
	{
		GUC_check_errhint("Valid values are: %s.", fuuid_entropy_names(FUUID_ENTROPY_ALL));
		return false;
	}
	if (source == PGC_S_SESSION && !(fuuid_allowed_sources >> index & 1))
	{
		GUC_check_errcode(ERRCODE_INSUFFICIENT_PRIVILEGE);
		GUC_check_errmsg(FUUID_NOT_ALLOWED_MESSAGE, fuuid_entropy_sources[index]->name);
		GUC_check_errhint(FUUID_NOT_ALLOWED_HINT, fuuid_entropy_names(fuuid_allowed_sources));
		return false;
	}
	if (!fuuid_entropy_sources[index]->available(&why))
	{
		GUC_check_errcode(ERRCODE_FEATURE_NOT_SUPPORTED);
		GUC_check_errmsg(FUUID_NOT_AVAILABLE_MESSAGE, fuuid_entropy_sources[index]->name);
		GUC_check_errdetail("%s", why);
		return false;
	}
	return true;
}

void
fuuid_source_assign(const char *newval, void *extra pg_attribute_unused())
{
	int			index = fuuid_entropy_lookup(newval, strlen(newval));

	fuuid_source = index >= 0 ? index : FUUID_ENTROPY_UNKNOWN;
}

/*
 * Case does not matter in a name; show it as it is listed.
 */
const char *
fuuid_source_show(void)
{
	return fuuid_source == FUUID_ENTROPY_UNKNOWN ? fuuid_source_text : fuuid_entropy_sources[fuuid_source]->name;
}

/*
 * Set of the sources in a list; NULL in *wrong, or what is wrong with it.  An
 * invalid list allows nothing.
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
		*wrong = "List syntax is invalid.";
		return 0;
	}
	foreach(cell, names)
	{
		const char *name = lfirst(cell);
		int			index = fuuid_entropy_lookup(name, strlen(name));

		if (index < 0)
		{
			*wrong = psprintf("Unrecognized entropy source: \"%s\".", name);
			return 0;
		}
		sources |= UINT32_C(1) << index;
	}
	return sources;
}

/*
 * Check the list of allowed sources; the set of them is the setting's "extra".
 */
bool
fuuid_allowed_check(char **newval, void **extra, GucSource source)
{
	const char *wrong;
	uint32		allowed = parse_sources(*newval, &wrong);

	if (wrong != NULL && !fuuid_setting_must_keep(source))
	{
		GUC_check_errdetail("%s", wrong);
		GUC_check_errhint("Valid values are: %s.", fuuid_entropy_names(FUUID_ENTROPY_ALL));
		return false;
	}
	if (wrong != NULL)
		fuuid_setting_warn_of_mistake("fast_uuid.allowed_sources", *newval, wrong);

	*extra = guc_malloc(LOG, sizeof(uint32));
	if (*extra == NULL)
		return false;
	*(uint32 *) *extra = allowed;
	return true;
}

/*
 * Raise the error for a source that fast_uuid.allowed_sources leaves out.
 */
void
fuuid_settings_not_allowed(const char *source)
{
	const char *wrong;

	(void) parse_sources(fuuid_allowed_text, &wrong);
	ereport(ERROR,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg(FUUID_NOT_ALLOWED_MESSAGE, source),
			 wrong == NULL ? 0 :
			 errdetail("%s \"fast_uuid.allowed_sources\" was set %s; an invalid list allows nothing.",
					   wrong, fuuid_setting_origin(fuuid_setting_source("fast_uuid.allowed_sources"))),
			 fuuid_allowed_sources == 0 ?
			 errhint(FUUID_NOT_ALLOWED_HINT, fuuid_entropy_names(0)) :
			 errhint(FUUID_NOT_ALLOWED_HINT " Set \"fast_uuid.source\" to one of them, or name one in the call.",
					 fuuid_entropy_names(fuuid_allowed_sources))));
}

/*
 * Tell the log of a list that does not allow the source which the server's
 * configuration chooses, most likely by default.
 */
void
fuuid_source_warn_if_left_out(void)
{
	if (IsUnderPostmaster || fuuid_source == FUUID_ENTROPY_UNKNOWN || fuuid_allowed_sources == 0 ||
		(fuuid_allowed_sources >> fuuid_source & 1))
		return;
	ereport(WARNING,
			(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
			 errmsg("value \"%s\" of \"fast_uuid.source\" is not in \"fast_uuid.allowed_sources\"", fuuid_entropy_sources[fuuid_source]->name),
			 errdetail("Calls that use this source raise an error."),
			 errhint("Set \"fast_uuid.source\" to one of: %s.", fuuid_entropy_names(fuuid_allowed_sources))));
}

/*
 * What is buffered from a source that is no longer allowed must not be used, so
 * that calls need to look at the allowlist only when they refill.
 *
 * A source in the same file may be about to change as well: nothing is said then.
 */
void
fuuid_allowed_assign(const char *newval pg_attribute_unused(), void *extra)
{
	fuuid_allowed_sources = *(uint32 *) extra;
	fuuid_entropy_discard();
	if (fuuid_settings_are_defined() && !fuuid_setting_is_in_file("fast_uuid.source"))
		fuuid_source_warn_if_left_out();
}
