/*
 * placeholders.c
 *	  Settings that were made before the library was loaded.
 *
 *	  The server keeps such a setting as a placeholder: a text that nobody has
 *	  checked, of which only the value of the highest precedence is left.  When
 *	  the setting is defined the server drops a value that it refuses, with a
 *	  warning, and the default applies, which for the allowlist of sources allows
 *	  all of them.  So what would be dropped is looked for before anything is
 *	  defined, and refused: then the library is not loaded, the placeholders stay,
 *	  and the next call looks again.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "access/xact.h"
#include "catalog/pg_parameter_acl.h"
#include "compat.h"
#include "miscadmin.h"
#include "placeholders.h"
#include "utils/acl.h"

/* A value in a placeholder: the current one, that of RESET, or a stacked one. */
typedef struct SetValue
{
	const char *text;			/* NULL: none */
	GucSource	source;
	GucContext	context;
	Oid			role;			/* who set it */
} SetValue;

/*
 * How a setting was set, as the end of a sentence that begins "... was set".
 */
const char *
fuuid_setting_origin(GucSource source)
{
	switch (source)
	{
		case PGC_S_FILE:
			return "in the configuration file";
		case PGC_S_ARGV:
			return "on the server's command line";
		case PGC_S_GLOBAL:
			return "by ALTER ROLE ALL";
		case PGC_S_DATABASE:
			return "by ALTER DATABASE";
		case PGC_S_USER:
			return "by ALTER ROLE";
		case PGC_S_DATABASE_USER:
			return "by ALTER ROLE IN DATABASE";
		case PGC_S_CLIENT:
			return "by a connection option";
		default:
			return "by SET, in this session or for a function";
	}
}

/*
 * Where the current value of a setting is from.
 */
GucSource
fuuid_setting_source(const char *name)
{
	return fuuid_find_setting(name)->source;
}

/*
 * Is a setting in the configuration file that is being read, or was read last?
 */
bool
fuuid_setting_is_in_file(const char *name)
{
	return (fuuid_find_setting(name)->status & GUC_IS_IN_FILE) != 0;
}

/*
 * Is the server going to accept the value of a setting that needs a privilege?
 * The rule of set_config_option().
 */
static bool
has_privilege(const SettingRule *rule, const SetValue *value)
{
	if (value->context != PGC_USERSET && value->context != PGC_BACKEND)
		return true;
	return pg_parameter_aclcheck(rule->name, value->role, ACL_SET) == ACLCHECK_OK;
}

static void
check_value(const SettingRule *rule, SetValue value)
{
	if (value.text == NULL)
		return;

	if (rule->privileged && !has_privilege(rule, &value))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set parameter \"%s\"", rule->name),
				 errdetail("It was set %s, before fast_uuid was loaded.", fuuid_setting_origin(value.source)),
				 value.source == PGC_S_CLIENT ?
				 errhint("Connect without this option.") :
				 errhint("Use RESET %s in a transaction of its own, remove the setting from the function's SET clause, "
						 "or ask a superuser for GRANT SET ON PARAMETER.", rule->name)));

	if (rule->valid != NULL && !rule->valid(value.text))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"%s\": \"%s\"", rule->name, value.text),
				 errdetail("It was set %s, before fast_uuid was loaded.", fuuid_setting_origin(value.source)),
				 value.source == PGC_S_SESSION ?
				 errhint("Use RESET %s in a transaction of its own, or correct the function's SET clause.", rule->name) :
				 errhint("Correct the value there and reconnect.")));
}

/*
 * Each value in a placeholder becomes the current one at some time: by RESET,
 * or when a transaction, a savepoint or a function ends.
 */
