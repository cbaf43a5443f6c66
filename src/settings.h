/*
 * settings.h
 *	  The settings of fast_uuid as variables.
 */
#ifndef FUUID_SETTINGS_H
#define FUUID_SETTINGS_H

#include "c.h"

extern int	fuuid_source;			/* index into fuuid_entropy_sources */
extern int	fuuid_buffer_size;		/* bytes */
extern bool fuuid_vdso;
extern int	fuuid_max_clock_lead;	/* milliseconds; -1: no limit */
extern uint32 fuuid_allowed_sources;	/* set of indexes into fuuid_entropy_sources */

extern void fuuid_settings_init(void);

#endif							/* FUUID_SETTINGS_H */
