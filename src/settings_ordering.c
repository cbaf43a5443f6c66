/*
 * settings_ordering.c
 *	  Hooks of fast_uuid.ordering and fast_uuid.required_ordering.
 */
#include "postgres.h"

#include "ordering.h"
#include "settings.h"
#include "settings_hooks.h"

char	   *fuuid_ordering_text;
char	   *fuuid_required_ordering_text;

/* What they name. */
static OrderingScope chosen = FUUID_ORDERING_SESSION;
static OrderingScope required = FUUID_ORDERING_SESSION;

/* Names of the orders, as in OrderingScope. */
static const char *const ordering_names[FUUID_ORDERING_UNKNOWN] = {
	[FUUID_ORDERING_SESSION] = "session",
	[FUUID_ORDERING_INSTANCE] = "instance",
	[FUUID_ORDERING_DURABLE] = "durable",
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
valid_orderings(void)
{
	return psprintf("%s, %s, %s", ordering_names[FUUID_ORDERING_SESSION],
					ordering_names[FUUID_ORDERING_INSTANCE], ordering_names[FUUID_ORDERING_DURABLE]);
}

static bool
check(const char *setting, const char *value, GucSource source)
{
	if (ordering_by_name(value) != FUUID_ORDERING_UNKNOWN)
		return true;
	if (fuuid_setting_must_keep(source))
	{
		fuuid_setting_warn_of_mistake(setting, value, "There is no ordering of that name.");
		return true;
	}
	GUC_check_errhint("Valid values are: %s.", valid_orderings());
	return false;
}

/*
 * The wider one is in force; an unknown one is the widest.
 */
static void
set_scope(void)
{
	fuuid_ordering_set_scope(Max(chosen, required));
}

static const char *
show(OrderingScope scope, const char *text)
{
	return scope == FUUID_ORDERING_UNKNOWN ? text : ordering_names[scope];
}

bool
fuuid_ordering_check(char **newval, void **extra pg_attribute_unused(), GucSource source)
{
	return check("fast_uuid.ordering", *newval, source);
}

void
fuuid_ordering_assign(const char *newval, void *extra pg_attribute_unused())
{
	chosen = ordering_by_name(newval);
	set_scope();
}

const char *
fuuid_ordering_show(void)
{
	return show(chosen, fuuid_ordering_text);
}

bool
fuuid_required_ordering_check(char **newval, void **extra pg_attribute_unused(), GucSource source)
{
	return check("fast_uuid.required_ordering", *newval, source);
}

void
fuuid_required_ordering_assign(const char *newval, void *extra pg_attribute_unused())
{
	required = ordering_by_name(newval);
	set_scope();
}

const char *
fuuid_required_ordering_show(void)
{
	return show(required, fuuid_required_ordering_text);
}

/*
 * Raise the error for a setting that names no order.
 */
void
fuuid_settings_unknown_ordering(void)
{
	if (required == FUUID_ORDERING_UNKNOWN)
		fuuid_setting_fail_unknown("ordering", fuuid_required_ordering_text, "fast_uuid.required_ordering", valid_orderings());
	fuuid_setting_fail_unknown("ordering", fuuid_ordering_text, "fast_uuid.ordering", valid_orderings());
}
