/*
 * placeholders.h
 *	  Settings that were made before the library was loaded.
 */
#ifndef FU_PLACEHOLDERS_H
#define FU_PLACEHOLDERS_H

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

extern void fu_placeholders_check(const SettingRule *rules, int count);
extern int	fu_placeholders_flag(void);
extern void fu_placeholders_taken_over(const SettingRule *rules, int count);

extern const char *fu_setting_origin(GucSource source);
extern GucSource fu_setting_source(const char *name);

#endif							/* FU_PLACEHOLDERS_H */
