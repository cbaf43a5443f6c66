/*
 * placeholders.h
 *	  Settings that were made before the library was loaded.
 */
#ifndef FUUID_PLACEHOLDERS_H
#define FUUID_PLACEHOLDERS_H

#include "utils/guc.h"

/* Does the text hold a value of the setting? */
typedef bool (*SettingValid) (const char *text);

/* A setting, as far as its placeholder has to be checked. */
typedef struct SettingRule
{
	const char *name;
	bool		privileged;		/* only superusers, or by GRANT SET ON PARAMETER */
	SettingValid valid;			/* NULL: its check hook keeps a wrong value */
} SettingRule;

extern void fuuid_placeholders_check(const SettingRule *rules, int count);
extern int	fuuid_placeholders_flag(void);
extern void fuuid_placeholders_taken_over(const SettingRule *rules, int count);

extern const char *fuuid_setting_origin(GucSource source);
extern GucSource fuuid_setting_source(const char *name);
extern bool fuuid_setting_is_in_file(const char *name);

#endif							/* FUUID_PLACEHOLDERS_H */
