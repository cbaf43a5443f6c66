/*
 * settings_ordering.c
 *	  Hooks of fast_uuid.ordering.
 */
#include "postgres.h"

#include "ordering.h"
#include "settings.h"
#include "settings_hooks.h"

char	   *fuuid_ordering_text;

/* Names of the orders, as in OrderingScope. */
static const char *const ordering_names[FUUID_ORDERING_UNKNOWN] = {
	[FUUID_ORDERING_SESSION] = "session",
	[FUUID_ORDERING_INSTANCE] = "instance",
};

/*
 * The order of that name, whose case does not matter.
 */
static OrderingScope
ordering_by_name(const char *name)
{
	OrderingScope scope = FUUID_ORDERING_SESSION;

	while (scope < FUUID_ORDERING_UNKNOWN && pg_strcasecmp(ordering_names[scope], name) != 0)
		scope++;
	return scope;
}

/*
 * The names of the orders, for a hint; palloc'd.
 */
static const char *
available_orderings(void)
{
	return psprintf("%s, %s", ordering_names[FUUID_ORDERING_SESSION], ordering_names[FUUID_ORDERING_INSTANCE]);
}

bool
fuuid_ordering_check(char **newval, void **extra pg_attribute_unused(), GucSource source)
{
	if (ordering_by_name(*newval) != FUUID_ORDERING_UNKNOWN)
		return true;
	if (fuuid_setting_must_keep(source))
	{
		fuuid_setting_warn_of_mistake("fast_uuid.ordering", *newval, "There is no order of that name.");
		return true;
	}
	GUC_check_errhint("Available values: %s.", available_orderings());
	return false;
}

void
fuuid_ordering_assign(const char *newval, void *extra pg_attribute_unused())
{
	fuuid_ordering_set_scope(ordering_by_name(newval));
}

const char *
fuuid_ordering_show(void)
{
	return fuuid_ordering_scope == FUUID_ORDERING_UNKNOWN ? fuuid_ordering_text : ordering_names[fuuid_ordering_scope];
}

/*
 * Raise the error for a fast_uuid.ordering that names none.
 */
void
fuuid_settings_unknown_ordering(void)
{
	fuuid_setting_fail_unknown("ordering", fuuid_ordering_text, "fast_uuid.ordering", available_orderings());
}
