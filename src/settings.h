/*
 * settings.h
 *	  The settings of fast_uuid as variables.
 */
#ifndef FU_SETTINGS_H
#define FU_SETTINGS_H

#include "compat.h"

extern int	fu_source;			/* index into fu_entropy_sources, or FU_ENTROPY_UNKNOWN */
extern int	fu_buffer_size;		/* bytes */
extern bool fu_vdso;
extern int	fu_max_clock_lead;	/* milliseconds; -1: no limit */
extern uint32 fu_allowed_sources;	/* set of indexes into fu_entropy_sources */

/* What a setting and a call say alike of a source. */
#define FU_NOT_ALLOWED_MESSAGE		"entropy source \"%s\" is not allowed"
#define FU_NOT_ALLOWED_HINT			"The setting fast_uuid.allowed_sources allows: %s."
#define FU_NOT_AVAILABLE_MESSAGE	"entropy source \"%s\" cannot be used here"

extern void fu_settings_init(void);
FU_NORETURN extern void fu_settings_not_allowed(const char *source);
FU_NORETURN extern void fu_settings_unknown_source(void);
FU_NORETURN extern void fu_settings_unknown_ordering(void);

#endif							/* FU_SETTINGS_H */
