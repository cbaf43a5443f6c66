/*
 * settings_hooks.h
 *	  What the files of the settings share.
 */
#ifndef FU_SETTINGS_HOOKS_H
#define FU_SETTINGS_HOOKS_H

#include "compat.h"

/* The settings as they were given. */
extern char *fu_source_text;
extern char *fu_allowed_text;
extern char *fu_ordering_text;

extern bool fu_source_check(char **newval, void **extra, GucSource source);
extern void fu_source_assign(const char *newval, void *extra);
extern const char *fu_source_show(void);

extern bool fu_allowed_check(char **newval, void **extra, GucSource source);
extern void fu_allowed_assign(const char *newval, void *extra);

extern bool fu_ordering_check(char **newval, void **extra, GucSource source);
extern void fu_ordering_assign(const char *newval, void *extra);
extern const char *fu_ordering_show(void);

extern bool fu_seed_check(char **newval, void **extra, GucSource source);
extern void fu_seed_assign(const char *newval, void *extra);

extern bool fu_setting_must_keep(GucSource source);
extern void fu_setting_warn_of_mistake(const char *setting, const char *value, const char *detail);
FU_NORETURN extern void fu_setting_fail_unknown(const char *what, const char *value,
												const char *setting, const char *available);

#endif							/* FU_SETTINGS_HOOKS_H */
