/*
 * settings.h
 *	  The settings of fast_uuid as variables.
 */
#ifndef FUUID_SETTINGS_H
#define FUUID_SETTINGS_H

#include "compat.h"

extern int	fuuid_source;			/* index into fuuid_entropy_sources, or FUUID_ENTROPY_UNKNOWN */
extern int	fuuid_buffer_size;		/* bytes */
extern bool fuuid_vdso;
extern int	fuuid_max_clock_lead;	/* milliseconds; -1: no limit */
extern uint32 fuuid_allowed_sources;	/* set of indexes into fuuid_entropy_sources */

/* What a setting and a call say alike of a source. */
#define FUUID_NOT_ALLOWED_MESSAGE		"entropy source \"%s\" is not allowed"
#define FUUID_NOT_ALLOWED_HINT			"The setting \"fast_uuid.allowed_sources\" allows: %s."
#define FUUID_NOT_AVAILABLE_MESSAGE	"entropy source \"%s\" is not available"

extern void fuuid_settings_init(void);
FUUID_NORETURN extern void fuuid_settings_not_allowed(const char *source);
FUUID_NORETURN extern void fuuid_settings_unknown_source(void);
FUUID_NORETURN extern void fuuid_settings_unknown_ordering(void);

#endif							/* FUUID_SETTINGS_H */
