/*
 * settings_ordering.c
 *	  Hooks of fast_uuid.ordering.
 */
#include "postgres.h"

#include "ordering.h"
#include "settings.h"
#include "settings_hooks.h"

char	   *fu_ordering_text;

/* Names of the orders, as in OrderingScope. */
static const char *const ordering_names[FU_ORDERING_UNKNOWN] = {
	[FU_ORDERING_SESSION] = "session",
	[FU_ORDERING_CLUSTER] = "cluster",
};

/*
 * The order of that name, whose case does not matter.
 */
static OrderingScope
ordering_by_name(const char *name)
{
	OrderingScope scope = FU_ORDERING_SESSION;

	while (scope < FU_ORDERING_UNKNOWN && pg_strcasecmp(ordering_names[scope], name) != 0)
		scope++;
	return scope;
}

/*
 * The names of the orders, for a hint; palloc'd.
 */
static const char *
available_orderings(void)
{
	return psprintf("%s, %s", ordering_names[FU_ORDERING_SESSION], ordering_names[FU_ORDERING_CLUSTER]);
}

bool
fu_ordering_check(char **newval, void **extra pg_attribute_unused(), GucSource source)
{
	if (ordering_by_name(*newval) != FU_ORDERING_UNKNOWN)
		return true;
	if (fu_setting_must_keep(source))
	{
		fu_setting_warn_of_mistake("fast_uuid.ordering", *newval, "There is no order of that name.");
		return true;
	}
	GUC_check_errhint("Available values: %s.", available_orderings());
	return false;
}

/*
 * Values that this backend has made so far precede those under cluster order.
 */
void
fu_ordering_assign(const char *newval, void *extra pg_attribute_unused())
{
	OrderingScope scope = ordering_by_name(newval);

	if (scope == FU_ORDERING_CLUSTER && fu_ordering_scope != FU_ORDERING_CLUSTER)
		fu_cluster_follow(fu_ordering_last_ns);
	fu_ordering_scope = scope;
}

const char *
fu_ordering_show(void)
{
	return fu_ordering_scope == FU_ORDERING_UNKNOWN ? fu_ordering_text : ordering_names[fu_ordering_scope];
}

/*
 * Raise the error for a fast_uuid.ordering that names none.
 */
void
fu_settings_unknown_ordering(void)
{
	fu_setting_fail_unknown("ordering", fu_ordering_text, "fast_uuid.ordering", available_orderings());
}
