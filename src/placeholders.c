/*
 * placeholders.c
 *	  Settings that were made before the library is loaded.
 *
 *	  Until a setting is defined, the server keeps it as a placeholder: an
 *	  unchecked text, with a stack of what to return to when transactions,
 *	  savepoints and functions end.  To define the setting, it replays all that
 *	  (reapply_stacked_values() in PostgreSQL's guc.c).
 */
#include "postgres.h"

#include "common/compat.h"
#include "placeholders.h"

static struct config_generic *
find_placeholder(const char *name)
{
	struct config_generic *setting = fuuid_find_setting(name);

	return setting != NULL && setting->flags & GUC_CUSTOM_PLACEHOLDER ?
		setting : NULL;
}

/* The value that a setting was given before it is defined, or NULL. */
const char *
fuuid_placeholder_value(const char *name)
{
	struct config_generic *setting = find_placeholder(name);

	if (setting == NULL || setting->source == PGC_S_DEFAULT)
		return NULL;
	return *FUUID_STRING_SETTING(setting)->variable;
}

/*
 * Prepare the placeholder of this name, if there is one, so that what was
 * RESET is reset when it is defined.
 *
 * The server replays each value with its source.  But that of a value that was
 * RESET, which is the one that the session began with, has a lower priority
 * than SET, and so what was SET before it would stay.  No value, from SET, is
 * how the server itself executes RESET.  PGC_SUSET, as RESET ALL asks nobody.
 */
void
fuuid_placeholder_keep_resets(const char *name)
{
	struct config_generic *setting = find_placeholder(name);
	struct config_string *text;

	if (setting == NULL || setting->stack == NULL)
		return;
	text = FUUID_STRING_SETTING(setting);
	if (*text->variable == text->reset_val)
	{
		/*
		 * The source is not for us to change, as the server keeps lists by
		 * it, but SET does.  What is no SET ends as SET LOCAL does, and then
		 * what is there now comes back.  Our settings can be defined in a
		 * parallel operation.
		 */
		setting->flags |= GUC_ALLOW_IN_PARALLEL;
		(void) set_config_option(name, "", PGC_SUSET, PGC_S_SESSION,
								 setting->stack->state == GUC_SET ?
								 GUC_ACTION_SET : GUC_ACTION_LOCAL,
								 true, WARNING, false);
		*text->variable = NULL;
	}
	for (GucStack *entry = setting->stack; entry != NULL; entry = entry->prev)
	{
		if (entry->prior.val.stringval == text->reset_val)
		{
			entry->prior.val.stringval = NULL;
			entry->source = PGC_S_SESSION;
			entry->scontext = PGC_SUSET;
		}
		if (entry->state == GUC_SET_LOCAL &&
			entry->masked.val.stringval == text->reset_val)
		{
			entry->masked.val.stringval = NULL;
			entry->masked_scontext = PGC_SUSET;
		}
	}
}
