/*
 * placeholders.h
 *	  Protective settings that were made before the library was loaded.
 */
#ifndef FUUID_PLACEHOLDERS_H
#define FUUID_PLACEHOLDERS_H

#include "utils/guc.h"

/* A setting that protects others than the user who would like to change it. */
typedef struct ProtectiveSetting
{
	const char *name;
	bool		(*valid) (const char *text);
	GucSource	source;			/* of the value that its placeholder held */
	GucSource	reset_source;	/* of that which RESET leads to */
} ProtectiveSetting;

extern void fuuid_placeholder_check(ProtectiveSetting *setting);
extern void fuuid_placeholder_check_taken_over(const ProtectiveSetting *setting);

#endif							/* FUUID_PLACEHOLDERS_H */
