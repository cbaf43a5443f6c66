/*
 * settings_hooks.h
 *	  What the files of the settings share.
 */
#ifndef FUUID_SETTINGS_HOOKS_H
#define FUUID_SETTINGS_HOOKS_H

#include "compat.h"

/* The settings as they were given. */
extern char *fuuid_source_text;
extern char *fuuid_allowed_text;
extern char *fuuid_ordering_text;
extern char *fuuid_required_ordering_text;

extern bool fuuid_source_check(char **newval, void **extra, GucSource source);
extern void fuuid_source_assign(const char *newval, void *extra);
extern const char *fuuid_source_show(void);
extern void fuuid_source_warn_if_left_out(void);

extern bool fuuid_allowed_check(char **newval, void **extra, GucSource source);
extern void fuuid_allowed_assign(const char *newval, void *extra);

extern bool fuuid_ordering_check(char **newval, void **extra, GucSource source);
extern void fuuid_ordering_assign(const char *newval, void *extra);
extern const char *fuuid_ordering_show(void);

extern bool fuuid_required_ordering_check(char **newval, void **extra, GucSource source);
extern void fuuid_required_ordering_assign(const char *newval, void *extra);
extern const char *fuuid_required_ordering_show(void);

extern bool fuuid_seed_check(char **newval, void **extra, GucSource source);
extern void fuuid_seed_assign(const char *newval, void *extra);

extern bool fuuid_settings_are_defined(void);
extern bool fuuid_setting_must_keep(GucSource source);
extern void fuuid_setting_warn_of_mistake(const char *setting, const char *value, const char *detail);
FUUID_NORETURN extern void fuuid_setting_fail_unknown(const char *what, const char *value,
												const char *setting, const char *valid);

#endif							/* FUUID_SETTINGS_HOOKS_H */
