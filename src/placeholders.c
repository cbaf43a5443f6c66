/*
 * placeholders.c
 *	  Protective settings that were made before the library was loaded.
 *
 *	  The server keeps such a setting as a placeholder: an unchecked text, which any
 *	  user may put over the DBA's.  When the setting is defined the server drops a
 *	  text that it refuses, with a warning, and the default applies.  That would
 *	  take the protection away.  So such a text is looked for before anything is
 *	  defined, and is an error: the library is then not loaded, the placeholders
 *	  stay, and the next call looks again.  What the server drops all the same,
 *	  because memory is short, is looked for afterwards.
 */
#include "postgres.h"

#include "access/parallel.h"
#include "catalog/pg_parameter_acl.h"
#include "compat.h"
#include "placeholders.h"
#include "utils/acl.h"

/*
 * Raise an error if the server is not going to accept this value.  Who needs a
 * privilege is the rule of set_config_option().  A SET with the context of what
 * is no SET was none: after RESET and SET LOCAL in one transaction, which anybody
 * may use, the server takes what RESET led to for a SET, of its first superuser.
 */
static void
check_value(const ProtectiveSetting *setting, const char *text, GucSource source, GucContext context, Oid role)
{
	if (source == PGC_S_DEFAULT)
		return;
	if ((source == PGC_S_SESSION && context < PGC_SUSET) ||
		((context == PGC_USERSET || context == PGC_BACKEND) &&
		 pg_parameter_aclcheck(setting->name, role, ACL_SET) != ACLCHECK_OK))
		ereport(ERROR,
				(errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
				 errmsg("permission denied to set parameter \"%s\"", setting->name),
				 errdetail("It was set before fast_uuid was loaded."),
				 errhint("Use RESET %s, or connect without the option that sets it.", setting->name)));
	if (!setting->valid(text))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("invalid value for parameter \"%s\": \"%s\"", setting->name, text),
				 errdetail("It was set before fast_uuid was loaded."),
				 errhint("Correct the value where it was set, and reconnect.")));
}

/*
 * Called before the setting is defined.  Each value in a placeholder can become the
 * current one: by RESET, or when a transaction, a savepoint or a function ends.
 */
void
fuuid_placeholder_check(ProtectiveSetting *setting)
{
	struct config_generic *placeholder = fuuid_find_setting(setting->name);

	setting->source = setting->reset_source = PGC_S_DEFAULT;

	/* A worker that starts takes over its leader's settings afterwards. */
	if (placeholder == NULL || InitializingParallelWorker)
		return;
	if ((placeholder->flags & GUC_CUSTOM_PLACEHOLDER) == 0)
		ereport(ERROR,
				(errcode(ERRCODE_DUPLICATE_OBJECT),
				 errmsg("another copy of fast_uuid is loaded in this session"),
				 errhint("Reconnect.")));

	setting->source = placeholder->source;
	setting->reset_source = placeholder->reset_source;
	check_value(setting, GetConfigOption(setting->name, false, false),
				placeholder->source, placeholder->scontext, placeholder->srole);
	check_value(setting, GetConfigOptionResetString(setting->name),
				placeholder->reset_source, placeholder->reset_scontext, placeholder->reset_srole);
	for (const GucStack *stack = placeholder->stack; stack != NULL; stack = stack->prev)
		check_value(setting, stack->prior.val.stringval, stack->source, stack->scontext, stack->srole);
}

/*
 * Called when the setting is defined: a value that the server has dropped left
 * the place to one of lower precedence.  The library cannot be unloaded, so the
 * session ends.
 */
void
fuuid_placeholder_check_taken_over(const ProtectiveSetting *setting)
{
	struct config_generic *defined = fuuid_find_setting(setting->name);

	if (defined->source < setting->source || defined->reset_source < setting->reset_source)
		ereport(FATAL,
				(errcode(ERRCODE_OUT_OF_MEMORY),
				 errmsg("could not take over the value of parameter \"%s\"", setting->name),
				 errhint("Reconnect.")));
}