static void
check_placeholder(const SettingRule *rule, struct config_generic *setting)
{
	struct config_string *strings = FUUID_TEXT_SETTING(setting);

	check_value(rule, (SetValue) {
		strings->reset_val, setting->reset_source, setting->reset_scontext, setting->reset_srole
	});
	check_value(rule, (SetValue) {
		*strings->variable, setting->source, setting->scontext, setting->srole
	});
	for (GucStack *stack = setting->stack; stack != NULL; stack = stack->prev)
	{
		check_value(rule, (SetValue) {
			stack->prior.val.stringval, stack->source, stack->scontext, stack->srole
		});
		if (stack->state == GUC_SET_LOCAL)
			check_value(rule, (SetValue) {
				stack->masked.val.stringval, PGC_S_SESSION, stack->masked_scontext, stack->masked_srole
			});
	}
}

/*
 * Was the setting reset in the transaction that goes on?  Then what it was
 * before stands below in the stack.  The server takes over a value only over
 * one of the same or a lower source, and so would drop the RESET of a SET.  Of
 * a privileged setting it would also be forgotten that there was a SET, by a
 * function for example, which anybody can RESET while it is a placeholder.
 */
static bool
was_reset(const SettingRule *rule, struct config_generic *setting)
{
	GucSource	above = setting->source;
	const char *reset_text = FUUID_TEXT_SETTING(setting)->reset_val;

	if (rule->privileged && setting->stack != NULL && above < PGC_S_SESSION)
		return true;
	for (const GucStack *stack = setting->stack; stack != NULL; stack = stack->prev)
	{
		/* What SET LOCAL hides is from a SET, unless that was a RESET as well. */
		if (above < stack->source ||
			(stack->state == GUC_SET_LOCAL && above < PGC_S_SESSION && stack->masked.val.stringval != reset_text))
			return true;
		above = stack->source;
	}
	return false;
}

/*
 * In a parallel operation the server applies no setting, unless this flag
 * permits it.  Older servers do not know it; one that is older than the headers
 * of this build may not either.
 */
static bool
applies_in_parallel(void)
{
#ifdef GUC_ALLOW_IN_PARALLEL
	return atoi(GetConfigOption("server_version_num", false, false)) >= PG_VERSION_NUM;
#else
	return false;
#endif
}

/*
 * Raise an error where one of the settings, which are about to be defined, was
 * set in a way that the server would not carry over.
 */
void
fuuid_placeholders_check(const SettingRule *rules, int count)
{
	/* A worker that starts takes over its leader's settings afterwards. */
	if (InitializingParallelWorker)
		return;
	for (int i = 0; i < count; i++)
	{
		struct config_generic *setting = fuuid_find_setting(rules[i].name);

		if (setting == NULL || (setting->flags & GUC_CUSTOM_PLACEHOLDER) == 0)
			continue;
		check_placeholder(&rules[i], setting);
		if (was_reset(&rules[i], setting))
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot load fast_uuid in the transaction that reset \"%s\"", rules[i].name),
					 errhint("Roll back, and use RESET %s in a transaction of its own.", rules[i].name)));
		if (setting->source != PGC_S_DEFAULT && IsInParallelMode() && !applies_in_parallel())
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("cannot load fast_uuid during a parallel operation after \"%s\" was set", rules[i].name),
					 errhint("Call uuidv7_fast() once in this session before the parallel query, "
							 "or add fast_uuid to \"shared_preload_libraries\" or \"session_preload_libraries\".")));
	}
}

/*
 * The flag by which settings that are defined in a parallel operation take over
 * their placeholders.  It is wanted only then: fuuid_placeholders_taken_over()
 * removes it again.
 */
int
fuuid_placeholders_flag(void)
{
#ifdef GUC_ALLOW_IN_PARALLEL
	if (IsInParallelMode())
		return GUC_ALLOW_IN_PARALLEL;
#endif
	return 0;
}

void
fuuid_placeholders_taken_over(const SettingRule *rules, int count)
{
	int			flag = fuuid_placeholders_flag();

	for (int i = 0; flag != 0 && i < count; i++)
		fuuid_find_setting(rules[i].name)->flags &= ~flag;
}
